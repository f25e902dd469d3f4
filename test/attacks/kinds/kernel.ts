/** Privileges, namespaces, and the kernel's less travelled calls. */
import type { Attack } from "../attack.ts";

export const kernel: Attack[] = [
  {
    name: "becoming somebody else",
    source: `
uid = os.getuid()
for other in (0, 1, 1000, 61000, 65534, uid + 1, uid - 1):
    if other == uid: continue
    for name in ("setuid", "seteuid"): attempt(f"{name} {other}", lambda: getattr(os, name)(other) or "changed")
    attempt(f"setresuid {other}", lambda: os.setresuid(other, other, other) or "changed")
    attempt(f"setresgid {other}", lambda: os.setresgid(other, other, other) or "changed" if other != 65534 else None)
    def filesystem():
        syscall(122 if ON_X86 else 151, other)
        return "changed" if syscall(122 if ON_X86 else 151, uid) == other else None
    attempt(f"setfsuid {other}", filesystem)
attempt("groups", lambda: os.setgroups([0]) or "changed")
attempt("capabilities", lambda: syscall(126 if ON_X86 else 91, struct.pack("<II", 0x20080522, 0), struct.pack("<IIIIII", 0xFFFFFFFF, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0xFFFFFFFF, 0)))
for code, name in ((8, "keep"), (28, "securebits"), (47, "ambient"), (35, "map")):
    attempt(name, lambda: libc.prctl(code, 2, 21, 0, 0) == 0 or None)
for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
    line = re.search(name + r":\\s*(\\w+)", open("/proc/self/status").read())
    if line and int(line[1], 16): found.append(line[0])
report()
`,
  },
  {
    name: "namespaces and mounts",
    source: `
mount, umount, unshare, setns, chroot, pivot, clone = (165, 166, 272, 308, 161, 155, 56) if ON_X86 else (40, 39, 97, 268, 51, 41, 220)
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000, 0x80, 0x10020000):
    attempt(f"unshare {flag:#x}", lambda: syscall(unshare, flag) or "unshared")
    def split():
        pid = syscall(clone, flag | 17, 0, 0, 0, 0)
        if pid == 0: os._exit(0)
        os.waitpid(pid, 0)
        return "cloned"
    if flag != 0x80: attempt(f"clone {flag:#x}", split)
arguments = ctypes.create_string_buffer(struct.pack("@11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
attempt("clone3", lambda: syscall(435, arguments, 88) or os._exit(0) or "cloned")
for kind, source in ((b"tmpfs", b"none"), (b"proc", b"proc"), (b"sysfs", b"sysfs"), (b"overlay", b"overlay"), (b"cgroup2", b"none"), (b"fuse", b"none")):
    attempt(f"mount {kind}", lambda: syscall(mount, source, b"/tmp", kind, 0, b"") or "mounted")
for flags in (32 | 4096, 4096, 1 << 18, 1 << 20, 8192): attempt(f"mount flags {flags}", lambda: syscall(mount, b"/", b"/", b"", flags, b"") or "mounted")
for path in (b"/", b"/tmp", b"/proc", b"/dev/shm", b"/usr"): attempt(f"unmount {path}", lambda: syscall(umount, path, 2) or "unmounted")
attempt("chroot", lambda: os.chroot("/tmp") or "changed")
attempt("pivot", lambda: syscall(pivot, b"/tmp", b"/tmp") or "changed")
for name in os.listdir("/proc/self/ns"):
    attempt(f"join {name}", lambda: syscall(setns, os.open(f"/proc/self/ns/{name}", os.O_RDONLY), 0) or "joined")
for number, arguments in ((428, (-100, b"/", 1)), (429, (-100, b"/", -100, b"/tmp", 0)), (430, (b"tmpfs", 0)), (433, (-100, b"/", 0)), (442, (-100, b"/", 0, struct.pack("<QQQQ", 0, 1, 0, 0), 32)), (467, (-100, b"/", 1))):
    attempt(f"call {number}", lambda: syscall(number, *arguments))
report()
`,
  },
  {
    name: "calls that no program of this kind needs",
    source: `
page = ctypes.create_string_buffer(4096)
path = b"/tmp/main.py"
calls = {
    "io_uring": (425, 425, (1, page)), "bpf": (321, 280, (0, page, 64)), "perf": (298, 241, (page, 0, -1, -1, 0)), "userfaultfd": (323, 282, (1,)),
    "ptrace": (101, 117, (0, 0, 0, 0)), "kcmp": (312, 272, (1, 1, 0, 0, 0)), "pidfd_getfd": (438, 438, (0, 0, 0)), "process_madvise": (440, 440, (0, page, 1, 4, 0)),
    "open_by_handle": (304, 265, (-100, page, 0)), "name_to_handle": (303, 264, (-100, path, page, page, 0)), "fanotify": (300, 262, (0, 0)),
    "clock_settime": (227, 112, (0, page)), "settimeofday": (164, 170, (page, 0)), "adjtimex": (159, 171, (page,)), "clock_adjtime": (305, 266, (0, page)),
    "sethostname": (170, 161, (b"forged", 6)), "setdomainname": (171, 162, (b"forged", 6)), "reboot": (169, 142, (0xFEE1DEAD, 672274793, 0, 0)),
    "swapon": (167, 224, (path, 0)), "swapoff": (168, 225, (path,)), "init_module": (175, 105, (page, 10, b"")), "finit_module": (313, 273, (0, b"", 0)),
    "delete_module": (176, 106, (b"x", 0)), "kexec": (246, 104, (0, 0, 0, 0)), "kexec_file": (320, 294, (0, 0, 0, 0, 0)), "syslog": (103, 116, (3, page, 4096)),
    "acct": (163, 89, (path,)), "quotactl": (179, 60, (0, 0, 0, page)), "personality": (135, 92, (0x0040000,)), "vhangup": (153, 58, ()),
    "mbind": (237, 235, (0, 0, 0, 0, 0, 0)), "move_pages": (279, 239, (0, 0, 0, 0, 0, 0)), "migrate_pages": (256, 238, (0, 0, 0, 0)), "vmsplice": (278, 75, (1, page, 0, 0)),
    "affinity": (203, 122, (0, 8, struct.pack("<Q", 0xFF))), "scheduler": (144, 119, (0, 1, struct.pack("<i", 1))), "attributes": (314, 274, (0, page, 0)), "seccomp": (317, 277, (1, 0, page)),
    "landlock": (444, 444, (page, 8, 0)), "memfd_secret": (447, 447, (0,)), "futex_waitv": (None, None, ()), "cachestat": (None, None, ()),
}
if ON_X86: calls.update({"iopl": (172, 0, (3,)), "ioperm": (173, 0, (0, 10, 1)), "modify_ldt": (154, 0, (0, page, 4096)), "uselib": (134, 0, (path,))})
for name, (x86, arm, arguments) in calls.items():
    number = x86 if ON_X86 else arm
    if number is not None: attempt(name, lambda: syscall(number, *arguments))
report()
`,
  },
  {
    name: "calls of foreign and unknown numbers",
    source: `
import mmap
def survives(action):
    pid = os.fork()
    if pid == 0:
        try: action()
        except OSError: os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
if ON_X86:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    def as_32_bit(number):
        # push rbx; mov eax, number; xor ebx, ebx; int 0x80; pop rbx; ret
        code.seek(0); code.write(b"\\x53\\xb8" + struct.pack("<I", number) + b"\\x31\\xdb\\xcd\\x80\\x5b\\xc3")
        result = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        if result < 0: raise OSError(-result, "")
    for number in (20, 26, 102, 120, 310): # getpid, ptrace, socketcall, clone, unshare
        if survives(lambda: as_32_bit(number)): found.append(f"32-bit call {number}")
    for number in (39, 101, 272, 521): # getpid, ptrace, unshare, x32 ptrace
        if survives(lambda: syscall(0x40000000 | number, 0, 0, 0, 0)): found.append(f"x32 call {number}")
for number in [*range(453, 600), 1000, 0x3FFFFFFF]:
    attempt(f"call {number}", lambda: syscall(number, 0, 0, 0, 0, 0))
report()
`,
  },
  {
    name: "a filter of its own, and one that it takes off",
    source: `
allow = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)
block = ctypes.create_string_buffer(allow)
header = struct.pack("@HP", 1, ctypes.addressof(block))
attempt("seccomp off", lambda: libc.prctl(22, 0, 0, 0, 0) == 0 or None)
attempt("privileges", lambda: libc.prctl(38, 0, 0, 0, 0) == 0 or None)
libc.prctl(22, 2, header, 0, 0)
attempt("after its own filter", lambda: syscall(272 if ON_X86 else 97, 0x10000000))
status = open("/proc/self/status").read()
if "NoNewPrivs:\\t1" not in status or "Seccomp:\\t2" not in status: found.append("unlocked")
report()
`,
  },
  {
    name: "clocks, priorities and CPUs",
    source: `
set_disk, get_disk = (251, 252) if ON_X86 else (30, 31)
before = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), syscall(get_disk, 1, 0)
attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0) or "set")
for step in (-1, 19): disturb(lambda: os.nice(step))
for who in (os.PRIO_PROCESS, os.PRIO_PGRP, os.PRIO_USER): disturb(lambda: os.setpriority(who, 0, 10))
for policy in (os.SCHED_FIFO, os.SCHED_RR): disturb(lambda: os.sched_setscheduler(0, policy, os.sched_param(1)))
for policy in (os.SCHED_IDLE, os.SCHED_BATCH): disturb(lambda: os.sched_setscheduler(0, policy, os.sched_param(0)))
for class_ in (1, 3): disturb(lambda: syscall(set_disk, 1, 0, class_ << 13 | 4))
disturb(lambda: os.sched_setaffinity(0, range(64)))
after = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), syscall(get_disk, 1, 0)
if after != before: found.append(f"{before} became {after}")
report()
`,
  },
  {
    name: "a process that nobody else may watch",
    source: `
libc.prctl(4, 0, 0, 0, 0); libc.prctl(1, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0); name_process("[kworker/0:0]")
if os.fork() == 0: libc.prctl(4, 0, 0, 0, 0)
hoard = bytearray(200 << 20)
time.sleep(60)
`,
    limits: { memory_mib: 96, time_ms: 3000 },
    ends: "memory_limit",
  },
  {
    name: "a process that nobody else may watch and that never ends",
    source: `
libc.prctl(4, 0, 0, 0, 0); libc.prctl(1, 0, 0, 0, 0)
if os.fork() == 0: os.setsid()
while True: pass
`,
    limits: { time_ms: 300 },
    ends: "time_limit",
  },
];
