"""One case's process, from fork to program.

Theory of operation. The zygote forks; the child isolates itself, asks the kernel what it now is, and only then says
so. It speaks over one sequenced-packet channel, in this order:

    I            isolated and proved; waiting for a job
    E <json>     isolation failed at this stage with this errno; the process ends (a fault, never a verdict)
      job        how to run, and descriptors: stdin, stdout, stderr, source; in some ways two more
    R <numbers>  compiled and ready; the case's clock starts here
    S <text>     the source is not Python; the process ends

The channel is closed before the program's first instruction, so nothing a program does can be taken for a message.
A child that dies before I has not run anything; one that dies between I and R was ended by its own source.

Order matters: namespaces and mounts first (they need privilege), then the ids, then capabilities, then
no-new-privileges and the filter; each step can only tighten what came before.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
import time

import calls
import checks
import judge
import kernel
import program

CHANNEL_FD = 3
NOBODY_ID = 65534
READY_FORMAT = "<dqq"  # monotonic seconds, run delay ns, CPU ns: all at the moment the program is ready
MAIN_JOB = b"M"  # as a program of its own
CALLS_JOB = b"C"  # as a library; with descriptors of requests and answers
TEST_JOB = b"T"  # tests of a library in another case: descriptors of requests, answers and the report
CHECK_JOB = b"K"  # a checker: descriptors of its files
_STANDARD_FD_COUNT = 4
_MAX_FD_COUNT = 7
_OTHER_FDS_FROM = 200  # out of the way, and below the limit of open files
_FIXED_LIMITS = (
    (resource.RLIMIT_CORE, 0),
    (resource.RLIMIT_NOFILE, 256),
    (resource.RLIMIT_MEMLOCK, 0),
    (resource.RLIMIT_MSGQUEUE, 0),
    (resource.RLIMIT_SIGPENDING, 64),
    (resource.RLIMIT_STACK, 64 << 20),
)
_NO_CAPABILITIES = "0" * 16
_ZYGOTE_PROCESSES = 4  # the zygote, its parent, the next child, and one that judges


class Sandbox:
    """What a zygote prepares once for all of its children."""

    def __init__(self, settings: dict, rootless: bool, filter_headers, last_capability: int):
        self.settings = settings
        self.rootless = rootless
        self.filter_header, self.socketless_filter_header = filter_headers
        self.last_capability = last_capability
        self.stage = "start"

    def run_child(self, channel_fd: int, sequence: int) -> None:
        """The whole life of a case's process. Never returns."""
        try:
            self._isolate(channel_fd, sequence)
        except BaseException as error:
            self._report_failure(channel_fd, error)
            os._exit(70)
        channel = socket.socket(fileno=CHANNEL_FD)
        job = self._wait_for_job(channel)
        if job is None:
            os._exit(0)
        kind, source, other_fds = job
        if kind == TEST_JOB:
            kernel.install_seccomp(self.socketless_filter_header)
            _forget_supervisor_modules()
            channel.close()
            judge.judge(source, *other_fds)
        try:
            code = program.compile_source(source)
        except program.RejectedSource as error:
            channel.send(b"S" + str(error).encode("utf-8", "replace")[:2000])
            os._exit(0)
        with open("/tmp/" + program.FILE_NAME, "wb") as file:
            file.write(source)
        del source
        _forget_supervisor_modules()
        if kind == CHECK_JOB:
            _lay_out_files(other_fds)
        delay_ns, cpu_ns = _own_schedstat()
        channel.send(b"R" + struct.pack(READY_FORMAT, time.monotonic(), delay_ns, cpu_ns))
        channel.close()
        if kind == CALLS_JOB:
            calls.answer_calls(code, *other_fds)
        program.run_as_main(code)

    def _isolate(self, channel_fd: int, sequence: int) -> None:
        self.stage = "descriptors"
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if channel_fd != CHANNEL_FD:
            os.dup2(channel_fd, CHANNEL_FD)
        kernel.close_from(CHANNEL_FD + 1)
        self.stage = "session"
        os.setsid()  # kill(0, …) reaches a whole process group, whatever namespace its members are in
        self.stage = "namespaces"
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC)
        self.stage = "mounts"
        self._mount_private_places()
        self.stage = "ids"
        kernel.write_file("/proc/self/oom_score_adj", "1000")
        if os.getpriority(os.PRIO_PROCESS, 0) < 0:  # one that was started low can't be raised without privilege
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        uid = self._become_nobody(sequence)
        self.stage = "privileges"
        kernel.clear_capabilities()
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # so that /dev/stdin can be opened; nothing secret is mapped
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # after the change of ids, which clears it
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.install_seccomp(self.filter_header)
        self.stage = "proof"
        self._prove(uid)

    def _mount_private_places(self) -> None:
        flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        size = "size=%d,nr_inodes=4096,mode=1777" % self.settings["temporary_bytes"]
        kernel.mount("tmpfs", "/tmp", "tmpfs", flags, size)
        kernel.mount("tmpfs", "/dev/shm", "tmpfs", flags, size)
        kernel.mount("proc", "/proc", "proc", flags, None if self.rootless else "subset=pid,hidepid=2")
        os.chdir("/tmp")

    def _become_nobody(self, sequence: int) -> int:
        if self.rootless:
            # A second user namespace in which no id but 65534 exists. The limit at its creation holds for all the
            # processes of the zygote's user, the one set in it for the case's own.
            _limit_processes(self.settings["processes"] + _ZYGOTE_PROCESSES)
            kernel.unshare(kernel.CLONE_NEWUSER)
            _limit_processes(self.settings["processes"])
            kernel.write_file("/proc/self/uid_map", "%d 0 1" % NOBODY_ID)
            kernel.write_file("/proc/self/gid_map", "%d 0 1" % NOBODY_ID)
            kernel.drop_bounding_set(self.last_capability)
            return NOBODY_ID
        uid = self.settings["first_uid"] + sequence % self.settings["uid_count"]
        os.setgroups([])
        os.setresgid(NOBODY_ID, NOBODY_ID, NOBODY_ID)
        os.setresuid(uid, uid, uid)
        return uid

    def _prove(self, uid: int) -> None:
        """Asks the kernel what this process is; anything unexpected ends it before it is used."""
        lines = kernel.read_file("/proc/self/status").decode().splitlines()
        status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
        wanted = {
            "Uid": "\t".join([str(uid)] * 4),
            "Gid": "\t".join([str(NOBODY_ID)] * 4),
            "Pid": "1",
            "PPid": "0",
            "NSpgid": "1",
            "NSsid": "1",
            "CapInh": _NO_CAPABILITIES,
            "CapPrm": _NO_CAPABILITIES,
            "CapEff": _NO_CAPABILITIES,
            "CapBnd": _NO_CAPABILITIES,
            "CapAmb": _NO_CAPABILITIES,
            "NoNewPrivs": "1",
            "Seccomp": "2",
        }
        wrong = {name: status.get(name) for name, value in wanted.items() if status.get(name) != value}
        if not self.rootless and status.get("Groups", "").strip():
            wrong["Groups"] = status["Groups"]
        if not os.statvfs("/").f_flag & os.ST_RDONLY:
            wrong["root"] = "writable"
        if wrong:
            raise RuntimeError("not isolated: %s" % wrong)

    def _report_failure(self, channel_fd: int, error: BaseException) -> None:
        report = {"stage": self.stage, "errno": getattr(error, "errno", None), "detail": str(error)[:500]}
        for fd in (CHANNEL_FD, channel_fd):
            try:
                with socket.socket(fileno=os.dup(fd)) as channel:
                    channel.send(b"E" + json.dumps(report).encode())
                return
            except OSError:
                continue

    def _wait_for_job(self, channel: socket.socket):
        """(kind, source, descriptors besides 0-2, which are in place); None when the supervisor closed the channel."""
        try:
            channel.send(b"I")
            kind, ancillary, _, _ = channel.recvmsg(16, socket.CMSG_SPACE(4 * _MAX_FD_COUNT))
        except OSError:
            return None
        if not kind:
            return None
        fds = array.array("i")
        fds.frombytes(ancillary[0][2])
        source_fd = fds[_STANDARD_FD_COUNT - 1]
        source = os.pread(source_fd, os.fstat(source_fd).st_size, 0)
        others = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _OTHER_FDS_FROM) for fd in fds[_STANDARD_FD_COUNT:]]
        for standard_fd, fd in enumerate(fds[: _STANDARD_FD_COUNT - 1]):
            os.dup2(fd, standard_fd)
        for fd in fds:
            os.close(fd)
        program.open_standard_streams()
        return kind, source, others


def _lay_out_files(fds) -> None:
    """Copies a checker's files to its working directory, and names them in its arguments."""
    for fd, name in zip(fds, checks.FILE_NAMES):
        with open(name, "wb") as file:
            file.write(os.pread(fd, os.fstat(fd).st_size, 0))
        os.close(fd)
    sys.argv += checks.FILE_NAMES


def zygote_limits(settings: dict):
    """Limits that hold for every child; the zygote takes them on first, since a child can only tighten them."""
    return _FIXED_LIMITS + (
        (resource.RLIMIT_FSIZE, settings["temporary_bytes"]),
        (resource.RLIMIT_NPROC, settings["processes"]),
    )


def _limit_processes(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))


def _own_schedstat():
    """(run delay, CPU time) of this process in ns; zeros where the kernel doesn't say."""
    try:
        cpu_ns, delay_ns, _ = kernel.read_file("/proc/self/schedstat", 128).split()
        return int(delay_ns), int(cpu_ns)
    except (OSError, ValueError):
        return 0, 0


def _forget_supervisor_modules() -> None:
    """A program's `import program` finds its own file, not ours."""
    here = os.path.dirname(os.path.abspath(__file__))
    for name, module in list(sys.modules.items()):
        if os.path.dirname(getattr(module, "__file__", None) or "") == here and name != "__main__":
            del sys.modules[name]
    sys.argv = [program.FILE_NAME]
    sys.orig_argv = [sys.executable, program.FILE_NAME]
    sys.path[:] = ["/tmp"] + [entry for entry in sys.path if entry and entry != here]
