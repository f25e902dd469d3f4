"""Reaping. pid 1 gets every orphan of the sandbox besides its own children, so one thread waits for all of them and
tells those who asked. A pid is asked for under the same lock under which its process is made: its end can't be missed
and a reused number can't be mistaken."""

import os
import threading


class Children:
    def __init__(self):
        self._lock = threading.Lock()
        self._waiting = {}
        self._some = threading.Event()
        threading.Thread(target=self._reap, name="reaper", daemon=True).start()

    def start(self, spawn, on_end):
        """Runs `spawn`, which returns what has a `pid`; `on_end(status)` is called once, in the reaper's thread."""
        with self._lock:
            child = spawn()
            self._waiting[child.pid] = on_end
        self._some.set()
        return child

    def _reap(self):
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            except ChildProcessError:
                self._some.wait()
                self._some.clear()
                continue
            with self._lock:
                pid, status = os.waitpid(ended.si_pid, 0)
                on_end = self._waiting.pop(pid, None)
            if on_end is not None:
                on_end(status)
