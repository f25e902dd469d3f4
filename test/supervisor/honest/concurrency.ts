/** Processes, threads and signals. */
import { expect } from "vitest";
import type { Row } from "./row.ts";

export const concurrency: Row[] = [
  {
    name: "a forked child's output counts",
    source: `
import os
pid = os.fork()
if pid == 0:
    print("child"); raise SystemExit(3)
_, status = os.waitpid(pid, 0)
print("parent", os.waitstatus_to_exitcode(status))
`,
    ends: { stdout: "child\nparent 3\n" },
  },
  {
    name: "a pool of processes maps",
    source: `
import multiprocessing
def square(n): return n * n
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as pool:
        print(pool.map(square, range(10)))
`,
    ends: { stdout: "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]\n" },
  },
  {
    name: "multiprocessing's queues, locks, values and pipes work",
    source: `
import multiprocessing
mp = multiprocessing.get_context("fork")
def work(queue, lock, value, pipe, n):
    for _ in range(100):
        with lock: value.value += 1
    queue.put(n); pipe.send(n); pipe.close()
queue, lock, value = mp.Queue(), mp.Lock(), mp.Value("i", 0)
pairs = [mp.Pipe(False) for _ in range(3)]
workers = [mp.Process(target=work, args=(queue, lock, value, send, n)) for n, (_, send) in enumerate(pairs)]
for worker in workers: worker.start()
print(sorted(queue.get() for _ in workers), [receive.recv() for receive, _ in pairs])
for worker in workers: worker.join()
print(value.value, [worker.exitcode for worker in workers])
`,
    ends: { stdout: "[0, 1, 2] [0, 1, 2]\n300 [0, 0, 0]\n" },
  },
  {
    name: "multiprocessing can spawn fresh interpreters",
    source: `
import multiprocessing
def triple(n): return 3 * n
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(triple, [1, 2]))
`,
    ends: { stdout: "[3, 6]\n" },
  },
  {
    name: "shared memory of multiprocessing works",
    source: `
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=1 << 20)
block.buf[:5] = b"hello"
again = shared_memory.SharedMemory(name=block.name)
print(bytes(again.buf[:5]))
again.close(); block.close(); block.unlink()
`,
    ends: { stdout: "b'hello'\n" },
  },
  {
    name: "executors of processes and of threads work",
    source: `
import concurrent.futures, multiprocessing
def cube(n): return n ** 3
with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool: print(list(pool.map(cube, range(5))))
with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(cube, range(100))))
`,
    ends: { stdout: "[0, 1, 8, 27, 64]\n24502500\n" },
  },
  {
    name: "it can start Python by both its names, and a shell",
    source: `
import os, subprocess, sys
for python in (sys.executable, "python3"):
    run = subprocess.run([python, "-c", "import json, sys; print(json.dumps(sys.stdin.read()))"], input="in", capture_output=True, text=True)
    print(run.returncode, run.stdout.strip(), run.stderr)
print(subprocess.run("echo $((6 * 7)) | cat", shell=True, capture_output=True, text=True).stdout.strip(), os.popen("echo popen").read().strip())
print(os.system("exit 3") >> 8, flush=True)
os.execvp("python3", ["python3", "-c", "print('replaced')"])
`,
    ends: { stdout: '0 "in" \n0 "in" \n42 popen\n3\nreplaced\n' },
  },
  {
    name: "threads with big stacks may recurse deeply",
    source: `
import functools, sys, threading
sys.setrecursionlimit(10**6)
threading.stack_size(256 << 20)
@functools.lru_cache(None)
def depth(n): return 0 if n == 0 else 1 + depth(n - 1)
def main(): print(depth(30000))
threads = [threading.Thread(target=main)] + [threading.Thread(target=print, args=("small",)) for _ in range(3)]
for thread in threads: thread.start(); thread.join()
`,
    ends: { stdout: "30000\nsmall\nsmall\nsmall\n" },
  },
  {
    name: "the main thread may recurse 50,000 deep",
    source:
      "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50000))",
    ends: { stdout: "50000\n" },
  },
  {
    name: "a thread that goes on after the main program's end still counts",
    source:
      'import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print("late"))).start()\nprint("main")',
    ends: { stdout: "main\nlate\n" },
  },
  {
    name: "a daemon thread doesn't hold the end up",
    source: `
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("over")
`,
    ends: { stdout: "over\n" },
    check: ([line]) => expect(line?.wall_ms).toBeLessThan(1000),
  },
  {
    name: "the end is the main process's: a child's late output doesn't count",
    source: `
import os, time
if os.fork() == 0:
    os.setsid(); time.sleep(0.3); print("too late", flush=True); os._exit(0)
print("over")
`,
    ends: { stdout: "over\n" },
    check: ([line]) => expect(line?.wall_ms).toBeLessThan(250),
  },
  {
    name: "64 processes, itself included, and no more",
    source: `
import os, time
children = []
try:
    for _ in range(100):
        pid = os.fork()
        if pid == 0: time.sleep(30); os._exit(0)
        children.append(pid)
except BlockingIOError: pass
print(len(children))
`,
    inputs: ["", "", "", ""],
    ends: { stdout: "63\n" },
  },
  {
    name: "64 threads, the main one included, and no more",
    source: `
import threading
stop = threading.Event(); started = 1
try:
    for _ in range(100):
        threading.Thread(target=stop.wait, daemon=True).start(); started += 1
except RuntimeError: pass
print(started)
`,
    inputs: ["", ""],
    ends: { stdout: "64\n" },
  },
  {
    name: "coroutines and their sleeps, queues and programs work",
    source: `
import asyncio, sys
async def double(n):
    await asyncio.sleep(0.01 * (3 - n)); return 2 * n
async def main():
    print(await asyncio.gather(*map(double, range(3))))
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "print('child')", stdout=asyncio.subprocess.PIPE)
    print((await child.communicate())[0], await asyncio.to_thread(input))
asyncio.run(main())
`,
    inputs: ["line\n"],
    ends: { stdout: "[0, 2, 4]\nb'child\\n' line\n" },
  },
  {
    name: "local sockets between its own processes work",
    source: `
import os, socket
a, b = socket.socketpair()
if os.fork() == 0: b.sendall(b"through"); os._exit(0)
os.wait(); print(a.recv(100))
server = socket.socket(socket.AF_UNIX); server.bind("s"); server.listen()
client = socket.socket(socket.AF_UNIX); client.connect("s"); client.sendall(b"named"); print(server.accept()[0].recv(100))
`,
    ends: { stdout: "b'through'\nb'named'\n" },
  },
  {
    name: "signals to itself that it doesn't handle are ignored",
    source: `
import os, signal
for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
    os.kill(os.getpid(), number)
print("alive")
`,
    ends: { stdout: "alive\n" },
  },
  {
    name: "signals that it handles arrive",
    source: `
import os, signal, time
signal.signal(signal.SIGUSR1, lambda number, frame: print("got", signal.Signals(number).name))
os.kill(os.getpid(), signal.SIGUSR1)
class Late(Exception): pass
def ring(number, frame): raise Late
signal.signal(signal.SIGALRM, ring); signal.setitimer(signal.ITIMER_REAL, 0.05)
try: time.sleep(1.5)
except Late: print("alarm")
try: signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt: print("interrupted")
`,
    ends: { stdout: "got SIGUSR1\nalarm\ninterrupted\n" },
  },
  {
    name: "children can be killed",
    source: `
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
child.kill(); print(child.wait())
child = subprocess.Popen(["sleep", "60"]); child.terminate(); print(child.wait())
`,
    ends: { stdout: "-9\n-15\n" },
  },
];
