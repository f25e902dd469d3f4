"""One case's process, from fork to program.

Theory of operation. The zygote forks; the child isolates itself, asks the kernel what it now is, and only then says
so. It speaks over one sequenced-packet channel, in this order:

    I            isolated and proved (see `isolation.py`); waiting for a job
    E <json>     isolation failed at this stage with this errno; the process ends (a fault, never a verdict)
      job        how to run, and descriptors: stdin, stdout, stderr, source; in some ways two more
    R <numbers>  compiled and ready; the case's clock starts here
    S <text>     the source is not Python; the process ends

The channel is closed before the program's first instruction, so nothing a program does can be taken for a message.
A child that dies before I has not run anything; one that dies between I and R was ended by its own source.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import random
import resource
import socket
import struct
import sys
import threading
import time

import calls
import checks
import judge
import kernel
import program
from isolation import Isolation

READY = struct.Struct("<dqq")  # monotonic seconds, run delay ns, CPU ns: all at the moment the program is ready
MAIN_JOB = b"M"  # as a program of its own
CALLS_JOB = b"C"  # as a library; with descriptors of requests and answers
TEST_JOB = b"T"  # tests of a library in another case: descriptors of requests, answers and the report
CHECK_JOB = b"K"  # a checker: descriptors of its files
_STANDARD_FD_COUNT = 4
_MAX_FD_COUNT = 7
_FAILURE_DETAIL_CHARACTERS = 500
_OTHER_FDS_FROM = 200  # out of the way, and below the limit of open files
_FIXED_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 64),
)
_STACK_BYTES = 64 << 20
_JOB_ANCILLARY_BYTES = socket.CMSG_SPACE(4 * _MAX_FD_COUNT)


class Sandbox:
    """What a zygote prepares once for all of its children."""

    def __init__(self, isolation: Isolation, judge_filter_address: int):
        self._isolation = isolation
        self._judge_filter_address = judge_filter_address
        here = os.path.dirname(os.path.abspath(__file__))
        self._own_modules = [name for name, module in sys.modules.items() if _is_within(here, name, module)]
        self._program_path = ["/tmp"] + [entry for entry in sys.path if entry and entry != here]

    def run_child(self, channel: socket.socket, number: int) -> None:
        """The whole life of a case's process. Never returns."""
        try:
            self._isolation.enter(channel.fileno(), number)
        except BaseException as error:
            self._report_failure(channel, error)
            os._exit(70)
        _become_a_process_of_its_own()
        job = _wait_for_job(channel)
        if job is None:
            os._exit(0)
        kind, source, other_fds = job
        if kind == TEST_JOB:
            kernel.install_seccomp(self._judge_filter_address)
            self._forget_supervisor_modules()
            channel.close()
            judge.judge(source, *other_fds)
        try:
            code = program.compile_source(source)
        except program.RejectedSource as error:
            channel.send(b"S" + str(error).encode("utf-8", "replace")[:2000])
            os._exit(0)
        _write_file(program.FILE_NAME, source)
        del source
        self._forget_supervisor_modules()
        if kind == CHECK_JOB:
            _lay_out_files(other_fds)
        channel.send(b"R" + READY.pack(time.monotonic(), *_own_schedstat()))
        channel.close()
        if kind == CALLS_JOB:
            calls.answer_calls(code, *other_fds)
        program.run_as_main(code)

    def _report_failure(self, channel: socket.socket, error: BaseException) -> None:
        detail = str(error)[:_FAILURE_DETAIL_CHARACTERS]
        report = {"stage": self._isolation.stage, "errno": getattr(error, "errno", None), "detail": detail}
        try:
            channel.send(b"E" + json.dumps(report).encode())
        except OSError:
            pass  # then its silent end says the same

    def _forget_supervisor_modules(self) -> None:
        """A program's `import program` finds its own file, not ours."""
        for name in self._own_modules:
            del sys.modules[name]
        sys.argv = [program.NAME]
        sys.orig_argv = [sys.executable, program.NAME]
        sys.path[:] = self._program_path


def _is_within(folder: str, name: str, module) -> bool:
    return name != "__main__" and os.path.dirname(getattr(module, "__file__", None) or "") == folder


def _become_a_process_of_its_own() -> None:
    """Of what the standard library does after a fork (see `kernel.fork_without_hooks`), all that a program can see."""
    random.seed()
    threading.main_thread()._set_native_id()


def _wait_for_job(channel: socket.socket):
    """(kind, source, descriptors besides 0-2, which are in place); None when the supervisor closed the channel."""
    try:
        channel.send(b"I")
        kind, ancillary, _, _ = channel.recvmsg(16, _JOB_ANCILLARY_BYTES)
    except OSError:
        return None
    if not kind:
        return None
    fds = array.array("i", ancillary[0][2])
    source_fd = fds[_STANDARD_FD_COUNT - 1]
    source = os.pread(source_fd, os.fstat(source_fd).st_size, 0)
    others = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OTHER_FDS_FROM) for fd in fds[_STANDARD_FD_COUNT:]]
    for standard_fd in range(_STANDARD_FD_COUNT - 1):
        os.dup2(fds[standard_fd], standard_fd)
    for fd in fds:
        os.close(fd)
    return kind, source, others


def _write_file(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    while content:
        content = content[os.write(fd, content) :]
    os.close(fd)


def _lay_out_files(fds) -> None:
    """Copies a checker's files to its working directory, and names them in its arguments."""
    for fd, name in zip(fds, checks.FILE_NAMES):
        _write_file(name, os.pread(fd, os.fstat(fd).st_size, 0))
        os.close(fd)
    sys.argv += checks.FILE_NAMES


def zygote_limits(settings: dict):
    """(limit, soft, hard) that hold for every child; the zygote takes them on first, since a child can only tighten
    them. But a program may ask for a larger stack, as many do before they recurse: what it then uses is memory like any
    other."""
    hard_stack = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft_stack = _STACK_BYTES if hard_stack == resource.RLIM_INFINITY else min(_STACK_BYTES, hard_stack)
    fixed = _FIXED_LIMITS + (
        (resource.RLIMIT_FSIZE, settings["temporary_bytes"]),
        (resource.RLIMIT_NPROC, settings["processes"]),
    )
    return [(limit, value, value) for limit, value in fixed] + [(resource.RLIMIT_STACK, soft_stack, hard_stack)]


def _own_schedstat():
    """(run delay, CPU time) of this process in ns; zeros where the kernel doesn't say."""
    try:
        cpu_ns, delay_ns, _ = kernel.read_file("/proc/self/schedstat", 128).split()
        return int(delay_ns), int(cpu_ns)
    except (OSError, ValueError):
        return 0, 0
