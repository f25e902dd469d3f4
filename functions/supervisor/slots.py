"""A slot: the supervisor's side of one zygote, and the isolated children it has ready.

Theory of operation. A slot runs one case at a time. While more cases wait, it keeps one more child isolated and ready,
so that the cost of isolation falls into the time in which the present case runs. Where none wait, it prepares a few as
soon as it seems idle, so that a program of few cases finds a child for each and runs beside no preparation. Children
are used once. A case whose program is tested by a judge takes two, one after the other.

A child that fails before it is isolated is a fault of the host. The slot tries again a few times, since a passing
shortage (say of memory) looks the same; after that it is broken and says why, until a later attempt succeeds. What
fails while the slot's case fills the group's memory is that case's doing, and no failure. A zygote that dies takes its
children with it; it is started anew, and what ran on it learns that its sandbox was lost.
"""

from __future__ import annotations

import array
import collections
import json
import os
import signal
import socket
import subprocess
import sys

import cgroups
import processes
import zygote_messages as messages

_HERE = os.path.dirname(os.path.abspath(__file__))
_MESSAGE_BYTES = 4096
_READY_WHILE_BUSY = 1
_READY_WHILE_IDLE = 3
_IDLE_AFTER_S = 0.005
_GIVE_UP_AFTER_FAILURES = 5
_TRY_AGAIN_AFTER_S = 3.0
_PREPARE_TIMEOUT_S = 15.0
_STOP_TIMEOUT_S = 1.0
_SETTLED_BYTES = 24 << 20  # the waiting child and what the kernel keeps for a group
_SETTLE_POLL_S = 0.005
_SETTLE_TIMEOUT_S = 1.0
TEMPORARY_BYTES = 16 << 20
PROCESS_LIMIT = 64
UIDS_PER_SLOT = 1 << 20


class Child:
    """An isolated process that waits for its job, or runs it."""

    __slots__ = ("number", "pid", "pidfd", "channel", "is_isolated", "exit", "on_exit", "on_message")

    def __init__(self, number: int, pid: int, pidfd: int, channel: socket.socket):
        self.number = number
        self.pid = pid
        self.pidfd = pidfd
        self.channel = channel
        self.is_isolated = False
        self.exit = None
        self.on_exit = None  # called with its `Ending`, or None when the zygote died
        self.on_message = None  # called with what the child says after it was given its job

    def kill(self) -> None:
        if self.pidfd < 0:
            return
        try:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self) -> None:
        if self.channel.fileno() >= 0:
            self.channel.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


class Slot:
    """`on_change` is called whenever a child became ready, or the slot broke."""

    def __init__(self, index: int, cpu, first_uid: int, loop, on_change):
        self.index = index
        self.cpu = cpu
        self.failure = None
        self.is_busy = False
        self.mode = None
        self._first_uid = first_uid
        self._loop = loop
        self._on_change = on_change
        self._children = {}
        self._ready = collections.deque()
        self._on_second = None  # called with the next ready child, or None if there will be none
        self._preparing = None  # the timer of the child that is being prepared
        self._ready_timer = None
        self._next_number = 0
        self._failures = 0
        self._try_again_timer = None  # of a broken slot
        self._is_trying_again = False
        self._is_closing = False
        self.memory_group = cgroups.make_memory_group(str(index))
        self._limit_hits = 0  # of the group, when a child failed last
        self._start_zygote()

    def has_ready_child(self) -> bool:
        return bool(self._ready) and not self.is_busy

    def take_child(self) -> Child:
        """A ready child. The next is prepared in a while, or as soon as `prepare` is called."""
        child = self._ready.popleft()
        self.is_busy = True
        self._prepare_later()
        return child

    def take_second_child(self, on_second) -> None:
        """Another child for the case that runs here; `on_second` is called with it, once, as soon as it is ready."""
        self._on_second = on_second
        if self._ready:
            self._hand_over_second()
        else:
            self.prepare()

    def _hand_over_second(self) -> None:
        on_second, self._on_second = self._on_second, None
        child = self._ready.popleft() if self._ready else None
        if child:
            self.prepare()
        on_second(child)

    def give_back(self, filled_memory: bool) -> None:
        """The case is over. What it held is uncharged a moment after its death; the next case must not pay for it."""
        self._on_second = None
        if filled_memory and self.memory_group:
            self._wait_for_memory(self._loop.time() + _SETTLE_TIMEOUT_S)
        else:
            self._become_free()

    def _become_free(self) -> None:
        self.is_busy = False
        self._prepare_later()

    def _prepare_later(self) -> None:
        """A while after its last case began or ended: whoever waits for an answer has it by then."""
        if self._ready_timer:
            self._ready_timer.cancel()
        self._ready_timer = self._loop.call_later(_IDLE_AFTER_S, self._prepare_more)

    def _prepare_more(self) -> None:
        self._ready_timer = None
        self.prepare()

    def _wait_for_memory(self, until_s: float) -> None:
        if self.memory_group.usage_bytes() <= _SETTLED_BYTES or self._loop.time() >= until_s:
            self._become_free()
            self._on_change()
        elif not self._is_closing:
            self._loop.call_later(_SETTLE_POLL_S, self._wait_for_memory, until_s)

    def is_settled(self) -> bool:
        """Whether it runs nothing and has prepared all that it prepares."""
        return not (self.is_busy or self._preparing or self._ready_timer)

    def live_children(self) -> int:
        return len(self._children)

    def close(self) -> None:
        self._is_closing = True
        if self._try_again_timer:
            self._try_again_timer.cancel()
        if self._control.fileno() >= 0:
            self._stop_zygote()
        if self.memory_group:
            self.memory_group.remove()

    # -- the zygote

    def _start_zygote(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {
            "cpu": self.cpu,
            "first_uid": self._first_uid,
            "uid_count": UIDS_PER_SLOT,
            "temporary_bytes": TEMPORARY_BYTES,
            "processes": PROCESS_LIMIT,
        }
        self._zygote = subprocess.Popen(
            [sys.executable, "-s", "-B", _HERE + "/zygote.py", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=program_environment(),
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self._is_zygote_up = False  # a child forked sooner would be outside the memory group
        self._control.send(json.dumps(settings).encode())
        self._loop.add_reader(ours.fileno(), self._read_control)

    def _stop_zygote(self) -> None:
        self._is_zygote_up = False
        self._loop.remove_reader(self._control.fileno())
        self._control.close()  # which ends a zygote that still listens, and its parent reaps it
        try:
            self._zygote.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._zygote.kill()
            self._zygote.wait()
        self._prepared()
        self._ready.clear()
        for child in list(self._children.values()):
            self._forget(child)
            if child.on_exit:
                child.on_exit(None)

    def _read_control(self) -> None:
        try:
            message, ancillary, _, _ = self._control.recvmsg(_MESSAGE_BYTES, socket.CMSG_SPACE(8))
        except ConnectionResetError:  # it was killed with a request unread
            message = b""
        if not message:
            self._lost_zygote("its zygote ended")
            return
        kind = message[:1]
        if kind == messages.UP:
            if self.memory_group:
                self.memory_group.add(processes.main_child_of(self._zygote.pid))
            self._is_zygote_up = True
            self.prepare()
        elif kind == messages.CHILD:
            self._adopt(int(message[1:]), ancillary)
        elif kind == messages.ENDED:
            self._ended(messages.decode_ending(message))
        else:
            self._lost_zygote("its zygote could not be set up: " + message[1:].decode("utf-8", "replace"))

    def _lost_zygote(self, why: str) -> None:
        self._stop_zygote()
        self._count_failure(why)
        if not self._is_closing and self.failure is None:
            self._start_zygote()

    def _count_failure(self, why: str) -> None:
        self._failures += 1
        if self._failures >= _GIVE_UP_AFTER_FAILURES:
            self.failure = why
            self._is_trying_again = False
            if self._on_second:
                self._hand_over_second()
            self._on_change()
            if not self._is_closing:
                self._try_again_timer = self._loop.call_later(_TRY_AGAIN_AFTER_S, self._try_again)

    def _try_again(self) -> None:
        """A broken slot stays so until a child of it is isolated."""
        self._is_trying_again = True
        if self._control.fileno() < 0:
            self._start_zygote()
        else:
            self.prepare()

    def _child_failed(self, why: str) -> None:
        """Before its job. Beside a case that fills the group's memory it says nothing of the host; the next child is
        prepared when that case is over."""
        hits_before = self._limit_hits
        self._limit_hits = self.memory_group.pressure().limit_hits if self.memory_group else 0
        if self.is_busy and not self._on_second and self._limit_hits > hits_before:
            return
        self._count_failure(why)
        self.prepare()

    # -- its children

    def prepare(self) -> None:
        """Has a child prepared, unless as many as it keeps are ready or one is on its way."""
        if not self._is_zygote_up:
            return
        wanted = _READY_WHILE_BUSY if self.is_busy else _READY_WHILE_IDLE
        if len(self._ready) < wanted and self._preparing is None and (self.failure is None or self._is_trying_again):
            late = "no sandbox was ready within %d s" % _PREPARE_TIMEOUT_S
            self._preparing = self._loop.call_later(_PREPARE_TIMEOUT_S, self._lost_zygote, late)
            self._next_number += 1
            try:
                self._control.send(b"%d" % self._next_number)
            except OSError:
                pass  # the zygote is gone; the end of its socket, which comes next, deals with that

    def _prepared(self) -> None:
        if self._preparing:
            self._preparing.cancel()
            self._preparing = None

    def _adopt(self, number: int, ancillary) -> None:
        fds = array.array("i")
        fds.frombytes(ancillary[0][2][:8])
        child = Child(number, processes.pid_of(fds[0]), fds[0], socket.socket(fileno=fds[1]))
        self._children[number] = child
        self._loop.add_reader(child.channel.fileno(), self._read_channel, child)

    def _read_channel(self, child: Child) -> None:
        try:
            message = child.channel.recv(_MESSAGE_BYTES)
        except OSError:
            message = b""
        if child.is_isolated:
            self._close_channel(child)
            if message and child.on_message:
                child.on_message(message)
        elif message == b"I":
            child.is_isolated = True
            self._prepared()
            self._ready.append(child)
            self._failures, self.failure, self._is_trying_again = 0, None, False
            if self._on_second:
                self._hand_over_second()
            else:
                self._on_change()
                if not self.is_busy:
                    self.prepare()
        else:
            self._close_channel(child)
            self._isolation_failed(child, message)

    def _isolation_failed(self, child: Child, message: bytes) -> None:
        why = "a sandbox ended before it was isolated"
        if message[:1] == b"E":
            report = json.loads(message[1:])
            why = "%s (stage: %s, errno: %s)" % (report["detail"], report["stage"], report["errno"])
        child.kill()
        self._prepared()
        self._child_failed(why)

    def _close_channel(self, child: Child) -> None:
        self._loop.remove_reader(child.channel.fileno())
        child.channel.close()

    def _ended(self, ending: messages.Ending) -> None:
        child = self._children.get(ending.number)
        if child is None:
            return
        if child.channel.fileno() >= 0:  # its last message may still be unread
            self._read_channel(child)
        if child in self._ready:  # killed from outside while it waited
            self._ready.remove(child)
            self._forget(child)
            self._child_failed("a prepared sandbox ended by itself")
            return
        if child.on_exit:
            child.on_exit(ending)
        self._forget(child)

    def _forget(self, child: Child) -> None:
        self._children.pop(child.number, None)
        if child.channel.fileno() >= 0:
            self._loop.remove_reader(child.channel.fileno())
        child.close()


def program_environment() -> dict:
    """All that a program finds in its environment; the zygote starts with it and its children inherit it."""
    interpreter_bin = os.path.dirname(os.path.realpath(sys.executable))
    path = [interpreter_bin] + [p for p in ("/usr/local/bin", "/usr/bin", "/bin") if p != interpreter_bin]
    return {"PATH": ":".join(path), "HOME": "/tmp", "LOGNAME": "nobody", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
