"""Processes that callers start: their output goes to whoever listens, and they live on when nobody does.

As in E2B: a deadline kills the process itself and not its children; the end is told once the outputs are closed, so a
grandchild that holds them delays it; output that nobody listens to is dropped.
"""

import base64
import os
import select
import signal
import subprocess
import threading
import time

from connect_rpc import RpcError

_READ_BYTES = 32 * 1024
SIGNALS = {"SIGNAL_SIGKILL": signal.SIGKILL, "SIGNAL_SIGTERM": signal.SIGTERM}


class Process:
    """One started process. `listeners` are called with each event, in the order of the events; one that raises
    OSError is dropped."""

    def __init__(self, config, tag, deadline_s):
        self.config = config
        self.tag = tag
        self.popen = None
        self.ended = threading.Event()
        self._deadline_s = deadline_s
        self._status = None
        self._has_status = threading.Event()
        self._lock = threading.Lock()
        self._listeners = []
        self._end_event = None

    @property
    def pid(self):
        return self.popen.pid

    def start(self, children, user, drops_rights, environment, with_stdin):
        argv = [self.config["cmd"], *self.config.get("args", [])]
        rights = {"user": user.uid, "group": user.gid, "extra_groups": [user.gid]} if drops_rights else {}

        def spawn():
            return subprocess.Popen(
                argv,
                cwd=self.config["cwd"],
                env=environment,
                stdin=subprocess.PIPE if with_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                umask=0o022,
                **rights,
            )

        try:
            self.popen = children.start(spawn, self._on_reaped)
        except (OSError, ValueError) as error:
            message = "error starting process '{}': {}".format(" ".join(argv), error)
            raise RpcError("invalid_argument", message) from None

    def _on_reaped(self, status):
        self._status = status
        self._has_status.set()

    def listen(self, listener):
        """Adds a listener; it gets the end at once where that has been."""
        with self._lock:
            if self._end_event is None:
                self._listeners.append(listener)
                return
        listener(self._end_event)

    def ignore(self, listener):
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def pump(self):
        """Moves output to the listeners until the process has ended. Blocks: it needs a thread of its own."""
        poll, names = select.poll(), {}
        for name in ("stdout", "stderr"):
            fd = getattr(self.popen, name).fileno()
            names[fd] = name
            poll.register(fd, select.POLLIN)
        while names:
            for fd, _ in poll.poll(self._poll_ms()):
                data = os.read(fd, _READ_BYTES)
                if data:
                    self._tell({"data": {names[fd]: base64.b64encode(data).decode()}})
                else:
                    poll.unregister(fd)
                    del names[fd]
            self._kill_if_late()
        while not self._has_status.wait(self._wait_s()):
            self._kill_if_late()
        self._finish()

    def _wait_s(self):
        return None if self._deadline_s is None else max(0.0, self._deadline_s - time.monotonic())

    def _poll_ms(self):
        wait_s = self._wait_s()
        return None if wait_s is None else int(wait_s * 1000) + 1

    def _kill_if_late(self):
        if self._deadline_s is not None and time.monotonic() >= self._deadline_s:
            self._deadline_s = None
            self.send_signal(signal.SIGKILL)

    def _finish(self):
        event = {"end": _describe_end(self._status)}
        with self._lock:
            self._end_event = event
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            _tell_one(listener, event)
        self.popen.returncode = self._status  # the reaper took it: keep subprocess from waiting too
        for stream in (self.popen.stdout, self.popen.stderr):
            stream.close()
        self.close_stdin()
        self.ended.set()

    def _tell(self, event):
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            if not _tell_one(listener, event):
                self.ignore(listener)

    def send_signal(self, number):
        if not self._has_status.is_set():
            os.kill(self.pid, number)

    def write_stdin(self, data):
        stdin = self.popen.stdin
        if stdin is None or stdin.closed:
            raise RpcError("internal", "error writing to stdin: stdin not enabled or closed")
        try:
            while data:
                data = data[stdin.write(data) :]
        except OSError as error:
            raise RpcError("internal", f"error writing to stdin of process '{self.pid}': {error}") from None

    def close_stdin(self):
        if self.popen.stdin is not None:
            self.popen.stdin.close()


def _tell_one(listener, event):
    try:
        listener(event)
        return True
    except OSError:
        return False


def _describe_end(status):
    if os.WIFSIGNALED(status):
        text = f"signal: {_signal_name(os.WTERMSIG(status))}"
        return {"exitCode": -1, "status": text, "error": text}
    code = os.WEXITSTATUS(status)
    text = f"exit status {code}"
    if code == 0:
        return {"exited": True, "status": text}
    return {"exitCode": code, "exited": True, "status": text, "error": text}


def _signal_name(number):
    return {9: "killed", 15: "terminated"}.get(number) or (signal.strsignal(number) or str(number)).lower()
