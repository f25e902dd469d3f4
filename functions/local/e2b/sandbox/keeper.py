"""The keeper: starts, asks and ends sandboxes for the server, and lives no longer than it.

It speaks the channel that Node opens to a child process: one JSON object a line, and descriptors beside a line whose
`cmd` is NODE_HANDLE, which Node turns into sockets. So a connection into a sandbox's network namespace is made inside
it and handed to the server: no byte of it passes through Python.

    {"id": 1, "do": "create", "sandbox": "i…", "order": {…}}   answered when the sandbox serves
    {"id": 2, "do": "kill", "sandbox": "i…"}                   answered when nothing of it is left
    {"id": 3, "do": "dial" | "freeze" | "thaw", "sandbox": "i…", "port": 8000 | null}

Answers are `{"id": n}`, with `error` where it failed; unasked come `{"ready": …}` or
`{"refused": "why"}` first, and `{"died": "i…"}`.
One thread: it forks, and only a process with one thread forks safely.
"""

import json
import os
import selectors
import signal
import socket
import stat
import sys

import agent
import birth
import linux
import rootfs

_CHANNEL_BYTES = 256 * 1024
_MESSAGE_BYTES = 64 * 1024


class Sandbox:
    def __init__(self, name, pid, line, asked):
        self.name = name
        self.pid = pid
        self.line = line
        self.asked = {asked}
        self.is_ready = False


class Keeper:
    def __init__(self, channel, many_ids):
        self._channel = channel
        self._many_ids = many_ids
        self._selector = selectors.DefaultSelector()
        self._sandboxes = {}
        self._born = 0
        self._unread = b""

    def run(self):
        cpus = sorted(os.sched_getaffinity(0))
        self._send({"ready": {"cpus": cpus, "many_ids": self._many_ids, "python": sys.version.split()[0]}})
        self._selector.register(self._channel, selectors.EVENT_READ, None)
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    self._hear(key.data)
                elif not self._read_channel():
                    return

    def _read_channel(self):
        data = self._channel.recv(_CHANNEL_BYTES)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "do" in message:  # Node also acknowledges descriptors on this channel
                self._obey(message)
        return bool(data)

    def _obey(self, message):
        name = message["sandbox"]
        try:
            if message["do"] == "create":
                return self._create(message["id"], name, message["order"])
            sandbox = self._sandboxes.get(name)
            if sandbox is None:
                raise OSError("no such sandbox")
            if message["do"] == "kill":
                self._end(sandbox, "killed")
                return self._send({"id": message["id"]})
            sandbox.asked.add(message["id"])
            sandbox.line.send(json.dumps({key: message[key] for key in message if key != "sandbox"}).encode())
        except OSError as error:
            self._send({"id": message["id"], "error": str(error)})
        return None

    def _create(self, asked, name, order):
        self._born += 1
        pid, line = birth.bear(self._born, self._many_ids, lambda far: agent.live(far, order, self._many_ids))
        line.settimeout(5)
        sandbox = self._sandboxes[name] = Sandbox(name, pid, line, asked)
        self._selector.register(line, selectors.EVENT_READ, sandbox)

    def _hear(self, sandbox):
        """A message of a sandbox's pid 1. It is trusted no further than to speak for its own sandbox."""
        if sandbox.line.fileno() < 0:
            return
        try:
            data, descriptors, _, _ = socket.recv_fds(sandbox.line, _MESSAGE_BYTES, 4)
            message = json.loads(data) if data else None
        except (OSError, ValueError):
            data, descriptors, message = b"", [], None
        try:
            if not isinstance(message, dict):
                self._end(sandbox, "the sandbox's first process ended")
                self._send({"died": sandbox.name})
            elif sandbox.is_ready:
                self._pass_on(sandbox, message, descriptors)
            else:
                self._finish_creation(sandbox, message)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _finish_creation(self, sandbox, message):
        if "failed" in message:
            return self._end(sandbox, str(message["failed"]))
        sandbox.is_ready = True
        asked = sandbox.asked.pop()
        return self._send({"id": asked, "pid": sandbox.pid})

    def _pass_on(self, sandbox, message, descriptors):
        asked = message.get("id")
        if asked not in sandbox.asked:
            return
        sandbox.asked.discard(asked)
        if "error" in message:
            self._send({"id": asked, "error": str(message["error"])})
        elif len(descriptors) == 1 and stat.S_ISSOCK(os.fstat(descriptors[0]).st_mode):
            self._send_handle({"id": asked}, descriptors[0])
        else:
            self._send({"id": asked})

    def _end(self, sandbox, reason):
        """Kills pid 1, and with it all, and returns once the kernel has let go of the last process."""
        if self._sandboxes.pop(sandbox.name, None) is None:
            return
        self._selector.unregister(sandbox.line)
        os.kill(sandbox.pid, signal.SIGKILL)
        os.waitpid(sandbox.pid, 0)
        sandbox.line.close()
        for asked in sandbox.asked:
            self._send({"id": asked, "error": reason})

    def _send(self, message):
        self._channel.sendall(json.dumps(message).encode() + b"\n")

    def _send_handle(self, message, descriptor):
        line = json.dumps({"cmd": "NODE_HANDLE", "type": "net.Socket", "msg": message}).encode() + b"\n"
        socket.send_fds(self._channel, [line], [descriptor])


def main():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends all processes at once means the server, which ends us
    channel = socket.socket(fileno=int(os.environ.pop("NODE_CHANNEL_FD")))
    channel.setblocking(True)
    many_ids = birth.host_has_many_ids()
    try:
        birth.leave_host(many_ids)
        rootfs.prepare_host_tree(reads_as_root=many_ids)
    except OSError as error:
        channel.sendall(json.dumps({"refused": str(error)}).encode() + b"\n")
        return
    linux.die_with_parent(signal.SIGKILL)
    linux.adopt_orphans()
    Keeper(channel, many_ids).run()


if __name__ == "__main__":
    main()
