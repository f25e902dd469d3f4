"""Taking everything from a forked process but what one case needs, and asking the kernel whether that is done.

Theory of operation. What a child does is the same each time, so the zygote lists the steps once, with their arguments
ready, and a child only takes them. Each page that a child writes to must first be copied from the zygote, and in Python
every object that is looked at is written to: what is done here in fewer steps, over fewer objects, is what makes a case
cheap. What children inherit (limits, groups, no-new-privileges, the bounding set), the zygote has done to itself.

Order matters: namespaces and mounts first (they need privilege), then the ids, then capabilities and the filter; each
step can only tighten what came before. At the end nothing is believed: the kernel is asked.
"""

from __future__ import annotations

import os
import resource
import signal

import kernel

NOBODY_ID = 65534
# Before anything of the host, but after a case: with equal scores, children that wait would go before its processes.
OOM_SCORE_OF_WAITING, OOM_SCORE_OF_CASE = b"500", b"1000"
_MOUNT_FLAGS = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_NO_CAPABILITIES = b"0" * 16
_ZYGOTE_PROCESSES = 6  # the zygote, its parent, three children that wait or are prepared, and one that judges
_STATUS_BYTES = 8192
_WANTED_OF_ALL = {
    b"Gid": b"\t".join([b"%d" % NOBODY_ID] * 4),
    b"Pid": b"1",
    b"PPid": b"0",
    b"NSpgid": b"1",
    b"NSsid": b"1",
    b"CapInh": _NO_CAPABILITIES,
    b"CapPrm": _NO_CAPABILITIES,
    b"CapEff": _NO_CAPABILITIES,
    b"CapBnd": _NO_CAPABILITIES,
    b"CapAmb": _NO_CAPABILITIES,
    b"NoNewPrivs": b"1",
    b"Seccomp": b"2",
}


class Isolation:
    """What a zygote prepares once for all of its children. `stage` says how far a child came."""

    def __init__(self, settings: dict, rootless: bool, filter_address: int, last_capability: int):
        self.stage = "start"
        self._settings = settings
        self._rootless = rootless
        self._last_capability = last_capability
        self._uid = NOBODY_ID
        self._wanted_lines = [b"\n%s:\t%s\n" % line for line in _WANTED_OF_ALL.items()]
        self._steps = (
            ("session", os.setsid, ()),  # kill(0, …) reaches a process group, whatever namespace its members are in
            ("namespaces", kernel.unshare, (kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC,)),
            *self._list_mounts(),
            ("mounts", os.chdir, ("/tmp",)),
            ("out of memory", kernel.write_file, ("/proc/self/oom_score_adj", OOM_SCORE_OF_WAITING)),
            *self._list_change_of_priority(),
            ("ids", self._become_nobody_in_own_namespace if rootless else self._become_nobody, ()),
            # So that /dev/stdin can be opened; nothing secret is mapped. After the change of ids, which clears both.
            ("privileges", kernel.prctl, (kernel.PR_SET_DUMPABLE, 1)),
            ("privileges", kernel.prctl, (kernel.PR_SET_PDEATHSIG, signal.SIGKILL)),
            ("privileges", kernel.install_seccomp, (filter_address,)),
            ("proof", self._prove, ()),
        )

    def enter(self, kept_fd: int, number: int) -> None:
        """Isolates this process; keeps one descriptor besides the standard ones. Raises at whatever goes wrong."""
        self.stage = "descriptors"
        kernel.close_all_but(kept_fd)
        self._uid = NOBODY_ID if self._rootless else self._settings["first_uid"] + number % self._settings["uid_count"]
        for stage, take, arguments in self._steps:
            self.stage = stage
            take(*arguments)

    def _list_mounts(self):
        size = b"size=%d,nr_inodes=4096,mode=1777" % self._settings["temporary_bytes"]
        proc_options = None if self._rootless else b"subset=pid,hidepid=2"
        mounts = ((b"tmpfs", b"/tmp", size), (b"tmpfs", b"/dev/shm", size), (b"proc", b"/proc", proc_options))
        return [("mounts", kernel.mount, (kind, place, kind, _MOUNT_FLAGS, options)) for kind, place, options in mounts]

    def _list_change_of_priority(self):
        """The zygote rose above programs where it could; one that was started low can't be raised without privilege."""
        if os.getpriority(os.PRIO_PROCESS, 0) >= 0:
            return []
        return [("priority", os.setpriority, (os.PRIO_PROCESS, 0, 0))]

    def _become_nobody(self) -> None:
        """Groups are nobody's already; with the last id of root go all capabilities."""
        os.setresuid(self._uid, self._uid, self._uid)

    def _become_nobody_in_own_namespace(self) -> None:
        """A second user namespace in which no id but nobody's exists. The limit at its creation holds for all the
        processes of the zygote's user, the one set in it for the case's own."""
        _limit_processes(self._settings["processes"] + _ZYGOTE_PROCESSES)
        kernel.unshare(kernel.CLONE_NEWUSER)
        _limit_processes(self._settings["processes"])
        kernel.write_file("/proc/self/uid_map", "%d 0 1" % NOBODY_ID)
        kernel.write_file("/proc/self/gid_map", "%d 0 1" % NOBODY_ID)
        kernel.drop_bounding_set(self._last_capability)
        kernel.clear_capabilities()

    def _prove(self) -> None:
        """Asks the kernel what this process is; anything unexpected ends it before it is used."""
        status = kernel.read_file("/proc/self/status", _STATUS_BYTES)
        wanted = [*self._wanted_lines, b"\nUid:\t%d\t%d\t%d\t%d\n" % ((self._uid,) * 4)]
        wrong = [_line_of(status, line.partition(b":")[0]) for line in wanted if line not in status]
        if not self._rootless and _line_of(status, b"\nGroups").partition(b":")[2].strip():
            wrong.append(b"Groups")
        if not os.statvfs("/").f_flag & os.ST_RDONLY:
            wrong.append(b"the root is writable")
        if wrong:
            raise RuntimeError("not isolated: " + b", ".join(wrong).decode())


def _line_of(status: bytes, name: bytes) -> bytes:
    """A line of a process's status, or only its name where the kernel has none."""
    return name[1:] + status.partition(name)[2].partition(b"\n")[0]


def _limit_processes(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
