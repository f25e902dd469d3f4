"""The root directory that every case of a zygote shares: minimal and recursively read-only.

Theory of operation. Built once by the zygote in its own mount namespace, on a small tmpfs: /usr and the interpreter's
own prefix are bound in, the usual links beside /usr are repeated, five devices and four files of /etc are made. Then
everything, submounts included, becomes read-only and takes the old root's place. What a case may write to (/tmp and
/dev/shm) and its /proc are mounted over the empty directories here, by the case itself, in a namespace of its own.

Bind sources are opened before the tmpfs hides them and are bound through /proc/self/fd, so that an interpreter below
a directory which the case's user couldn't pass (say /root) works all the same.
"""

from __future__ import annotations

import os
import stat
import sys

import kernel

_STAGE = "/tmp"
_DEVICES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_COPIED_FILES = ("/etc/ld.so.cache", "/etc/localtime")
_MADE_FILES = {
    "/etc/passwd": b"root:x:0:0::/:/bin/false\nnobody:x:65534:65534::/tmp:/bin/false\n",
    "/etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}
MOUNT_POINTS = ("proc", "tmp", "dev/shm")


def interpreter_prefixes() -> list:
    """Directories outside /usr without which the running interpreter can't work."""
    prefixes = {os.path.realpath(p) for p in (sys.base_prefix, sys.base_exec_prefix, sys.prefix)}
    return sorted(p for p in prefixes if not (p + "/").startswith("/usr/"))


def enter_minimal_root(can_make_devices: bool) -> None:
    """Replaces the root of the calling process; its mount namespace must already be private."""
    binds, links = _plan_tree()
    files = {path: data for path, data in ((p, _read_or_none(p)) for p in _COPIED_FILES) if data is not None}
    files.update(_MADE_FILES)
    device_fds = {} if can_make_devices else {name: _open_path("/dev/" + name) for name in _DEVICES}
    kernel.mount("tmpfs", _STAGE, "tmpfs", kernel.MS_NOSUID, "size=4m,nr_inodes=400,mode=755")
    previous_umask = os.umask(0o022)
    for directory in ("dev", "etc") + MOUNT_POINTS:
        os.mkdir(_STAGE + "/" + directory)
    # A new proc may only be mounted in a user namespace while another is fully visible, as the host's is now.
    kernel.mount("proc", _STAGE + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    for name, target in links.items():
        os.symlink(target, _STAGE + "/" + name)
    for path, fd in binds:
        _bind(fd, _STAGE + path, make_directory=True)
    for path, data in files.items():
        with open(_STAGE + path, "wb") as file:
            file.write(data)
    _make_devices(device_fds)
    os.umask(previous_umask)
    kernel.make_tree_readonly(_STAGE)
    os.chdir(_STAGE)
    kernel.pivot_root_onto_cwd()
    kernel.unmount_detached(".")
    os.chdir("/")


def _plan_tree():
    paths = ["/usr"] + interpreter_prefixes()
    links = {}
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        if os.path.islink("/" + name):
            links[name] = os.readlink("/" + name)
        elif os.path.isdir("/" + name):
            paths.append("/" + name)
    return [(path, _open_path(path)) for path in paths], links


def _make_devices(bound_fds: dict) -> None:
    for name, minor in _DEVICES.items():
        path = _STAGE + "/dev/" + name
        if name in bound_fds:  # mknod is refused in a user namespace
            open(path, "w").close()
            _bind(bound_fds[name], path)
        else:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            os.chmod(path, 0o666)
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, _STAGE + "/dev/" + name)


def _bind(fd: int, target: str, make_directory: bool = False) -> None:
    if make_directory:
        os.makedirs(target, exist_ok=True)
    kernel.mount("/proc/self/fd/%d" % fd, target, None, kernel.MS_BIND | kernel.MS_REC)
    os.close(fd)


def _open_path(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _read_or_none(path: str):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return None
