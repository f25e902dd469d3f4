"""How a sandbox comes to be: two forks of the keeper, and what each of the three processes does.

    keeper ──fork──> midwife: unshare(user, mount, pid, net, ipc, uts)
       │                 │ "unshared" ────────────────────────────────────────────> keeper writes the id maps
       │                 │ <──────────────────────────────────────────── "mapped"
       │                 │ becomes the sandbox's root, forks pid 1, tells its pid, leaves
       │ <── reaps the midwife; as subreaper it is pid 1's parent from here on
       │ ── "go" ──────> pid 1: dies with its parent from now on, builds the root, serves

The messages go over one socket pair, which stays as pid 1's line to the keeper. pid 1 asks to die with its parent only
after "go", for before that its parent was the midwife; and after the last change of uid, which clears the request.
No exec: a fork of the keeper costs a few milliseconds, a new interpreter tens.
"""

import os
import signal
import socket

import linux

# Ids of one sandbox on a host where root starts it. A range apart for each keeps sandboxes apart even if they meet.
FIRST_ID, IDS_EACH, RANGES = 1 << 28, 1 << 20, 2048
_ALL_IDS = 4294967295
_NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
)
_MESSAGE_BYTES = 4096


def host_has_many_ids():
    with open("/proc/self/uid_map") as file:
        count = sum(int(line.split()[2]) for line in file)
    return os.geteuid() == 0 and count >= _ALL_IDS


def leave_host(many_ids):
    """Takes the keeper out of the host's mount namespace. An ordinary user may do so as root of a user namespace."""
    uid, gid = os.geteuid(), os.getegid()
    linux.unshare(linux.CLONE_NEWNS if many_ids else linux.CLONE_NEWNS | linux.CLONE_NEWUSER)
    if not many_ids:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/gid_map", f"0 {gid} 1")
        _write("/proc/self/uid_map", f"0 {uid} 1")


def bear(number, many_ids, live):
    """Forks a sandbox's pid 1, which calls `live(line)` and never returns. Returns its pid and our end of the line."""
    line, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    midwife = os.fork()
    if midwife == 0:
        _leave_forever(lambda: _act_as_midwife(far_end, many_ids, live))
    far_end.close()
    line.settimeout(10)
    try:
        _expect(line, b"unshared")
        _write_id_maps(midwife, number, many_ids)
        line.send(b"mapped")
        pid = int(_expect(line, b"pid "))
    finally:
        os.waitpid(midwife, 0)
    line.send(b"go")
    return pid, line


def _act_as_midwife(line, many_ids, live):
    _close_all_but(line.fileno())
    os.setsid()
    try:
        linux.unshare(_NAMESPACES)
    except OSError as error:
        line.send(b"error " + str(error).encode())
        return
    line.send(b"unshared")
    if line.recv(_MESSAGE_BYTES) != b"mapped":
        return
    if many_ids:
        os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    pid = os.fork()
    if pid == 0:
        _leave_forever(lambda: _act_as_init(line, live))
    line.send(b"pid %d" % pid)


def _act_as_init(line, live):
    if line.recv(_MESSAGE_BYTES) != b"go":
        return
    linux.die_with_parent(signal.SIGKILL)
    linux.hide_from_debuggers()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    live(line)


def _leave_forever(act):
    status = 1
    try:
        act()
        status = 0
    except BaseException:  # noqa: BLE001 - a forked child must not return into the keeper's code, whatever happens
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _close_all_but(kept):
    os.closerange(3, kept)
    os.closerange(kept + 1, 1 << 20)


def _expect(line, prefix):
    message = line.recv(_MESSAGE_BYTES)
    if not message.startswith(prefix):
        raise OSError(message[6:].decode() if message.startswith(b"error ") else "the sandbox's process ended early")
    return message[len(prefix) :]


def _write_id_maps(pid, number, many_ids):
    first = FIRST_ID + number % RANGES * IDS_EACH
    if not many_ids:
        _write(f"/proc/{pid}/setgroups", "deny")
    ids = f"0 {first} {IDS_EACH}" if many_ids else "0 0 1"
    _write(f"/proc/{pid}/gid_map", ids)
    _write(f"/proc/{pid}/uid_map", ids)


def _write(path, text):
    with open(path, "w") as file:
        file.write(text)
