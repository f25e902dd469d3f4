"""A memory cgroup per slot, where this process may make one (root, cgroup v1 or v2).

Theory of operation. The zygote enters the slot's group once, after its own memory was charged elsewhere; its children
are born inside, so no case pays for a migration. The limit is set anew when a case starts. The kernel then enforces
what `memory.py` could only watch, and counts its kills, which tells a memory limit from any other SIGKILL.

Groups can't be removed by a process that was killed, so each start removes the empty leftovers of others.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

_PREFIX = "code-rewards-"
_STALE_AFTER_S = 60.0
# Two children may wait in the same group while a case runs, each with less than 2 MiB; they are not the case's.
_SPARE_CHILDREN_BYTES = 6 << 20
_COUNTERS_BYTES = 1024


class Pressure(NamedTuple):
    limit_hits: int
    kills: int


class MemoryGroup:
    def __init__(self, path: str, is_v2: bool):
        self.path = path
        self._limit_file = path + ("/memory.max" if is_v2 else "/memory.limit_in_bytes")
        # Read at each case's start and end, so they stay open.
        self._kills_fd = _open(path + ("/memory.events" if is_v2 else "/memory.oom_control"))
        self._hits_fd = _open(path + ("/memory.events" if is_v2 else "/memory.failcnt"))
        self._usage_file = path + ("/memory.current" if is_v2 else "/memory.usage_in_bytes")
        self._limit_bytes = 0

    def add(self, pid: int) -> None:
        _write(self.path + "/cgroup.procs", str(pid))

    def set_limit(self, limit_bytes: int) -> bool:
        """Whether the limit is in force. The kernel refuses one below what the group is charged with, which can be
        more for a moment after a case that was killed; then it is for the caller to try again, and to watch."""
        if limit_bytes != self._limit_bytes:
            try:
                _write(self._limit_file, str(limit_bytes + _SPARE_CHILDREN_BYTES))
            except OSError:
                return False
            self._limit_bytes = limit_bytes
        return True

    def usage_bytes(self) -> int:
        try:
            with open(self._usage_file, "rb") as file:
                return int(file.read())
        except (OSError, ValueError):
            return 0

    def pressure(self) -> Pressure:
        """How often the group met its own limit, and how often a process of it was killed for want of memory."""
        return Pressure(_read_count(self._hits_fd, b"max "), _read_count(self._kills_fd, b"oom_kill "))

    def ran_out_since(self, before: Pressure) -> bool:
        """Whether a process was killed over this group's own limit. The kernel counts its kills for a parent's limit,
        or for the whole machine's, in the group of the victim too: those say nothing of the program."""
        now = self.pressure()
        return now.kills > before.kills and now.limit_hits > before.limit_hits

    def remove(self) -> None:
        """Its processes are dead, but the kernel may take a moment to let go of the last one."""
        os.close(self._kills_fd)
        os.close(self._hits_fd)
        for _ in range(50):
            try:
                os.rmdir(self.path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.01)


def make_memory_group(name: str):
    """A new group, or None where the host gives none."""
    root, is_v2 = _memory_root()
    if root is None:
        return None
    path = "%s/%s%d-%s" % (root, _PREFIX, os.getpid(), name)
    group = None
    try:
        os.mkdir(path)
        group = MemoryGroup(path, is_v2)
        if not group.set_limit(1 << 30):
            raise OSError("the group takes no limit")
        if is_v2:
            try:
                _write(path + "/memory.swap.max", "0")
            except OSError:
                pass  # a kernel without swap accounting
        return group
    except OSError:
        _remove(path, group)
        return None


def _remove(path: str, group) -> None:
    """What a group that came to nothing left."""
    if group:
        group.remove()
        return
    try:
        os.rmdir(path)
    except OSError:
        pass


def remove_stale_groups() -> None:
    root, _ = _memory_root()
    if root is None:
        return
    for entry in os.listdir(root):
        path = root + "/" + entry
        try:
            if entry.startswith(_PREFIX) and time.time() - os.stat(path).st_mtime > _STALE_AFTER_S:
                os.rmdir(path)  # refused while a process is inside
        except OSError:
            continue


def _memory_root():
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                left, _, right = line.partition(" - ")
                point, kind = left.split()[4], right.split()
                if kind[0] == "cgroup" and "memory" in kind[2].split(","):
                    return point, False
                if kind[0] == "cgroup2" and _enable_memory(point):
                    return point, True
    except OSError:
        pass
    return None, False


def _enable_memory(point: str) -> bool:
    try:
        with open(point + "/cgroup.controllers") as file:
            if "memory" not in file.read().split():
                return False
        _write(point + "/cgroup.subtree_control", "+memory")
        return True
    except OSError:
        return False


def _read_count(fd: int, name: bytes) -> int:
    """A counter of a file of `name value` lines, or of a file that holds one number."""
    try:
        for line in os.pread(fd, _COUNTERS_BYTES, 0).splitlines():
            if line.startswith(name) or line.isdigit():
                return int(line.split()[-1])
    except (OSError, ValueError):
        pass
    return 0


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
