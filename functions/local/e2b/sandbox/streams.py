"""Answers that last: a process's events as they come, kept alive by pings, until there is a reason to stop."""

import os
import select
import threading
import time

import connect_rpc
import http1
from connect_rpc import RpcError

_DEFAULT_KEEPALIVE_S = 90


class Stream:
    """A chunked answer that two threads write: one tells events, one pings and ends it. Nothing follows its end."""

    def __init__(self, connection):
        self._connection = connection
        self._lock = threading.Lock()
        self._is_over = False
        self.seen_end, self._tell_end = os.pipe()

    def __call__(self, event):
        """Tells an event; raises OSError once nobody wants to hear of it."""
        with self._lock:
            if self._is_over:
                raise BrokenPipeError("the stream is over")
            self._connection.sendall(http1.chunk(connect_rpc.envelope({"event": event})))
            if "end" in event:
                os.write(self._tell_end, b"!")

    def open(self, event):
        started = http1.chunk(connect_rpc.envelope({"event": event}))
        self._connection.sendall(http1.stream_head(connect_rpc.STREAM_TYPE) + started)

    def leave(self):
        with self._lock:
            self._is_over = True
            os.close(self.seen_end)
            os.close(self._tell_end)

    def finish(self, error):
        self._connection.sendall(http1.chunk(connect_rpc.end_envelope(error)) + http1.LAST_CHUNK)


def refuse(connection, error):
    """A stream that is over before it began. The connection stays usable."""
    body = http1.chunk(connect_rpc.end_envelope(error)) + http1.LAST_CHUNK
    connection.sendall(http1.stream_head(connect_rpc.STREAM_TYPE) + body)
    return True


def follow(connection, request, process, begin):
    """Streams a process's events until its end, the call's deadline, or the caller's leaving, which ends nothing.
    Whatever happens here, `begin` is called: the process lives without listeners, too."""
    timeout_ms = int(request.headers.get("connect-timeout-ms") or 0)
    until_s = time.monotonic() + timeout_ms / 1000 if timeout_ms > 0 else None
    pause_s = int(request.headers.get("keepalive-ping-interval") or _DEFAULT_KEEPALIVE_S)
    stream = Stream(connection)
    is_here = True
    try:
        stream.open({"start": {"pid": process.pid}})
        process.listen(stream)
    except OSError:
        is_here = False
    begin()
    error = None
    if is_here:
        is_here, error = _wait_for_end(connection, stream, until_s, pause_s)
    process.ignore(stream)
    stream.leave()
    if is_here:
        stream.finish(error)
    return is_here


def _wait_for_end(connection, stream, until_s, pause_s):
    """Whether the caller is still here, and the error that ends the stream, if one does."""
    poll = select.poll()
    poll.register(stream.seen_end, select.POLLIN)
    poll.register(connection, select.POLLRDHUP)
    while True:
        left_s = pause_s if until_s is None else min(pause_s, until_s - time.monotonic())
        ready = [fd for fd, _ in poll.poll(max(0, int(left_s * 1000) + 1))]
        if stream.seen_end in ready:
            return True, None
        if ready:
            return False, None
        if until_s is not None and time.monotonic() >= until_s:
            return True, RpcError("deadline_exceeded", "context deadline exceeded")
        try:
            stream({"keepalive": {}})
        except OSError:
            return False, None
