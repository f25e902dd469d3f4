"""Kernel calls that the standard library of Python 3.9 lacks, with their constants.

Each function raises OSError with the call's name when the kernel refuses.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

MACHINE = platform.machine()

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY_NOSUID = 1 | 2
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_MOUNT_SETATTR = 442
_SYS_CLOSE_RANGE = 436

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, "%s: %s" % (what, os.strerror(code)))
    return result


def _bytes(text):
    return None if text is None else text.encode()


def mount(source, target: str, kind=None, flags: int = 0, options=None) -> None:
    _check(
        _libc.mount(_bytes(source), _bytes(target), _bytes(kind), ctypes.c_ulong(flags), _bytes(options)),
        "mount " + target,
    )


def unmount_detached(target: str) -> None:
    _check(_libc.umount2(_bytes(target), MNT_DETACH), "umount " + target)


def pivot_root_onto_cwd() -> None:
    """Makes the working directory the root; the old root is then stacked on top of the new one."""
    _check(_libc.syscall(_SYS_PIVOT_ROOT[MACHINE], b".", b"."), "pivot_root")


def make_tree_readonly(path: str) -> None:
    """Read-only including submounts, which a plain remount misses. Needs Linux 5.12."""
    attributes = struct.pack("<QQQQ", _MOUNT_ATTR_RDONLY_NOSUID, 0, 0, 0)
    _check(
        _libc.syscall(_SYS_MOUNT_SETATTR, _AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, len(attributes)),
        "mount_setattr",
    )


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare %#x" % flags)


def enter_namespace(fd: int, kind: int) -> None:
    _check(_libc.setns(fd, kind), "setns")


def set_hostname(name: bytes) -> None:
    _check(_libc.sethostname(name, len(name)), "sethostname")


def prctl(option: int, argument: int = 0) -> None:
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero), "prctl %d" % option)


def install_seccomp(program_header: bytes) -> None:
    """Takes a packed sock_fprog; the caller keeps its instructions alive."""
    _check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program_header), 0, 0), "seccomp filter")


def drop_bounding_set(last_capability: int) -> None:
    for capability in range(last_capability + 1):
        prctl(PR_CAPBSET_DROP, capability)


def clear_capabilities() -> None:
    header = struct.pack("<II", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, b"\0" * 24), "capset")


def close_from(first_fd: int) -> None:
    if _libc.syscall(_SYS_CLOSE_RANGE, first_fd, 0x7FFFFFFF, 0) == -1:
        os.closerange(first_fd, 4096)


def write_file(path: str, text: str) -> None:
    """One write to an existing (kernel) file; no truncation, no buffering."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def read_file(path: str, limit_bytes: int = 65536) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit_bytes)
    finally:
        os.close(fd)
