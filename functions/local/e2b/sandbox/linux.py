"""The few Linux calls that Python's standard library lacks. Each raises OSError with the name of what failed."""

import ctypes
import fcntl
import os
import platform
import socket
import struct

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36
_AT_FDCWD, _AT_RECURSIVE, _SYS_MOUNT_SETATTR = -100, 0x8000, 442
_KEYCTL_JOIN_SESSION_KEYRING = 1
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}.get(platform.machine())
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def _check(result, what):
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


def _path(value):
    return None if value is None else os.fsencode(value)


def unshare(flags):
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source, target, kind=None, flags=0, options=None):
    _check(
        _libc.mount(_path(source), _path(target), _path(kind), ctypes.c_ulong(flags), _path(options)),
        f"mount {source} on {target}",
    )


def unmount_detached(target):
    _check(_libc.umount2(_path(target), ctypes.c_int(_MNT_DETACH)), f"umount {target}")


def pivot_into(new_root):
    """Makes `new_root` the root and lets the old one go."""
    os.chdir(new_root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    unmount_detached(".")
    os.chdir("/")


def make_tree_read_only(path):
    """Read-only and without setuid programs, mounts below included. Needs Linux 5.12."""
    _set_mount_attributes(path, _AT_RECURSIVE, MS_RDONLY | MS_NOSUID, 0)


def make_writable(path):
    _set_mount_attributes(path, 0, 0, MS_RDONLY)


def _set_mount_attributes(path, flags, added, removed):
    attributes = struct.pack("<QQQQ", added, removed, 0, 0)
    done = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(_path(path)),
        ctypes.c_uint(flags),
        ctypes.c_char_p(attributes),
        ctypes.c_size_t(len(attributes)),
    )
    _check(done, f"mount_setattr {path}")


def die_with_parent(signal_number):
    """Cleared by the kernel when the process changes its uid: call it after that."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl(PDEATHSIG)")


def hide_from_debuggers():
    """Not even root of the sandbox may read this process's memory or steal its descriptors."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, ctypes.c_ulong(0), 0, 0, 0), "prctl(DUMPABLE)")


def adopt_orphans():
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl(SUBREAPER)")


def leave_session_keyring():
    """The session's keyring is inherited and may hold the host user's keys."""
    if _SYS_KEYCTL is not None:
        _libc.syscall(ctypes.c_long(_SYS_KEYCTL), ctypes.c_int(_KEYCTL_JOIN_SESSION_KEYRING), None)


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(probe, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | _IFF_UP, b""))
