/** Memory in one process, in many, in files, and in what belongs to no process. */
import type { Attack } from "../attack.ts";

const SMALL = { memory_mib: 96, time_ms: 3000 };
const OVER = "memory_limit";

export const memory: Attack[] = [
  {
    name: "memory without end",
    source: 'hoard = []\nwhile True: hoard.append(b"x" * (1 << 20))',
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory without end, with every MemoryError swallowed",
    source: `
hoard = []
while True:
    try: hoard.append(bytearray(8 << 20))
    except MemoryError: pass
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in many processes, each under the limit",
    source: `
for _ in range(20):
    if os.fork() == 0:
        hoard = bytearray(16 << 20); time.sleep(60)
time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in a daemon",
    source: `
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    hoard = bytearray(1 << 30); time.sleep(60)
time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in a fresh interpreter",
    source:
      'import subprocess\nsubprocess.run([sys.executable, "-c", "hoard = bytearray(1 << 30); import time; time.sleep(60)"])\ntime.sleep(60)',
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory that is shared by mapping",
    source: `
import mmap
hoard = mmap.mmap(-1, 1 << 30)
for offset in range(0, 1 << 30, 4096): hoard[offset] = 1
time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in page tables of pages that it never writes",
    source: `
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
start = libc.mmap(None, 1 << 38, 1, 0x4022, -1, 0)
for offset in range(0, 100_000 << 21, 1 << 21): ctypes.c_char.from_address(start + offset).value
time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory that its processes hand on faster than they live",
    source: `
hoard = bytearray(150 << 20)
while True:
    if os.fork() == 0: continue
    if os.getpid() != 1: os._exit(0)
    time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory that is taken and given back in a moment",
    source: `
for _ in range(400):
    hoard = bytearray(150 << 20)
    del hoard
    time.sleep(0.003)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in files of both places and of both names",
    source: `
hoard = bytearray(80 << 20)
written = 0
for folder in ("/tmp", "/dev/shm", ".", "/proc/self/cwd"):
    for n in range(40):
        try:
            with open(f"{folder}/{written}-{n}", "wb", buffering=0) as file: written += file.write(bytes(1 << 20))
        except OSError: break
print(written >> 20)
time.sleep(60)
`,
    limits: SMALL,
    ends: OVER,
  },
  {
    name: "memory in files without a name",
    source: `
attempt("memfd", lambda: os.memfd_create("hoard"))
attempt("secret", lambda: syscall(447, 0))
report()
`,
    worksOutside: true,
  },
  {
    name: "memory in pipes and sockets",
    source: `
import fcntl
held = []
def fill(write):
    try:
        while True: write(b"x" * 65536)
    except OSError: pass
try:
    while True:
        reading, writing = os.pipe2(os.O_NONBLOCK)
        held.append((reading, writing))
        try: fcntl.fcntl(writing, 1031, 1 << 20)
        except OSError: pass
        fill(lambda data: os.write(writing, data))
        a, b = socket.socketpair(socket.AF_UNIX)
        held.append((a, b)); a.setblocking(False)
        a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 28)
        fill(a.send)
except OSError as error: print(errno.errorcode[error.errno])
`,
    limits: SMALL,
    ends: ["exited", OVER],
    prints: /^(EMFILE|ENFILE)\n$/,
  },
  {
    name: "memory locked, and limits raised",
    source: `
import mmap, resource
block = mmap.mmap(-1, 1 << 20)
address = ctypes.addressof(ctypes.c_char.from_buffer(block))
attempt("lock", lambda: "locked" if libc.mlock(ctypes.c_void_p(address), 1 << 20) == 0 else None)
attempt("lock all", lambda: "locked" if libc.mlockall(3) == 0 else None)
for limit in (resource.RLIMIT_NPROC, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE):
    soft, hard = resource.getrlimit(limit)
    def more():
        try: return resource.setrlimit(limit, (hard + 1, hard + 1)) or f"raised from {hard}"
        except ValueError: return None
    attempt(f"limit {limit}", more)
def spare_me():
    with open("/proc/self/oom_score_adj", "w") as file: file.write("-500")
    return "spared"
attempt("killer", spare_me)
report()
`,
  },
];
