/** Fork bombs, daemons, and signals to whatever can be reached. */
import type { Attack } from "../attack.ts";

const SHORT = { time_ms: 300 };
/** As many processes as a case may have cost the kernel a megabyte each: what ends these is their time. */
const SHORT_AND_WIDE = { ...SHORT, memory_mib: 384 };

export const processes: Attack[] = [
  {
    name: "a fork bomb",
    source: `
while True:
    try: os.fork()
    except OSError: pass
`,
    limits: SHORT_AND_WIDE,
    ends: "time_limit",
  },
  {
    name: "a fork bomb whose children leave the session",
    source: `
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
`,
    limits: SHORT_AND_WIDE,
    ends: "time_limit",
  },
  {
    name: "a bomb of fresh interpreters",
    source: `
import subprocess
again = "import subprocess, sys\\nwhile True:\\n    try: subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[1]])\\n    except OSError: pass"
while True:
    try: subprocess.Popen([sys.executable, "-c", again, again])
    except OSError: pass
`,
    limits: SHORT,
    ends: ["time_limit", "memory_limit"],
  },
  {
    name: "a bomb of threads",
    source: `
import threading
def spin():
    while True: pass
while True:
    try: threading.Thread(target=spin, daemon=True).start()
    except RuntimeError: pass
`,
    limits: SHORT,
    ends: "time_limit",
  },
  {
    name: "a bomb of orphans, which nobody reaps",
    source: `
while True:
    try: pid = os.fork()
    except OSError: continue
    if pid == 0:
        try: os.fork()
        finally: os._exit(0)
    os.waitpid(pid, 0)
`,
    limits: SHORT,
    ends: ["time_limit", "exited"],
    prints: /^$/,
  },
  {
    name: "helpers that die young and take the CPU time they used with them",
    source: `
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def breed():
    while True:
        try: pid = os.fork()
        except OSError: continue
        if pid == 0:
            end = time.process_time() + 0.0015
            while time.process_time() < end: pass
            os._exit(0)
for _ in range(8):
    if os.fork() == 0: breed()
while True: pass
`,
    limits: SHORT,
    ends: "time_limit",
  },
  {
    name: "a daemon that outlives its program",
    source: `
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    name_process("outliving")
    time.sleep(60)
os.wait()
print("done")
`,
    prints: "done\n",
  },
  {
    name: "a daemon that ignores every signal and goes on writing",
    source: `
import signal
print("done", flush=True)
if os.fork() == 0:
    for number in range(1, 65):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.setsid()
    libc.prctl(1, 0, 0, 0, 0)
    while True: os.write(1, b"forged"); time.sleep(0.01)
time.sleep(0.005)
`,
    prints: /^done\n(forged){0,3}$/,
  },
  {
    name: "a program that ignores every signal",
    source: `
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
disturb(os.setsid)
while True:
    try: time.sleep(1)
    except BaseException: pass
`,
    limits: SHORT,
    ends: "time_limit",
  },
  {
    name: "stopping itself, and being stopped by its child",
    source: `
import signal
if os.fork() == 0:
    while True: os.kill(os.getppid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(60)
`,
    limits: SHORT,
    ends: "time_limit",
  },
  {
    name: "a parent that waits for its vfork child",
    source: `
if os.fork() == 0:
    libc.vfork()
    time.sleep(60)
libc.vfork()
while True: libc.pause()
`,
    limits: SHORT,
    ends: ["time_limit", "signaled"],
  },
  {
    name: "a main thread that ends while another one computes for ever",
    source: `
import threading
def spin():
    while True: pass
threading.Thread(target=spin).start()
syscall(60 if ON_X86 else 93, 0)
`,
    limits: SHORT,
    ends: "time_limit",
  },
  {
    name: "killing every process that it may",
    source: `
import signal
disturb(lambda: os.kill(-1, signal.SIGKILL))
attempt("the supervisor", lambda: os.kill(targets["supervisor_pid"], signal.SIGKILL) or "killed")
for pid in list(range(2, 2000)) + list(range(targets["supervisor_pid"] - 300, targets["supervisor_pid"] + 300)):
    attempt(f"process {pid}", lambda: os.kill(pid, signal.SIGKILL) or "killed")
report()
`,
  },
  {
    name: "killing its process group, which the zygote might share",
    source: `
import signal
for group in (0, os.getpgid(0)):
    disturb(lambda: os.killpg(group, signal.SIGKILL))
    disturb(lambda: os.kill(-group, signal.SIGKILL))
if os.fork() == 0:
    os.kill(0, signal.SIGKILL)
    os._exit(0)
os.wait()
report()
`,
  },
  {
    name: "stopping and slowing its process group, which the zygote might share",
    source: `
import signal
disturb(lambda: os.setpriority(os.PRIO_PGRP, 0, 19))
disturb(lambda: os.setpriority(os.PRIO_USER, 0, 19))
for who in (2, 3): disturb(lambda: syscall(251 if ON_X86 else 30, who, 0, 3 << 13))
if os.fork() == 0:
    os.kill(0, signal.SIGSTOP)
    os._exit(0)
time.sleep(0.1)
report()
`,
  },
  {
    name: "the terminal, the session and the parent",
    source: `
import fcntl, termios
attempt("terminal", lambda: os.open("/dev/tty", os.O_RDWR))
attempt("terminal", lambda: os.open("/dev/ptmx", os.O_RDWR))
for fd in range(3): attempt("type", lambda: fcntl.ioctl(fd, termios.TIOCSTI, b"x"))
attempt("parent", lambda: os.getppid() or None)
attempt("session", lambda: os.getsid(os.getppid() or 2))
report()
`,
  },
  {
    name: "handles on other processes",
    source: `
numbers = list(range(2, 400)) + [targets["supervisor_pid"] + n for n in range(-50, 200)]
for pid in numbers:
    attempt(f"handle of {pid}", lambda: os.pidfd_open(pid))
    attempt(f"limits of {pid}", lambda: __import__("resource").prlimit(pid, 7))
    attempt(f"cpus of {pid}", lambda: os.sched_getaffinity(pid))
    attempt(f"folder of {pid}", lambda: os.listdir(f"/proc/{pid}"))
report()
`,
    worksOutside: true,
  },
  {
    name: "time of its own, by a helper that gives way all the time",
    source: `
for _ in range(3):
    if os.fork() == 0:
        while True: os.sched_yield()
end = time.process_time() + 0.34
while time.process_time() < end: pass
os._exit(0)
`,
    limits: { time_ms: 200 },
    ends: "time_limit",
  },
  {
    name: "time of its own, by threads that give way all the time",
    source: `
import threading
def give_way():
    while True: ctypes.CDLL(None).sched_yield()
for _ in range(4): threading.Thread(target=give_way, daemon=True).start()
clock = time.CLOCK_THREAD_CPUTIME_ID
end = time.clock_gettime(clock) + 0.34
while time.clock_gettime(clock) < end: sum(range(20_000))
os._exit(0)
`,
    limits: { time_ms: 200 },
    ends: "time_limit",
  },
  {
    name: "time of its own, by a chain of short processes beside one that gives way",
    source: `
if os.fork() == 0:
    while True: os.sched_yield()
end = time.process_time()
for _ in range(40):
    child = os.fork()
    if child == 0:
        end = time.process_time() + 0.01
        while time.process_time() < end: pass
        os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
`,
    limits: { time_ms: 200 },
    ends: "time_limit",
  },
  {
    name: "death by a limit of its own, which says nothing of the sandbox",
    source: `
import resource
if targets["role"] == "own": resource.setrlimit(resource.RLIMIT_CPU, (0, 0))
elif os.fork() == 0:
    resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))
    os._exit(0)
while True: pass
`,
    roles: ["own", "a child's"],
    limits: { time_ms: 6_000 },
    ends: "signaled",
  },
];
