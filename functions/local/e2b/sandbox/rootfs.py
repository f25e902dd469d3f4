"""What a sandbox sees as its file system.

A tmpfs of its own is the root, so everything writable is private, counted against one limit, and gone with the
sandbox's last process: nothing is ever on the host's disk. From the host come, read-only, the system's programs and
libraries, the Python that runs this file, and the few files of /etc that programs need. Homes, /var, /sys, other
mounts and the rest of /etc aren't there at all.

Read-only must hold against the sandbox's own root, who may remount what it mounted. So the keeper makes the host's
whole tree read-only in a mount namespace of its own; a sandbox copies it into a namespace of fewer rights, and there
the kernel locks the flag, also on what is bound from it.
"""

import os
import sys

import linux

SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "nix")
ETC_ENTRIES = [
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "pki",
    "protocols",
    "services",
    "ssl",
]
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
STAGING_FOLDERS = ("mnt", "media", "srv", "opt", "tmp")

# The sticky, world-writable ones, and the homes.
SHARED_FOLDERS = ("tmp", "var/tmp", "run")
SHARED_MEMORY_MIB = 64


def python_prefixes():
    """Folders that the running interpreter needs and that aren't in the system's folders."""
    found = []
    for prefix in (sys.base_prefix, sys.prefix, os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))):
        real = os.path.realpath(prefix)
        if real.strip("/").split("/")[0] not in SYSTEM_FOLDERS and real != "/" and real not in found:
            found.append(real)
    return found


def prepare_host_tree(reads_as_root):
    """Makes the tree that sandboxes take from. Runs once, in a mount namespace of the keeper's own."""
    linux.mount(None, "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    if reads_as_root:
        _uncover(python_prefixes())
    linux.make_tree_read_only("/")
    linux.make_writable("/proc")  # a sandbox may mount a proc of its own only as writable as this one


def _uncover(prefixes):
    """Makes interpreters in a closed home (0700) reachable without opening the home: covers the first closed folder
    on the way with an empty one that holds nothing but them. Sandboxes have no rights of the host's root."""
    held = {prefix: os.open(prefix, os.O_PATH) for prefix in prefixes if _first_closed_folder(prefix)}
    for closed in {_first_closed_folder(prefix) for prefix in held}:
        linux.mount("tmpfs", closed, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1m")
    for prefix, folder in held.items():
        os.makedirs(prefix, exist_ok=True)
        linux.mount(f"/proc/self/fd/{folder}", prefix, flags=linux.MS_BIND | linux.MS_REC)
        os.close(folder)


def _first_closed_folder(path):
    parts = path.strip("/").split("/")
    for depth in range(1, len(parts) + 1):
        folder = "/" + "/".join(parts[:depth])
        if os.stat(folder).st_mode & 0o001 == 0:
            return folder
    return None


def build(size_mib, users, search_path):
    """Builds the root and moves into it. Runs as root of the sandbox's own user, mount and pid namespaces."""
    prefixes = python_prefixes()
    root = "/" + _staging_folder(prefixes)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode=755,size={size_mib}m")
    for name in SYSTEM_FOLDERS:
        _add_system_folder(root, name)
    for prefix in prefixes:
        _bind(prefix, root + prefix)
    _add_etc(root, users, search_path)
    _add_private_folders(root, users)
    _add_devices(root)
    os.mkdir(root + "/proc")
    linux.mount("proc", root + "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.pivot_into(root)


def _staging_folder(prefixes):
    for name in STAGING_FOLDERS:
        used = any(prefix.startswith(f"/{name}/") for prefix in prefixes)
        if os.path.isdir("/" + name) and not used:
            return name
    raise OSError("none of /{} exists and is free to build a root on".format(", /".join(STAGING_FOLDERS)))


def _add_system_folder(root, name):
    source = "/" + name
    if os.path.islink(source):
        os.symlink(os.readlink(source), root + source)
    elif os.path.isdir(source):
        _bind(source, root + source)


def _bind(source, target):
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)


def _add_etc(root, users, search_path):
    os.mkdir(root + "/etc")
    for name in ETC_ENTRIES:
        source = "/etc/" + name
        if os.path.exists(source) and os.access(source, os.R_OK):
            _bind(source, root + source)
    accounts = [(u.name, u.uid, u.gid, u.home) for u in users] + [("nobody", 65534, 65534, "/nonexistent")]
    texts = {
        "passwd": "".join(f"{name}:x:{uid}:{gid}::{home}:/bin/bash\n" for name, uid, gid, home in accounts),
        "group": "".join(f"{name}:x:{gid}:\n" for name, _, gid, _ in accounts),
        "hosts": "127.0.0.1 localhost e2b.local\n::1 localhost\n",
        "hostname": "e2b.local\n",
        "profile": f"export PATH={search_path}\n",
    }
    for name, text in texts.items():
        with open(f"{root}/etc/{name}", "w") as file:
            file.write(text)


def _add_private_folders(root, users):
    for name in SHARED_FOLDERS:
        os.makedirs(f"{root}/{name}", exist_ok=True)  # the host's Python may be in one
        os.chmod(f"{root}/{name}", 0o1777)
    for user in users:
        os.makedirs(root + user.home, 0o755, exist_ok=True)
        os.chown(root + user.home, user.uid, user.gid)


def _add_devices(root):
    os.mkdir(root + "/dev")
    for name in DEVICES:
        target = f"{root}/dev/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        linux.mount("/dev/" + name, target, flags=linux.MS_BIND)
    for link, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink("/proc/self/fd" + target, f"{root}/dev/{link}")
    os.mkdir(root + "/dev/shm")
    options = f"mode=1777,size={SHARED_MEMORY_MIB}m"
    linux.mount("tmpfs", root + "/dev/shm", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, options)
    os.mkdir(root + "/dev/pts")
    options = "newinstance,ptmxmode=0666,mode=620"
    linux.mount("devpts", root + "/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, options)
    os.symlink("pts/ptmx", root + "/dev/ptmx")
