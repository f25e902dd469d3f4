"""How much memory a case holds, for hosts without a memory cgroup.

Theory of operation. A case's memory is the proportional set size of all its processes, so that pages shared after a
fork count once, plus what lies in its two tmpfs mounts. PSS is dear to read, so two cheap bounds come first: address
space (untouched thread stacks are in it, so it proves only innocence) and resident size.

Three kinds of memory are in nobody's PSS. Shared anonymous memory survives the process that touched it: such mappings
are counted in full, touched or not. Page tables of sparsely touched address space are counted as they are. What waits
in sockets is counted as if every socket were full, once there are more of them than an honest program has.
"""

from __future__ import annotations

import os
import re

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MANY_SOCKETS = 256
_PAGE_TABLES = re.compile(rb"^VmPTE:\s*(\d+) kB", re.M)
_SHARED_ANONYMOUS = re.compile(rb"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)\s+/dev/zero \(deleted\)", re.M)


def is_over(pids, limit_bytes: int) -> bool:
    """Whether the processes of one case, the first of `pids` its main process, hold more than `limit_bytes`."""
    address_space, resident = _sizes(pids)
    kernel_bytes = _tmpfs_bytes(pids[0]) + _socket_bytes(pids) if pids else 0
    if address_space + kernel_bytes <= limit_bytes:
        return False
    shared = sum(_shared_anonymous(pids).values())
    kernel_bytes += _page_table_bytes(pids)
    if resident + kernel_bytes + shared <= limit_bytes:
        return False
    private, shared_resident = _proportional(pids)
    return private + max(shared_resident, kernel_bytes + shared) > limit_bytes


def _sizes(pids):
    address_space = resident = 0
    for pid in pids:
        fields = _read("/proc/%d/statm" % pid).split()
        if len(fields) > 1:
            address_space += int(fields[0]) * _PAGE_BYTES
            resident += int(fields[1]) * _PAGE_BYTES
    return address_space, resident


def _proportional(pids):
    """(private and file-backed bytes, shared-memory bytes). A process that hides its maps counts by resident size."""
    private = shared = 0
    for pid in pids:
        values = {}
        for line in _read("/proc/%d/smaps_rollup" % pid).splitlines():
            name, _, rest = line.partition(b":")
            if name in (b"Pss", b"Pss_Shmem"):
                values[name] = int(rest.split()[0]) * 1024
        if b"Pss" not in values:
            private += _sizes([pid])[1]
            continue
        shmem = values.get(b"Pss_Shmem", 0)
        private += values[b"Pss"] - shmem
        shared += shmem
    return private, shared


def _shared_anonymous(pids) -> dict:
    """{inode: bytes} of the shared anonymous mappings."""
    mappings = {}
    for pid in pids:
        for start, end, inode in _SHARED_ANONYMOUS.findall(_read("/proc/%d/maps" % pid)):
            size = int(end, 16) - int(start, 16)
            mappings[inode] = max(size, mappings.get(inode, 0))
    return mappings


def _tmpfs_bytes(main_pid: int) -> int:
    total = 0
    for place in ("tmp", "dev/shm"):
        try:
            usage = os.statvfs("/proc/%d/root/%s" % (main_pid, place))
        except OSError:
            continue
        total += (usage.f_blocks - usage.f_bfree) * usage.f_frsize
    return total


def _page_table_bytes(pids) -> int:
    total = 0
    for pid in pids:
        found = _PAGE_TABLES.search(_read("/proc/%d/status" % pid))
        total += int(found.group(1)) * 1024 if found else 0
    return total


def _socket_bytes(pids) -> int:
    """What the processes' sockets may hold; nothing for a few. A process alone can't open enough of them."""
    if len(pids) < 2:
        return 0
    sockets = set()
    for pid in pids:
        directory = "/proc/%d/fd/" % pid
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        for name in names:
            try:
                target = os.readlink(directory + name)
            except OSError:
                continue
            if target.startswith("socket:"):
                sockets.add(target)
    return len(sockets) * _socket_buffer_bytes() if len(sockets) >= _MANY_SOCKETS else 0


def _socket_buffer_bytes() -> int:
    """The most that one socket can be told to buffer; the kernel doubles what it is told."""
    return 2 * int(_read("/proc/sys/net/core/wmem_max") or 212992)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
