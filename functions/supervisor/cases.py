"""One case: a program on one input, in one isolated child, from its job to its outcome.

Where tests judge the program, they run in a second child of the slot, beside it, and the two share nothing but two
pipes: what can be done to the program's process can't be done to its judge.

Theory of operation. Everything is an event of one loop: the child's messages, its output pipes, its end, and a
watch that looks at it every WATCH_INTERVAL_S (most cases end before it looks once). Once its main process was reaped,
its whole pid namespace is dead, and nobody can write any more: what the pipes hold is read, and they are closed. Their
end is not waited for, since a descriptor in flight, even to itself, holds them open as long as the kernel likes.

The first thing that ends a case gives its status; what happens afterwards (a killed program's signal, say) is only
its consequence. Which status the raw facts mean is decided in `case_outcome.py`.
"""

from __future__ import annotations

import array
import fcntl
import math
import os
import socket
import sys
import termios
import time

import case_outcome
import memory
import processes
from program_clock import ProgramClock
from sandbox import CALLS_JOB, CHECK_JOB, MAIN_JOB, READY, TEST_JOB
from submission import sealed_file

WATCH_INTERVAL_S = 0.025
_WATCH_MAX_CPU_SHARE = 0.05
_SECOND_LOOK_S = 0.005  # longer than a scheduler tick, after which a running thread's CPU time is up to date
COMPILE_LIMIT_S = 5.0
STDERR_TAIL_BYTES = 4096
_REPORT_BYTES = 65536
_DISMISSAL_S = 1.0  # for a program to see that its tests are over
_READ_BYTES = 65536


class Case:
    """Runs at once; `on_end` is called once with a `case_outcome.Facts`."""

    def __init__(self, slot, program, case_index: int, loop, on_end):
        self._slot = slot
        self._program = program
        self._case_index = case_index
        self._loop = loop
        self._on_end = on_end
        self._child = slot.take_child()
        self._judge = None  # the child that runs the tests, where there are some
        self._has_judge_ended = False
        self.facts = case_outcome.Facts()
        self._clock = None
        self._pipes = {}  # reading end -> what to do when there is something
        self._judge_pipes = set()
        self._pressure_before = None
        self._is_time_doubtful = False
        self._seen_ended_at_s = math.inf
        self._is_over = False
        self._watch_timer = None
        self._leave_timer = None
        self._child.on_message = self._on_message
        self._child.on_exit = self._on_exit
        if program.mode == "tests":
            slot.take_second_child(self._start_with_judge)
        else:
            self._start()

    def stop(self) -> None:
        """Ends the case without an outcome: nobody wants it any more."""
        self._end_early("stopped")

    # -- start

    def _start_with_judge(self, judge) -> None:
        if judge is None:
            self._end_early("sandbox_lost")
            return
        self._judge = judge
        judge.on_exit = self._on_judge_exit
        self._start()

    def _start(self) -> None:
        group = self._slot.memory_group
        if group:
            group.set_limit(self._program.memory_bytes)
            self._pressure_before = group.pressure()
        processes.go_first_when_out_of_memory(self._child.pid)
        now = time.monotonic()
        # What the child waited for a CPU while it was isolated counts as a wait of the compiler's: more than its due.
        self._clock = ProgramClock(now, COMPILE_LIMIT_S, self._slot.cpu, self._child.pid, 0, 0)
        self._watch_timer = self._loop.call_later(WATCH_INTERVAL_S, self._watch)
        try:
            self._give_job()
        except OSError:  # the child died waiting, or this process is short of something
            self._end_early("sandbox_lost")

    def _give_job(self) -> None:
        given = []
        try:
            if self._judge:
                self._give_jobs_of_pair(given)
                return
            if self._program.mode == "check":
                self._give_check(given)
                return
            given.append(sealed_file(self._program.stdin(self._case_index)))
            given.append(self._open_output(self._on_stdout))
            given.append(self._open_output(self._on_stderr))
            if self._program.mode in ("main", "checked"):
                send_job(self._child, MAIN_JOB, [*given, self._program.source_fd()])
                return
            self.facts.result = bytearray()
            given.append(sealed_file(self._program.requests(self._case_index)))
            given.append(self._open_output(self._on_result))
            send_job(self._child, CALLS_JOB, [*given[:3], self._program.source_fd(), *given[3:]])
        finally:
            for fd in given:
                os.close(fd)

    def _give_check(self, given: list) -> None:
        given.append(sealed_file(b""))
        given.append(self._open_output(self._on_stdout))
        given.append(self._open_output(self._on_stderr))
        given.append(sealed_file(self._program.source))
        for content in self._program.files():
            given.append(sealed_file(content))
        send_job(self._child, CHECK_JOB, given)

    def _give_jobs_of_pair(self, given: list) -> None:
        """To the program and to its judge, who have nothing in common but two pipes."""

        def give(*fds):
            given.extend(fds)
            return fds

        self.facts.report = bytearray()
        requests_out, requests_in = give(*os.pipe())
        answers_out, answers_in = give(*os.pipe())
        stdin, test = give(sealed_file(b""), sealed_file(self._program.test(self._case_index)))
        stdout, stderr = give(self._open_output(self._on_stdout), self._open_output(self._on_stderr))
        of_program = set(self._pipes)
        noise, report = give(self._open_output(self._on_stderr), self._open_output(self._on_report))
        self._judge_pipes = set(self._pipes) - of_program
        source = self._program.source_fd()
        send_job(self._child, CALLS_JOB, [stdin, stdout, stderr, source, requests_out, answers_in])
        send_job(self._judge, TEST_JOB, [stdin, noise, noise, test, requests_in, answers_out, report])

    def _open_output(self, callback) -> int:
        """The writing end of a pipe whose reading end is watched."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        os.fchmod(writing, 0o666)  # so that a program can open /dev/stdout; nobody else can reach it
        self._pipes[reading] = callback
        self._loop.add_reader(reading, callback, reading)
        return writing

    # -- what the child says and writes

    def _on_message(self, message: bytes) -> None:
        if message[:1] == b"S":
            self.facts.syntax_error = message[1:].decode("utf-8", "replace")
            return
        started_at_s, delay_ns, cpu_ns = READY.unpack(message[1:])
        self.facts.started_at_s = started_at_s
        self.facts.cpu_before_s = cpu_ns / 1e9
        self._clock = ProgramClock(
            started_at_s, self._program.time_limit_s, self._slot.cpu, self._child.pid, delay_ns, cpu_ns
        )
        self._rearm(time.monotonic())

    def _on_stdout(self, fd: int) -> None:
        self._keep(self.facts.stdout, self._read(fd))

    def _on_result(self, fd: int) -> None:
        self._keep(self.facts.result, self._read(fd))

    def _on_report(self, fd: int) -> None:
        self.facts.report += self._read(fd)
        del self.facts.report[_REPORT_BYTES:]

    def _keep(self, kept: bytearray, data: bytes) -> None:
        room = self._program.output_bytes - len(kept)
        kept += data[: max(room, 0)]
        if len(data) > room:
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

    def _drain(self, fds) -> None:
        """Reads what is left, of those who can't write any more, and closes the pipes."""
        for fd in fds:
            while fd in self._pipes and _waiting_bytes(fd):
                self._pipes[fd](fd)
        self._close_pipes(fds)

    def _close_pipes(self, fds) -> None:
        for fd in fds:
            if fd in self._pipes:
                self._close_pipe(fd)

    # -- limits

    def _watch(self) -> None:
        """Looks at memory and time; the next look comes sooner when the limit is near."""
        looked_at_s = time.monotonic()
        pids = processes.process_tree(self._child.pid)
        beside = processes.process_tree(self._judge.pid) if self._judge else []
        self._clock.sample(pids, looked_at_s, beside)
        pids += beside
        if self._clock.has_ended():
            self._seen_ended_at_s = min(self._seen_ended_at_s, looked_at_s)
        elif self._is_over_time(looked_at_s):
            self._over_time(looked_at_s, pids)
        elif self._is_over_memory(pids):
            self._end_early("memory_limit")
        now = time.monotonic()
        self._rearm(now, (now - looked_at_s) / _WATCH_MAX_CPU_SHARE)

    def _is_over_time(self, now_s: float) -> bool:
        """Only the second of two looks in a row judges, and not while a thread waits for a CPU."""
        was_doubtful = self._is_time_doubtful
        self._is_time_doubtful = self._clock.remaining_s(now_s) <= 0
        if self._clock.is_capped(now_s):
            return True
        is_sure = not self._clock.is_waiting or self._clock.was_busy_over_limit()
        return was_doubtful and self._is_time_doubtful and is_sure

    def _rearm(self, now_s: float, at_least_s: float = 0.0) -> None:
        self._watch_timer.cancel()
        remaining_s = max(self._clock.remaining_s(now_s), _SECOND_LOOK_S)
        pause_s = min(max(WATCH_INTERVAL_S, at_least_s), remaining_s)
        self._watch_timer = self._loop.call_later(pause_s, self._watch)

    def _is_over_memory(self, pids) -> bool:
        group = self._slot.memory_group
        if group and group.set_limit(self._program.memory_bytes):
            return group.ran_out_since(self._pressure_before)
        return memory.is_over(pids, self._program.memory_bytes)

    def _over_time(self, now_s: float, pids) -> None:
        starved = self._clock.is_capped(now_s) and self._clock.is_starved(now_s, processes.cpu_s(pids))
        self._end_early("starved" if starved else "time_limit")

    def _end_early(self, status: str) -> None:
        if self.facts.status is None:
            self.facts.status = status
        self._child.kill()
        if self._judge:
            self._judge.kill()

    # -- the end

    def _on_exit(self, ending) -> None:
        seen_at_s = min(time.monotonic(), self._seen_ended_at_s)
        if self._watch_timer:
            self._watch_timer.cancel()
        if self._judge and not self._has_judge_ended:  # it will notice, or is told
            self._leave_timer = self._loop.call_later(
                max(self._program.time_limit_s, _DISMISSAL_S), self._end_early, "time_limit"
            )
        if ending is None:
            self.facts.status = self.facts.status or "sandbox_lost"
            self.facts.has_ended = True
            self._close_pipes(set(self._pipes))
        else:
            self.facts.take_ending(ending, seen_at_s)
            group = self._slot.memory_group
            if group and self._pressure_before:  # else it was stopped before it was given anything to do
                self.facts.was_out_of_memory = group.ran_out_since(self._pressure_before)
            self._judge_lateness()
            self._drain(set(self._pipes) - self._judge_pipes)
        self._end_if_over()

    def _on_judge_exit(self, ending) -> None:
        """The program sees the end of its requests, and ends too; one that doesn't is made to."""
        self._has_judge_ended = True
        if self._leave_timer:
            self._leave_timer.cancel()
        if ending is None:
            self.facts.status = self.facts.status or "sandbox_lost"
            self._close_pipes(self._judge_pipes)
        else:
            self.facts.judge_wait_status = ending.wait_status
            if not self.facts.has_ended:
                self._leave_timer = self._loop.call_later(_DISMISSAL_S, self._dismiss)
            self._drain(self._judge_pipes)
        self._end_if_over()

    def _dismiss(self) -> None:
        if not self.facts.has_ended and self.facts.status is None:
            self.facts.was_dismissed = True
            self._child.kill()

    def _judge_lateness(self) -> None:
        """A program that ended by itself between the two looks at its limit. It has the benefit of the doubt where the
        end may have been noticed late, and where helpers may have waited for a CPU since the last look."""
        if self.facts.started_at_s is None or self.facts.status is not None or not self._is_time_doubtful:
            return
        if self._clock.had_helpers:
            if self._clock.was_busy_over_limit():
                self.facts.status = "time_limit"
            return
        self._clock.sample_ended(self.facts.run_delay_ns)
        late_s = self._clock.program_s(self.facts.ended_at_s) - self._program.time_limit_s
        if late_s > WATCH_INTERVAL_S:
            self.facts.status = "time_limit"

    def _end_if_over(self) -> None:
        if self._pipes or self._is_over or not self.facts.has_ended:
            return
        if self._judge and not self._has_judge_ended:
            return
        self._is_over = True
        if self._leave_timer:
            self._leave_timer.cancel()
        self._slot.give_back(self.facts.was_out_of_memory or self.facts.status is not None)
        self._on_end(self)


def _waiting_bytes(fd: int) -> int:
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def send_job(child, kind: bytes, fds) -> None:
    child.channel.sendmsg([kind], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
