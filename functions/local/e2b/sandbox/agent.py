"""pid 1 of a sandbox: builds its file system, then serves the keeper's line and the connections that it asks for.

The line carries one JSON object a message. To the keeper: `{"ready": true}` once, or `{"failed": "…"}`; then an
answer `{"id": n}` to each request, a connected socket going beside the answer to a dial. From the keeper:

    {"id": n, "do": "dial", "port": 8000}   a TCP connection to that port of the sandbox's loopback
    {"id": n, "do": "dial", "port": null}   a connection to envd, which has no port of its own in the sandbox
    {"id": n, "do": "freeze"} / {"do": "thaw"}

The end of the line is the end of the sandbox: pid 1 leaves, and the kernel kills the rest.
"""

import json
import os
import resource
import signal
import socket
import threading
import time
import traceback

import linux
import rootfs
import users
from children import Children
from envd import Envd

_MESSAGE_BYTES = 64 * 1024
_DIAL_S = 5
_FREEZE_S = 2
_PROCESSES = 4096  # counted for each sandbox alone; keeps a fork bomb from using up the host's
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def live(line, order, has_many_ids):
    """The whole life of a sandbox, in its pid 1."""
    try:
        search_path = ":".join([prefix + "/bin" for prefix in rootfs.python_prefixes()] + [SYSTEM_PATH])
        _settle(order, has_many_ids, search_path)
        envd = Envd(Children(), order["access_token"], order["environment"], search_path, has_many_ids)
    except Exception as error:  # noqa: BLE001 - the keeper must hear of it, whatever it is
        traceback.print_exc()
        line.send(json.dumps({"failed": str(error)}).encode())
        return
    line.settimeout(None)
    line.send(b'{"ready": true}')
    while True:
        message = line.recv(_MESSAGE_BYTES)
        if not message:
            return
        request = json.loads(message)
        threading.Thread(target=_answer, args=(line, request, envd), daemon=True).start()


def _settle(order, has_many_ids, search_path):
    linux.leave_session_keyring()
    os.sched_setaffinity(0, order["cpus"])
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
    os.environ.clear()
    rootfs.build(order["disk_mib"], users.accounts(has_many_ids), search_path)
    linux.raise_loopback()
    socket.sethostname("e2b.local")


def _answer(line, request, envd):
    answer, connection = {"id": request["id"]}, None
    try:
        if request["do"] == "dial":
            connection = _dial(request["port"], envd)
        elif request["do"] == "freeze":
            _freeze()
        elif request["do"] == "thaw":
            _signal_all(signal.SIGCONT)
    except OSError as error:
        answer["error"] = str(error)
    data = json.dumps(answer).encode()
    if connection is None:
        line.send(data)
        return
    with connection:
        socket.send_fds(line, [data], [connection.fileno()])


def _dial(port, envd):
    if port is not None:
        connection = socket.create_connection(("127.0.0.1", port), timeout=_DIAL_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(None)
        return connection
    near, far = socket.socketpair()
    threading.Thread(target=envd.serve, args=(far,), daemon=True).start()
    return near


def _freeze():
    """Stops every process but pid 1. One that forks meanwhile may leave a child running: look again until none runs."""
    until_s = time.monotonic() + _FREEZE_S
    while _signal_all(signal.SIGSTOP) and not all(map(_is_stopped, _others())):
        if time.monotonic() > until_s:
            raise OSError("some processes would not stop")
        time.sleep(0.002)


def _signal_all(number):
    """False when there is nobody but pid 1."""
    try:
        os.kill(-1, number)
        return True
    except ProcessLookupError:
        return False


def _others():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def _is_stopped(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True
