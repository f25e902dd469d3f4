"""One case: a program on one input, in one isolated child, from its job to its outcome.

Theory of operation. Everything is an event of one loop: the child's messages, its two output pipes, its end, and a
watch that looks at it every WATCH_INTERVAL_S (most cases end before it looks once). The case is over when its main
process was reaped and both pipes are at their end, which they must be then: its whole pid namespace is dead.

The first thing that ends a case gives its status; what happens afterwards (a killed program's signal, say) is only
its consequence. Which status the raw facts mean is decided in `case_outcome.py`.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import time

import case_outcome
import memory
import processes
from program_clock import ProgramClock
from sandbox import READY_FORMAT

WATCH_INTERVAL_S = 0.025
_WATCH_MAX_CPU_SHARE = 0.05
COMPILE_LIMIT_S = 5.0
STDERR_TAIL_BYTES = 4096
_READ_BYTES = 65536
_F_ADD_SEALS = 1033
_ALL_SEALS = 0xF


class Job:
    """What a case needs to know of its program. `source_fd` is shared by the program's cases and not the case's own."""

    __slots__ = ("source_fd", "stdin", "time_limit_s", "memory_bytes", "output_bytes")

    def __init__(self, source_fd: int, stdin: bytes, limits: dict):
        self.source_fd = source_fd
        self.stdin = stdin
        self.time_limit_s = limits["time_ms"] / 1e3
        self.memory_bytes = limits["memory_mib"] << 20
        self.output_bytes = limits["output_bytes"]


def sealed_file(data: bytes) -> int:
    """A read-only descriptor of an immutable memory file."""
    fd = os.memfd_create("input", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    fcntl.fcntl(fd, _F_ADD_SEALS, _ALL_SEALS)
    readonly = os.open("/proc/self/fd/%d" % fd, os.O_RDONLY | os.O_CLOEXEC)
    os.close(fd)
    return readonly


class Case:
    """Runs at once; `on_end` is called once with a `case_outcome.Facts`."""

    def __init__(self, slot, job: Job, loop, on_end):
        self._slot = slot
        self._job = job
        self._loop = loop
        self._on_end = on_end
        self._child = slot.take_child()
        self.facts = case_outcome.Facts()
        self._clock = None
        self._pipes = {}
        self._kills_before = 0
        self._is_over = False
        self._child.on_message = self._on_message
        self._child.on_exit = self._on_exit
        self._start()

    def stop(self) -> None:
        """Ends the case without an outcome: nobody wants it any more."""
        self._end_early("stopped")

    # -- start

    def _start(self) -> None:
        group = self._slot.memory_group
        if group:
            group.set_limit(self._job.memory_bytes)
            self._kills_before = group.kill_count()
        stdout_read, stdout_write = os.pipe()
        stderr_read, stderr_write = os.pipe()
        stdin = sealed_file(self._job.stdin)
        self._watch_pipe(stdout_read, self._on_stdout)
        self._watch_pipe(stderr_read, self._on_stderr)
        now = time.monotonic()
        self._clock = ProgramClock(now, COMPILE_LIMIT_S, self._slot.cpu, self._child.pid, 0, 0)
        self._clock.sample([self._child.pid])
        self._watch_timer = self._loop.call_later(WATCH_INTERVAL_S, self._watch)
        fds = array.array("i", (stdin, stdout_write, stderr_write, self._job.source_fd))
        try:
            self._child.channel.sendmsg([b"J"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        except OSError:
            pass  # it died waiting; its end is on its way
        for fd in (stdin, stdout_write, stderr_write):
            os.close(fd)

    def _watch_pipe(self, fd: int, callback) -> None:
        os.set_blocking(fd, False)
        self._pipes[fd] = callback
        self._loop.add_reader(fd, callback, fd)

    # -- what the child says and writes

    def _on_message(self, message: bytes) -> None:
        if message[:1] == b"S":
            self.facts.syntax_error = message[1:].decode("utf-8", "replace")
            return
        started_at_s, delay_ns, cpu_ns = struct.unpack(READY_FORMAT, message[1:])
        self.facts.started_at_s = started_at_s
        self._clock = ProgramClock(
            started_at_s, self._job.time_limit_s, self._slot.cpu, self._child.pid, delay_ns, cpu_ns
        )
        self._rearm(time.monotonic())

    def _on_stdout(self, fd: int) -> None:
        data = self._read(fd)
        room = self._job.output_bytes - len(self.facts.stdout)
        if len(data) <= room:
            self.facts.stdout += data
        else:
            self.facts.stdout += data[: max(room, 0)]
            self._end_early("output_limit")

    def _on_stderr(self, fd: int) -> None:
        self.facts.stderr_tail += self._read(fd)
        del self.facts.stderr_tail[:-STDERR_TAIL_BYTES]

    def _read(self, fd: int) -> bytes:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._close_pipe(fd)
            self._end_if_over()
        return data

    def _close_pipe(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        del self._pipes[fd]
        os.close(fd)

    # -- limits

    def _watch(self) -> None:
        """Looks at memory and time; the next look comes sooner when the limit is near."""
        looked_at_s = time.monotonic()
        pids = processes.process_tree(self._child.pid)
        if pids:
            self._clock.sample(pids)
            if self._clock.remaining_s(looked_at_s) <= 0:
                self._over_time(looked_at_s, pids)
            elif self._is_over_memory(pids):
                self._end_early("memory_limit")
        now = time.monotonic()
        self._rearm(now, (now - looked_at_s) / _WATCH_MAX_CPU_SHARE)

    def _rearm(self, now_s: float, at_least_s: float = 0.0) -> None:
        self._watch_timer.cancel()
        remaining_s = max(self._clock.remaining_s(now_s), 0.001)
        pause_s = min(max(WATCH_INTERVAL_S, at_least_s), remaining_s)
        self._watch_timer = self._loop.call_later(pause_s, self._watch)

    def _is_over_memory(self, pids) -> bool:
        group = self._slot.memory_group
        if group:
            return group.kill_count() > self._kills_before
        return memory.is_over(pids, self._job.memory_bytes)

    def _over_time(self, now_s: float, pids) -> None:
        starved = self._clock.is_capped(now_s) and self._clock.is_starved(now_s, processes.cpu_s(pids))
        self._end_early("starved" if starved else "time_limit")

    def _end_early(self, status: str) -> None:
        if self.facts.status is None:
            self.facts.status = status
        self._child.kill()

    # -- the end

    def _on_exit(self, report) -> None:
        seen_at_s = time.monotonic()
        self._watch_timer.cancel()
        if report is None:
            self.facts.status = self.facts.status or "sandbox_lost"
            for fd in list(self._pipes):
                self._close_pipe(fd)
        else:
            self.facts.take_exit(report, seen_at_s)
            group = self._slot.memory_group
            self.facts.was_out_of_memory = bool(group) and group.kill_count() > self._kills_before
            self._judge_lateness()
        self._end_if_over()

    def _judge_lateness(self) -> None:
        """A program that ended by itself, but late, before anybody looked."""
        if self.facts.started_at_s is None or self.facts.status is not None:
            return
        self._clock.sample_ended(self.facts.run_delay_ns)
        late_s = self._clock.program_s(self.facts.ended_at_s) - self._job.time_limit_s
        if late_s > WATCH_INTERVAL_S:
            self.facts.status = "time_limit"

    def _end_if_over(self) -> None:
        if self._pipes or self._is_over or not (self.facts.has_ended or self.facts.status == "sandbox_lost"):
            return
        self._is_over = True
        self._slot.give_back()
        self._on_end(self)
