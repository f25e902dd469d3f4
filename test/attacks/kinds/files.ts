/** Full disks, links, and everything that should be read-only or absent. */
import type { Attack } from "../attack.ts";

export const files: Attack[] = [
  {
    name: "a full disk",
    source: `
for folder in ("/tmp", "/dev/shm"):
    written = 0
    def fill():
        global written
        for n in range(100):
            with open(f"{folder}/{n}", "wb", buffering=0) as file:
                for _ in range(16): written += file.write(bytes(1 << 16))
        return written
    attempt(folder, fill)
    if written > 16 << 20: found.append(f"{written} bytes")
report()
`,
  },
  {
    name: "a disk full of empty files, deep folders and long names",
    source: `
def many():
    for n in range(100_000): open(f"/tmp/{n}", "w").close()
    return "100,000 files"
attempt("many", many)
os.chdir("/dev/shm")
def deep():
    for n in range(100_000): os.mkdir("d" * 200); os.chdir("d" * 200)
    return "100,000 folders"
attempt("deep", deep)
report()
`,
    limits: { time_ms: 3000 },
  },
  {
    name: "files larger than they are",
    source: `
def grow(path, size):
    with open(path, "wb") as file: os.truncate(file.fileno(), size)
    return size
attempt("sparse", lambda: grow("/tmp/a", 1 << 40))
attempt("sparse", lambda: grow("/dev/shm/a", 17 << 20))
def allocate():
    with open("/tmp/b", "wb") as file: os.posix_fallocate(file.fileno(), 0, 17 << 20)
    return "allocated"
attempt("allocate", allocate)
report()
`,
  },
  {
    name: "links to what is outside",
    source: `
paths = ["/etc/shadow", "/root", targets["witness"], "/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/home", "/var"]
for n, path in enumerate(paths):
    os.symlink(path, f"link{n}")
    def read():
        if os.path.isdir(f"link{n}"): return [name for name in os.listdir(f"link{n}") if name in ("home", "var", "srv", "boot")] or None
        with open(f"link{n}", "rb") as file: return file.read(100)
    attempt(path, read)
    attempt(f"hard link to {path}", lambda: os.link(path, f"hard{n}") or os.stat(f"hard{n}").st_ino)
    attempt("up", lambda: open("../" * 20 + path, "rb").read(100) if os.path.isfile("../" * 20 + path) else None)
report()
`,
    worksOutside: true,
  },
  {
    name: "a folder that it moves away under itself",
    source: `
import threading
os.makedirs("a/b/c")
folder = os.open("a/b/c", os.O_RDONLY)
os.rename("a/b/c", "c")
def climb():
    here = folder
    for _ in range(30): here = os.open("..", os.O_RDONLY, dir_fd=here)
    names = os.listdir(here)
    return [name for name in names if name in ("home", "var", "srv", "boot", "run")] or None
attempt("climb", climb)
attempt("escape", lambda: os.chroot("c"))
report()
`,
    worksOutside: true,
  },
  {
    name: "writing where it was read from",
    source: `
places = ["/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/proc/sys/kernel", "/bin", "/lib", sys.prefix, os.path.dirname(os.__file__)]
places += [path for path in sys.path if path != "/tmp" and os.path.isdir(path)]
for place in places:
    def plant():
        with open(place + "/sitecustomize.py", "w") as file: file.write("print('forged')")
        return "written"
    attempt(f"new file in {place}", plant)
    attempt(f"new folder in {place}", lambda: os.mkdir(place + "/planted") or "made")
for path in (os.__file__, json.__file__, sys.executable, "/etc/passwd", "/etc/ld.so.cache", "/dev/null"):
    attempt(f"{path} opened", lambda: os.open(path, os.O_WRONLY) if path != "/dev/null" else None)
    attempt(f"{path} removed", lambda: os.unlink(path) or "removed")
    attempt(f"{path} changed", lambda: os.chmod(path, 0o777) or "changed")
    attempt(f"{path} owned", lambda: os.chown(path, os.getuid(), -1) or "owned")
    attempt(f"{path} touched", lambda: os.utime(path, (0, 0)) or "touched")
    attempt(f"{path} marked", lambda: os.setxattr(path, "user.mark", b"1") or "marked")
report()
`,
  },
  {
    name: "renaming and replacing the places it was given",
    source: `
for path in ("/tmp", "/dev/shm", "/proc", "/dev/null", "/dev/stdin"):
    attempt(f"{path} renamed", lambda: os.rename(path, path + "2") or "renamed")
    attempt(f"{path} removed", lambda: (os.rmdir if os.path.isdir(path) else os.unlink)(path) or "removed")
    attempt(f"{path} replaced", lambda: os.symlink("/usr", path) or "replaced")
report()
`,
  },
  {
    name: "devices",
    source: `
for name in ("mem", "kmsg", "port", "sda", "vda", "vdb", "nvme0n1", "loop0", "loop-control", "fuse", "kvm", "net/tun", "vsock", "vhost-vsock", "console", "tty", "ptmx", "pts/0", "mqueue", "hugepages", "snapshot", "userfaultfd"):
    for mode in (os.O_RDONLY, os.O_RDWR): attempt(f"/dev/{name}", lambda: os.open("/dev/" + name, mode))
for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFCHR, 1, 3), (stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0)):
    attempt(f"device {major}:{minor}", lambda: os.mknod("/tmp/device", kind | 0o666, os.makedev(major, minor)) or "made")
disturb(lambda: os.mknod("/tmp/white", stat.S_IFCHR, 0))
report()
`,
  },
  {
    name: "programs of its own making, and such as raise privileges",
    source: `
import shutil, subprocess
shutil.copy("/usr/bin/id", "/tmp/id"); os.chmod("/tmp/id", 0o6777)
attempt("its own", lambda: subprocess.run(["/tmp/id"], capture_output=True).stdout)
os.chmod("/tmp/id", 0o777)
attempt("its own", lambda: subprocess.run(["/tmp/id"], capture_output=True).stdout)
for folder in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/local/bin"):
    for path in glob.glob(folder + "/*"):
        try: mode = os.stat(path).st_mode
        except OSError: continue
        if mode & (stat.S_ISUID | stat.S_ISGID) and stat.S_ISREG(mode) and os.statvfs(path).f_flag & os.ST_NOSUID == 0:
            found.append(f"raises privileges: {path}")
report()
`,
  },
  {
    name: "leases and locks on files that others read",
    source: `
import fcntl
for path in [os.__file__, json.__file__, sys.executable] + glob.glob(os.path.dirname(os.__file__) + "/t*.py"):
    fd = os.open(path, os.O_RDONLY)
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK): attempt(f"lease of {path}", lambda: fcntl.fcntl(fd, fcntl.F_SETLEASE, kind) or "leased")
    attempt(f"lock of {path}", lambda: fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB) or "locked")
    os.close(fd)
report()
`,
  },
  {
    name: "kernel settings",
    source: `
for path in ("kernel/hostname", "kernel/core_pattern", "vm/overcommit_memory", "net/ipv4/ip_forward", "user/max_user_namespaces", "kernel/randomize_va_space", "vm/drop_caches"):
    attempt(path, lambda: os.open("/proc/sys/" + path, os.O_WRONLY))
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/ns_last_pid", "/proc/self/uid_map", "/proc/self/setgroups"):
    def write():
        with open(path, "w") as file: file.write("0 0 1" if path.endswith("map") else "0")
        return "written"
    attempt(path, write)
for path in ("/sys", "/sys/fs/cgroup", "/run", "/var", "/home"): attempt(path, lambda: os.listdir(path))
for path in ("/proc/kcore", "/proc/kmsg", "/proc/kpagecount"): attempt(path, lambda: open(path, "rb").read(9))
report()
`,
  },
];
