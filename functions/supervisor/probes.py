"""Hostile programs that the preflight runs through the ordinary path.

Each is what a model could write. `ATTACKS` prints one JSON object, {property: [held, what was seen]}; the others are
judged by how they end. They get what they should not be able to reach (a port, a socket, a file) as their input.
"""

ATTACKS = r"""
import ctypes, json, os, socket, sys
given = json.load(sys.stdin)
found = {}
libc = ctypes.CDLL(None, use_errno=True)
x86 = given["machine"] == "x86_64"

def attempt(name, attack, holds):
    try:
        seen = attack()
    except OSError as error:
        seen = "errno %d" % error.errno
    except Exception as error:
        seen = type(error).__name__
    found[name] = [bool(holds(seen)), str(seen)[:160]]

def fails(seen):
    return isinstance(seen, str) and seen.startswith("errno")

def call(on_x86, on_arm, *arguments):
    result = libc.syscall(on_x86 if x86 else on_arm, *arguments)
    return "errno %d" % ctypes.get_errno() if result == -1 else result

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(0.5)
        s.connect(address)
    return "connected"

def write(path):
    with open(path, "w") as file:
        return file.write("x")

def is_open(fd):
    return not fails(call(72, 25, fd, 1, 0))

def can_make_executable():
    write("/tmp/e")
    os.chmod("/tmp/e", 0o755)
    return os.access("/tmp/e", os.X_OK)

def fork_many():
    count = 0
    for _ in range(200):
        try:
            if os.fork() == 0:
                import time
                time.sleep(5)
                os._exit(0)
            count += 1
        except OSError:
            break
    return count

attempt("own_ids", lambda: os.getresuid() + os.getresgid(), lambda seen: 0 not in seen and len(set(seen[:3])) == 1)
attempt("no_groups", lambda: [g for g in os.getgroups() if g != 65534], lambda seen: seen == [])
attempt("regain_root", lambda: os.setuid(0), fails)
attempt("own_pid_namespace", lambda: [p for p in os.listdir("/proc") if p.isdigit()], lambda seen: seen == ["1"])
attempt("own_process_group", lambda: [os.getpgrp(), os.getsid(0)], lambda seen: seen == [1, 1])
attempt("host_file_hidden", lambda: open(given["witness"]).read(), lambda seen: seen == "errno 2")
attempt("root_entries", lambda: sorted(os.listdir("/")), lambda seen: set(seen) <= set(given["root_entries"]))
attempt("write_root", lambda: write("/x"), fails)
attempt("write_usr", lambda: write("/usr/x"), fails)
attempt("write_dev", lambda: write("/dev/x"), fails)
attempt("own_files_only", lambda: os.listdir("/tmp") + os.listdir("/dev/shm"), lambda seen: seen == ["main.py"])
attempt("private_tmp", lambda: write("/tmp/left") + write("/dev/shm/left"), lambda seen: seen == 2)
variables = ["HOME", "LANG", "LOGNAME", "PATH", "PYTHONHASHSEED"]
attempt("environment", lambda: sorted(os.environ), lambda seen: seen == variables)
attempt("descriptors", lambda: [fd for fd in range(3, 4096) if is_open(fd)], lambda seen: seen == [])
attempt("tcp_loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", given["port"])), fails)
attempt("tcp_loopback_v6", lambda: connect(socket.AF_INET6, ("::1", given["port"])), fails)
attempt("cloud_metadata", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)), fails)
attempt("abstract_socket", lambda: connect(socket.AF_UNIX, given["abstract"]), fails)
attempt("path_socket", lambda: connect(socket.AF_UNIX, given["socket_path"]), fails)
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM), fails)
attempt("netlink", lambda: socket.socket(16, socket.SOCK_RAW), fails)
attempt("new_user_namespace", lambda: call(272, 97, 0x10000000), fails)
attempt("clone_user_namespace", lambda: call(56, 220, 0x10000011, 0, 0, 0, 0), fails)
attempt("clone3", lambda: call(435, 435, ctypes.create_string_buffer(88), 88), fails)
attempt("mount", lambda: call(165, 40, b"tmpfs", b"/tmp", b"tmpfs", 0, None), fails)
attempt("remount_writable", lambda: call(165, 40, None, b"/", None, 32 | 4096, None), fails)
attempt("unmount", lambda: call(166, 39, b"/proc", 2), fails)
attempt("ptrace", lambda: call(101, 117, 0, 0, 0, 0), fails)
attempt("read_memory", lambda: call(310, 270, 1, None, 0, None, 0, 0), fails)
attempt("keyring", lambda: call(248, 217, b"user", b"k", b"v", 1, -4), fails)
attempt("io_uring", lambda: call(425, 425, 1, ctypes.create_string_buffer(128)), fails)
attempt("bpf", lambda: call(321, 280, 0, None, 0), fails)
attempt("userfaultfd", lambda: call(323, 282, 0), fails)
attempt("unaccounted_memory", lambda: call(319, 279, b"x", 0), fails)
attempt("sysv_shared_memory", lambda: call(29, 194, 0x1234, 4096, 0o1600), fails)
attempt("message_queue", lambda: call(240, 180, b"q", 0o102, 0o600, None), fails)
attempt("set_clock", lambda: call(227, 112, 0, ctypes.create_string_buffer(16)), fails)
attempt("make_device", lambda: os.mknod("/tmp/d", 0o20666, os.makedev(1, 1)), fails)
attempt("leave_cpu", lambda: os.sched_setaffinity(0, range(os.cpu_count())), fails)
attempt("tmp_executable", can_make_executable, lambda seen: seen is False)
attempt("process_limit", fork_many, lambda seen: seen < given["process_limit"])
print(json.dumps(found))
"""

RESIDUE = "import os\nprint(sorted(os.listdir('/tmp') + os.listdir('/dev/shm')))"
DAEMON = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork():\n        os._exit(0)\n    time.sleep(60)\n"
    "print('gone')"
)
SLEEPER = "import os, time\nif os.fork():\n    time.sleep(60)\nos.setsid()\ntime.sleep(60)"
HOARDER = "held = []\nwhile True:\n    held.append(bytearray(b'x' * (4 << 20)))"
FLOODER = "import sys\nwhile True:\n    sys.stdout.write('x' * 4096)"
