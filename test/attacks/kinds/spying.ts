/** Learning what belongs to others: inputs, programs, secrets, the host. Roles "plant" and "seek" run at once. */
import type { Attack } from "../attack.ts";

/** Two cases: one leaves something where the other looks for it. */
const BOTH = ["plant", "seek", "plant", "seek"];

export const spying: Attack[] = [
  {
    name: "files of the whole system",
    source: `
skipped = ("/usr/share", "/usr/lib", "/usr/bin", "/usr/sbin", "/usr/local", "/usr/include", "/usr/src", sys.prefix, "/proc", "/sys")
for folder, folders, names in os.walk("/", followlinks=False):
    folders[:] = [name for name in folders if not os.path.join(folder, name).startswith(skipped)]
    for name in names:
        path = os.path.join(folder, name)
        def read():
            if not stat.S_ISREG(os.lstat(path).st_mode): return None
            with open(path, "rb") as file: return MARKER.search(file.read(1 << 20))
        attempt(path, read)
attempt("witness", lambda: open(targets["witness"]).read())
report()
`,
    limits: { time_ms: 5000 },
  },
  {
    name: "a file of the host, by its name",
    source: 'attempt("witness", lambda: open(targets["witness"]).read())\nreport()',
    worksOutside: true,
  },
  {
    name: "the environment, its own and others'",
    source: `
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/task/*/environ") + ["/proc/self/environ", "/proc/1/environ"]:
    attempt(path, lambda: MARKER.search(open(path, "rb").read()))
for name, value in os.environ.items(): attempt(name, lambda: MARKER.search(value.encode()))
names = set(os.environ) - {"PATH", "HOME", "LANG", "LOGNAME", "PYTHONHASHSEED"}
if names: found.append(f"variables {names}")
report()
`,
    worksOutside: true,
  },
  {
    name: "command lines, folders, maps and stacks of processes",
    source: `
for name in ("cmdline", "maps", "mountinfo", "status", "stack", "syscall", "wchan", "auxv", "limits", "io", "cgroup", "attr/current"):
    for path in glob.glob(f"/proc/[0-9]*/{name}"):
        if path.split("/")[2] != str(os.getpid()): attempt(path, lambda: open(path, "rb").read(4096))
        else: attempt(path, lambda: MARKER.search(open(path, "rb").read(1 << 20)))
report()
`,
    worksOutside: true,
  },
  {
    name: "what its own memory was before it began",
    source: `
me = open("/proc/self/mem", "rb", buffering=0)
scanned = 0
for line in open("/proc/self/maps").read().splitlines():
    fields = line.split()
    start, end = (int(part, 16) for part in fields[0].split("-"))
    if "r" not in fields[1] or fields[-1] in ("[vvar]", "[vsyscall]", "[vvar_vclock]") or end - start > 64 << 20: continue
    def read():
        global scanned
        me.seek(start); data = me.read(end - start); scanned += len(data)
        return MARKER.search(data)
    attempt(fields[-1], read)
if scanned < 4 << 20: found.append(f"scanned only {scanned} bytes")
report()
`,
    limits: { time_ms: 5000 },
  },
  {
    name: "objects that it inherited",
    source: `
import gc, inspect
gc.unfreeze() if hasattr(gc, "unfreeze") else None
seen, todo = set(), gc.get_objects() + [vars(module) for module in sys.modules.values() if hasattr(module, "__dict__")]
frame = sys._getframe()
while frame: todo += [frame.f_locals, frame.f_globals]; frame = frame.f_back
while todo:
    thing = todo.pop()
    if id(thing) in seen: continue
    seen.add(id(thing))
    if isinstance(thing, (bytes, bytearray)) and MARKER.search(thing): found.append(f"bytes {thing[:60]!r}")
    elif isinstance(thing, str) and MARKER.search(thing.encode("utf-8", "replace")): found.append(f"text {thing[:60]!r}")
    elif isinstance(thing, socket.socket) and thing.fileno() >= 0:
        try: os.fstat(thing.fileno()); found.append(f"socket {thing!r}")
        except OSError: pass
    elif isinstance(thing, (dict, list, tuple, set, frozenset)) and len(seen) < 2_000_000: todo += gc.get_referents(thing)
report()
`,
    limits: { time_ms: 5000 },
  },
  {
    name: "memory of other processes",
    source: `
buffer = ctypes.create_string_buffer(64)
local = struct.pack("@QQ", ctypes.addressof(buffer), 64)
for pid in [1, 2, 3, os.getppid()] + list(range(targets["supervisor_pid"] - 5, targets["supervisor_pid"] + 60)):
    if pid == os.getpid(): continue
    attempt(f"attach {pid}", lambda: syscall(101 if ON_X86 else 117, 16, pid, 0, 0))
    attempt(f"seize {pid}", lambda: syscall(101 if ON_X86 else 117, 0x4206, pid, 0, 0))
    attempt(f"read {pid}", lambda: syscall(310 if ON_X86 else 270, pid, local, 1, struct.pack("@QQ", 0x400000, 64), 1, 0))
    attempt(f"memory {pid}", lambda: open(f"/proc/{pid}/mem", "rb"))
report()
`,
  },
  {
    name: "keyrings",
    source: `
add, request, keyctl = (248, 249, 250) if ON_X86 else (217, 218, 219)
for ring in (-3, -4, -5):
    attempt(f"ring {ring}", lambda: syscall(keyctl, 0, ring, 0))
    attempt(f"add to {ring}", lambda: syscall(add, b"user", b"planted", b"value", 5, ring))
attempt("request", lambda: syscall(request, b"user", b"planted", 0, -4))
attempt("keys", lambda: open("/proc/keys").read().strip() or None)
report()
`,
  },
  {
    name: "System V shared memory, semaphores and messages",
    roles: BOTH,
    source: `
get = {"memory": (29, 194, (0x5EED, 4096, 0o1666)), "semaphore": (64, 190, (0x5EED, 1, 0o1666)), "message": (68, 186, (0x5EED, 0o1666))}
for kind, (x86, arm, arguments) in get.items():
    attempt(kind, lambda: syscall(x86 if ON_X86 else arm, *arguments))
    attempt(kind, lambda: syscall(x86 if ON_X86 else arm, *(a & ~0o1000 if a == 0o1666 else a for a in arguments)))
time.sleep(0.1)
report()
`,
  },
  {
    name: "named shared memory, semaphores and message queues",
    roles: BOTH,
    source: `
attempt("queue", lambda: syscall(240 if ON_X86 else 180, b"planted", 0o102, 0o666, 0))
attempt("mqueue", lambda: os.listdir("/dev/mqueue"))
if targets["role"] == "plant":
    with open("/dev/shm/planted", "w") as file: file.write("planted")
    os.chmod("/dev/shm/planted", 0o666)
    time.sleep(0.2)
else:
    for _ in range(20):
        attempt("shared memory", lambda: open("/dev/shm/planted").read())
        time.sleep(0.01)
report()
`,
  },
  {
    name: "temporary folders that two programs share",
    roles: BOTH,
    source: `
os.umask(0)
if targets["role"] == "plant":
    for folder in ("/tmp", "/dev/shm", os.environ["HOME"]):
        with open(folder + "/planted", "w") as file: file.write("planted")
        for name in ("json.py", "random.py", "sitecustomize.py", "usercustomize.py"): open(f"{folder}/{name}", "w").write("raise SystemExit(9)")
    time.sleep(0.2)
else:
    for _ in range(20):
        for folder in ("/tmp", "/dev/shm", os.environ["HOME"]): attempt(folder, lambda: open(folder + "/planted").read())
        time.sleep(0.01)
report()
`,
  },
  {
    name: "abstract sockets of other programs and of the host",
    roles: BOTH,
    source: `
name = "\\0planted"
host = "\\0" + targets["abstract_name"]
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    attempt("host", lambda: socket.socket(socket.AF_UNIX, kind).connect(host) or "connected")
if targets["role"] == "plant":
    server = socket.socket(socket.AF_UNIX); server.bind(name); server.listen(); server.settimeout(0.2)
    attempt("visited", lambda: server.accept())
else:
    for _ in range(20):
        attempt("visit", lambda: socket.socket(socket.AF_UNIX).connect(name) or "connected")
        time.sleep(0.01)
report()
`,
  },
  {
    name: "abstract sockets of programs that ended, kept alive in flight",
    roles: BOTH,
    source: `
import array
for line in open("/proc/self/net/unix").read().splitlines()[1:]: attempt("listed", lambda: line)
server = socket.socket(socket.AF_UNIX)
attempt("taken", lambda: server.bind("\\0kept-in-flight") if targets["role"] == "plant" else socket.socket(socket.AF_UNIX).connect("\\0kept-in-flight") or "connected")
if targets["role"] == "plant":
    server.listen()
    a, b = socket.socketpair()
    b.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [a.fileno(), server.fileno()]))])
    a.detach()
report()
`,
  },
  {
    name: "sockets of the host by path",
    source: `
for path in [targets["socket_path"], "/run/dbus/system_bus_socket", "/var/run/docker.sock", "/run/systemd/notify", "/dev/log", "/run/containerd/containerd.sock"]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        attempt(path, lambda: socket.socket(socket.AF_UNIX, kind).connect(path) or "connected")
report()
`,
    worksOutside: true,
  },
  {
    name: "other programs, watched through their processes and files",
    roles: BOTH,
    source: `
end = time.monotonic() + 0.2
while time.monotonic() < end:
    others = [name for name in os.listdir("/proc") if name.isdigit() and name != str(os.getpid())]
    if others: found.append(f"processes {others}")
    strange = set(os.listdir("/tmp")) - {"main.py"} | set(os.listdir("/dev/shm"))
    if strange: found.append(f"files {strange}")
    time.sleep(0.01)
report()
`,
  },
];
