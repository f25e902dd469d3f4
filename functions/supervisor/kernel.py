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
_LAST_FD = 0x7FFFFFFF

# Declared types let ctypes convert plain arguments itself, which is cheaper than handing it objects of its own.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
_close_range = _libc["syscall"]  # a function object of its own
_close_range.argtypes = [ctypes.c_long, ctypes.c_uint, ctypes.c_uint, ctypes.c_int]
_fork = ctypes.PyDLL(None).fork


def _check(result: int, what: str, detail: str = "") -> int:
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, "%s%s: %s" % (what, detail, os.strerror(code)))
    return result


def _bytes(text):
    return text.encode() if isinstance(text, str) else text


def fork_without_hooks() -> int:
    """`os.fork` for a process that has one thread and always had, without what the interpreter does in a child: it
    makes locks anew which nobody can hold, and touches 150 pages for it that the child must then copy. Nothing that
    the standard library registers for a child runs; the caller sees to what matters of it."""
    pid = _fork()
    if pid == -1:
        raise OSError("fork: refused")
    return pid


def mount(source, target, kind=None, flags: int = 0, options=None) -> None:
    """Names as text or bytes."""
    _check(_libc.mount(_bytes(source), _bytes(target), _bytes(kind), flags, _bytes(options)), "mount ", str(target))


def unmount_detached(target: str) -> None:
    _check(_libc.umount2(_bytes(target), MNT_DETACH), "umount ", target)


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
    _check(_libc.prctl(option, argument, 0, 0, 0), "prctl")


def install_seccomp(filter_address: int) -> None:
    """Takes the address of a sock_fprog, which the caller keeps alive with its instructions."""
    _check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_address, 0, 0), "seccomp filter")


def drop_bounding_set(last_capability: int) -> None:
    for capability in range(last_capability + 1):
        prctl(PR_CAPBSET_DROP, capability)


def clear_capabilities() -> None:
    header = struct.pack("<II", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, b"\0" * 24), "capset")


def clear_inheritable_capabilities() -> None:
    header, sets = struct.pack("<II", _CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
    _check(_libc.capget(header, sets), "capget")
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("<6I", sets.raw)
    kept = struct.pack("<6I", effective, permitted, 0, effective_high, permitted_high, 0)
    _check(_libc.capset(header, kept), "capset")


def close_all_but(kept_fd: int) -> None:
    """Closes what is open besides the standard descriptors and one other."""
    for first, last in ((3, kept_fd - 1), (kept_fd + 1, _LAST_FD)):
        if first <= last and _close_range(_SYS_CLOSE_RANGE, first, last, 0) == -1:
            os.closerange(first, min(last, 4096))


def write_file(path: str, content) -> None:
    """One write of text or bytes to an existing (kernel) file; no truncation, no buffering."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, _bytes(content))
    finally:
        os.close(fd)


def read_file(path: str, limit_bytes: int = 65536) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, limit_bytes)
    finally:
        os.close(fd)
