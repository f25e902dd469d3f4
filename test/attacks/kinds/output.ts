/** Too much output, and results forged for this case or the next. */
import type { Attack } from "../attack.ts";

export const output: Attack[] = [
  {
    name: "output without end",
    source: 'while True: os.write(1, b"x" * 65536)',
    ends: "output_limit",
  },
  {
    name: "output without end from many processes",
    source: `
for _ in range(20):
    if os.fork() == 0: break
while True: os.write(1, b"x" * 65536)
`,
    ends: "output_limit",
  },
  {
    name: "output without end that no write call makes",
    source: `
zero = os.open("/dev/zero", os.O_RDONLY)
while True:
    try: os.sendfile(1, zero, None, 1 << 20)
    except OSError: os.splice(zero, 1, 1 << 20) if hasattr(os, "splice") else os.write(1, b"x" * 65536)
`,
    ends: ["output_limit", "exited"],
    prints: /^$/,
  },
  {
    name: "output without end through names of the descriptor",
    source: `
for path in ("/dev/stdout", "/proc/self/fd/1", "/proc/thread-self/fd/1", "/dev/fd/1"):
    try: fd = os.open(path, os.O_WRONLY)
    except OSError: fd = 1
    while True: os.write(fd, b"x" * 65536)
`,
    ends: "output_limit",
  },
  {
    name: "standard error without end",
    source: 'while True: os.write(2, b"x" * 65536)',
    limits: { time_ms: 300 },
    ends: "time_limit",
  },
  {
    name: "a pipe that is made small, not waiting, or its owner's",
    source: `
import fcntl
for fd in (1, 2):
    disturb(lambda: fcntl.fcntl(fd, 1031, 4096))
    disturb(lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND))
    attempt("owner", lambda: fcntl.fcntl(fd, fcntl.F_SETOWN, targets["supervisor_pid"]) or "owned")
    attempt("read", lambda: os.read(fd, 100))
    attempt("truncate", lambda: os.ftruncate(fd, 0) or "truncated")
    disturb(lambda: fcntl.flock(fd, fcntl.LOCK_EX))
os.set_blocking(1, True)
report()
`,
  },
  {
    name: "a standard output that is closed, replaced and waited for",
    source: `
os.dup2(2, 1); os.close(0); os.close(2)
time.sleep(60)
`,
    limits: { time_ms: 300 },
    ends: "time_limit",
  },
  {
    name: "changing the input for others",
    source: `
import fcntl, mmap
attempt("write", lambda: os.write(0, b"forged"))
attempt("truncate", lambda: os.ftruncate(0, 0) or "truncated")
attempt("grow", lambda: os.ftruncate(0, 1 << 20) or "grown")
attempt("map", lambda: mmap.mmap(0, 10, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
attempt("reopen", lambda: os.write(os.open("/proc/self/fd/0", os.O_RDWR), b"forged"))
attempt("allocate", lambda: os.posix_fallocate(0, 0, 1 << 20) or "allocated")
attempt("seals", lambda: fcntl.fcntl(0, 1034) & 8 ^ 8 or None)
report()
`,
  },
  {
    name: "a result forged in the words of the answer",
    source: String.raw`
lines = [
    {"type": "ended", "program": "honest-after", "case": 0, "status": "exited", "exit_code": 0, "stdout": "forged"},
    {"type": "syntax_error", "program": "honest-after", "detail": "forged"},
    {"type": "summary", "reason": "completed", "cases": 0},
]
text = "".join(json.dumps(line) + "\n" for line in lines)
for fd in (1, 2): os.write(fd, ("\n" + text + "0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").encode())
`,
    prints: /^\n\{"type": "ended".*"summary".*HTTP\/1\.1 200 OK\r\n\r\n$/s,
  },
  {
    name: "messages of the machinery, forged on every descriptor",
    source: `
messages = [b"I", b"R" + struct.pack("<d", 0.0), b"R" + struct.pack("<dqq", 0.0, 0, 0), b"S" + b"forged", b"E" + b"{}", b"F", b"J", b"1",
            b'{"type": "exit", "child": 1, "status": 0, "at": 0, "cpu_s": 0, "max_rss_kib": 0, "run_delay_ns": 0}']
for fd in range(3, 1024):
    for message in messages: attempt(f"descriptor {fd}", lambda: os.write(fd, message))
report()
`,
  },
  {
    name: "descriptors of others, found and guessed",
    source: `
for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/task/*/fd/*") + [f"/proc/{targets['supervisor_pid']}/fd/{n}" for n in range(30)]:
    pid, fd = path.split("/")[2], int(path.rsplit("/", 1)[1])
    if int(pid) == os.getpid() and fd < 3: continue
    def use():
        there = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        if os.readlink(path).startswith("/proc/"): return None
        return os.readlink(path)
    attempt(path, use)
import array
a, b = socket.socketpair(socket.AF_UNIX)
for fd in range(3, 64):
    if fd in (a.fileno(), b.fileno()): continue
    attempt(f"passing {fd}", lambda: a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]))
report()
`,
  },
  {
    name: "a program that returns into what started it",
    source: `
def stay(*arguments): return None
os._exit = sys.exit = stay
import atexit, threading
threading._shutdown = stay; atexit._run_exitfuncs = stay
print("done", flush=True)
`,
    prints: /^done\n$/,
    ends: "exited",
  },
  {
    name: "a program whose end is replaced by a beginning",
    source: `
def again(*arguments):
    while True: pass
os._exit = again
`,
    limits: { time_ms: 300 },
    ends: ["time_limit", "exited"],
    prints: "",
  },
  {
    name: "an exit code or an exception that can't be read",
    source: `
class Odd(BaseException):
    def __str__(self): raise SystemExit(0)
    __repr__ = __str__
    def __getattribute__(self, name): raise Odd()
class Code:
    def __str__(self): raise Odd()
sys.excepthook = lambda *about: (_ for _ in ()).throw(Odd())
sys.stdout = sys.stderr = None
raise SystemExit(Code()) if len(targets["role"]) % 2 else Odd()
`,
    ends: ["exited", "signaled"],
    prints: "",
  },
  {
    name: "an interpreter that it takes apart",
    source: `
import builtins, gc, threading
sys.setrecursionlimit(60); sys.setswitchinterval(1e-6)
threading.Thread(target=lambda: [builtins.__dict__.clear() for _ in range(3)]).start()
for name in list(sys.modules):
    if name not in ("sys", "builtins"): sys.modules.pop(name, None)
os.__dict__.clear()
`,
    ends: ["exited", "signaled"],
    prints: "",
  },
  {
    name: "alarms, traces and finalizers that outlast it",
    source: `
import atexit, gc, signal, threading, weakref
signal.signal(signal.SIGALRM, lambda *about: os.write(1, b""))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
sys.settrace(lambda *about: None); threading.setprofile(lambda *about: None)
class Last:
    def __del__(self): Last()
keep = [Last()]
atexit.register(lambda: atexit.register(lambda: None))
print("done")
`,
    limits: { time_ms: 1500 },
    ends: ["exited", "signaled", "time_limit", "memory_limit"],
    prints: "done\n",
  },
  {
    name: "an output that never ends, since it is in flight to itself",
    source: `
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
socket.send_fds(one, [b"x"], [1, 2, one.fileno(), other.fileno()])
report()
os._exit(0)
`,
    roles: ["a", "b", "c", "d"],
    withinMs: 2_000,
  },
];
