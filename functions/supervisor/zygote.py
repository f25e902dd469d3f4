"""The zygote: a warm interpreter that forks one isolated child per case.

Theory of operation. The supervisor execs one zygote per CPU before it has read any payload, so that a zygote's memory
(which every child inherits) holds the standard library and these modules and nothing else: no program, no input, no
secret. The zygote makes itself init of a pid namespace (when it dies, all it started dies), builds the read-only root,
imports what programs commonly import, and does once whatever each child would otherwise repeat. Then it serves one
control socket: every message asks for one more child. The next child isolates itself while the present one runs.

    supervisor -> zygote   <settings json>   once
    supervisor -> zygote   <number>          fork a child of this number
    zygote -> supervisor                     see `zygote_messages.py`

Two modes. As root of the machine, children get user ids of their own. In a user namespace (an ordinary user, or
root in a container) the zygote is root of a namespace that maps one id, and each child makes a nested one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import time

import calls
import kernel
import network_namespaces
import program
import sandbox
import seccomp
import zygote_messages as messages
from isolation import NOBODY_ID, Isolation
from root_filesystem import enter_minimal_root

# Imported once, so that children find them loaded: what programs of this kind commonly use.
_WARM_MODULES = (
    "abc array ast base64 bisect calendar cmath collections collections.abc contextlib copy csv dataclasses datetime "
    "decimal enum fractions functools heapq io itertools json math numbers operator os random re statistics string "
    "struct sys textwrap threading time traceback types typing unicodedata"
).split()


# The kernel counts a process's time for its limit by ticks, and kills somewhat earlier or later than at the exact time.
_CPU_LIMIT_SHARE = 0.9
_CPU_TICK_S = 0.02


class Zygote:
    def __init__(self, control: socket.socket, settings: dict):
        self._control = control
        self._settings = settings
        self._children = {}  # pidfd -> (pid, number, its network namespace)
        self._delay_ns = 0
        self._late_s = 0.0
        self._looked_at_s = time.monotonic()
        self._poll = select.poll()
        rootless = is_rootless(settings["first_uid"] + settings["uid_count"])
        if not rootless:
            _leave_groups()
        last_capability = int(kernel.read_file("/proc/sys/kernel/cap_last_cap"))
        self._lead_own_pid_namespace(rootless)
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        enter_minimal_root(can_make_devices=not rootless)
        self._own_pid_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._own_schedstat = _open_own_schedstat()
        self._warm_up()
        self._tighten(rootless, last_capability)
        self._networks = network_namespaces.NetworkNamespaces()
        self._filters = [_Filter(seccomp.build_filter()), _Filter(seccomp.build_socketless_filter())]
        for_all, for_judges = self._filters
        isolation = Isolation(settings, rootless, for_all.address, last_capability)
        self._sandbox = sandbox.Sandbox(isolation, for_judges.address)
        gc.collect()
        gc.freeze()  # keeps the collector in a child from copying every page it shares with the zygote

    def serve(self) -> None:
        self._poll.register(self._control.fileno(), select.POLLIN)
        self._send(messages.UP)
        while True:
            events = self._poll.poll()
            self._note_own_delay()
            for fd, _ in events:
                if fd == self._control.fileno():
                    self._answer_request()
                else:
                    self._reap(fd)

    def _answer_request(self) -> None:
        try:
            message = self._control.recv(64)
        except OSError:
            message = b""
        if not message:  # the supervisor is gone: as init of its namespace, this process takes all down
            os._exit(0)
        self._fork(int(message))

    def _fork(self, number: int) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kernel.unshare(kernel.CLONE_NEWPID)
        network = self._networks.enter_unused()
        pid = kernel.fork_without_hooks()
        if pid == 0:
            try:
                self._sandbox.run_child(theirs, number)
            finally:
                os._exit(70)  # whatever happens, a child never returns into the zygote's loop
        kernel.enter_namespace(self._own_pid_namespace, kernel.CLONE_NEWPID)
        self._networks.leave()
        theirs.close()
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = (pid, number, network)
        self._poll.register(pidfd, select.POLLIN)
        self._send(messages.CHILD + b"%d" % number, (pidfd, ours.fileno()))
        ours.close()

    def _note_own_delay(self) -> None:
        """How long this process waited for the CPU before it could look at what had happened."""
        now = time.monotonic()
        delay_ns = _delay_ns(os.pread(self._own_schedstat, 128, 0)) if self._own_schedstat >= 0 else 0
        waited_s = (delay_ns - self._delay_ns) / 1e9
        # Nothing that is seen now had happened at the last look, however long this process waited in between.
        self._late_s = min(waited_s, now - self._looked_at_s)
        self._looked_at_s, self._delay_ns = now, delay_ns

    def _reap(self, pidfd: int) -> None:
        at_s = time.monotonic() - self._late_s
        pid, number, network = self._children.pop(pidfd)
        run_delay_ns = _run_delay_ns(pid)
        cpu_limit_s = _cpu_limit_s(pid) if _is_killed(pid) else math.inf
        _, status, usage = os.wait4(pid, 0)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        cpu_s = usage.ru_utime + usage.ru_stime
        used_up_limit = cpu_s >= cpu_limit_s * _CPU_LIMIT_SHARE - _CPU_TICK_S
        self._send(messages.encode_ending(number, status, at_s, cpu_s, usage.ru_maxrss, run_delay_ns, used_up_limit))
        self._networks.give_back(network)

    def _send(self, message: bytes, fds=()) -> None:
        try:
            socket.send_fds(self._control, [message], fds) if fds else self._control.send(message)
        except OSError:
            os._exit(0)

    def _lead_own_pid_namespace(self, rootless: bool) -> None:
        if rootless:
            _become_root_of_new_user_namespace()
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.unshare(kernel.CLONE_NEWPID)
        pid = os.fork()
        if pid:
            self._control.close()
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)

    def _warm_up(self) -> None:
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
        if hasattr(sys, "set_int_max_str_digits"):
            sys.set_int_max_str_digits(0)
        for name in _WARM_MODULES:
            __import__(name)
        json.loads(json.dumps({"a": [1, 2.5, None, "x"]}))
        calls.warm_up()
        program.prepare_standard_streams()

    def _tighten(self, rootless: bool, last_capability: int) -> None:
        """What a child need not repeat. The network namespace is the zygote's own; each child gets another."""
        if self._settings["cpu"] is not None:
            os.sched_setaffinity(0, {self._settings["cpu"]})
        kernel.unshare(kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP | kernel.CLONE_NEWNET)
        kernel.set_hostname(b"case")
        if not rootless:
            kernel.drop_bounding_set(last_capability)
            kernel.clear_inheritable_capabilities()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a supervisor in the background ignores it
        for limit, soft, hard in sandbox.zygote_limits(self._settings):
            # Root is exempt from the process limit; an ordinary user would lose the fork for its next child.
            if not (rootless and limit == resource.RLIMIT_NPROC):
                resource.setrlimit(limit, (soft, hard))


def is_rootless(highest_uid: int) -> bool:
    """Whether ids of its own can't be given to each case: an ordinary user, or root of a user namespace that maps
    too few of them."""
    if os.geteuid() != 0:
        return True
    first = kernel.read_file("/proc/self/uid_map").split(b"\n")[0].split()
    return int(first[0]) != 0 or int(first[2]) < highest_uid


def _become_root_of_new_user_namespace() -> None:
    uid, gid = os.getuid(), os.getgid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    try:
        kernel.write_file("/proc/self/setgroups", "deny")
    except PermissionError:
        pass  # already denied in the enclosing namespace
    kernel.write_file("/proc/self/uid_map", "0 %d 1" % uid)
    kernel.write_file("/proc/self/gid_map", "0 %d 1" % gid)


class _Filter:
    """A system call filter in memory, where the kernel can be pointed to it."""

    def __init__(self, instructions: bytes):
        self._instructions = ctypes.create_string_buffer(instructions, len(instructions))
        header = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(self._instructions))
        self._header = ctypes.create_string_buffer(header, len(header))
        self.address = ctypes.addressof(self._header)


def _leave_groups() -> None:
    """Children inherit it. Before anything that a change of ids would undo."""
    os.setgroups([])
    os.setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID)


def _open_own_schedstat() -> int:
    try:
        return os.open("/proc/self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1  # a kernel that doesn't say


def _is_killed(pid: int) -> bool:
    """Of a child that has ended and was not waited for."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return ended.si_code != os.CLD_EXITED and ended.si_status == signal.SIGKILL


def _cpu_limit_s(pid: int) -> float:
    """After how much CPU time the kernel kills the process. It had no such limit but what was set by itself."""
    try:
        for line in kernel.read_file("/proc/%d/limits" % pid).split(b"\n"):
            if line.startswith(b"Max cpu time"):
                return float(line.split()[4].replace(b"unlimited", b"inf"))
    except (OSError, ValueError, IndexError):
        pass
    return math.inf


def _run_delay_ns(pid: int) -> int:
    """How long a main thread, ended or not, was runnable without running; 0 where the kernel doesn't say."""
    try:
        return _delay_ns(kernel.read_file("/proc/%d/schedstat" % pid, 128))
    except OSError:
        return 0


def _delay_ns(schedstat: bytes) -> int:
    fields = schedstat.split()
    return int(fields[1]) if len(fields) > 1 else 0


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    try:
        zygote = Zygote(control, json.loads(control.recv(65536)))
    except BaseException as error:
        control.send(messages.FAILED + str(error).encode()[:500])
        os._exit(71)
    zygote.serve()


if __name__ == "__main__":
    main()
