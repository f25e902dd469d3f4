"""A small HTTP/1.1 server over asyncio streams: as much of the protocol as one trusted kind of client needs.

Bodies come with Content-Length; answers are JSON, or a chunked stream of lines. Connections are kept alive. Lines
written within one turn of the loop leave in one packet. Each handler runs as a task that is told, by `is_closed`,
when the client went away. A JSON answer repeats the request's nonce: on the way, answers may be mixed up.
"""

from __future__ import annotations

import asyncio
import json
import traceback

_HEAD_LIMIT_BYTES = 16384
_BODY_LIMIT_BYTES = 64 << 20
_LENGTH_DIGITS = 12
_CONGESTED_BYTES = 4 << 20
_DISCARD_LIMIT_S = 30.0
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 409: "Conflict",
            411: "Length Required", 413: "Content Too Large", 500: "Internal Server Error",
            503: "Service Unavailable"}  # fmt: skip


class HttpError(Exception):
    def __init__(self, status: int, code: str, detail: str, **more):
        super().__init__(detail)
        self.status = status
        self.body = {"code": code, "detail": detail, **more}


class Request:
    def __init__(self, method: str, path: str, headers: dict, body: bytes):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body


class LineStream:
    """A chunked NDJSON answer. Nothing is sent before the first line. `on_drained` is called when a client that had
    fallen behind has caught up."""

    def __init__(self, writer: asyncio.StreamWriter, on_drained):
        self._writer = writer
        self._on_drained = on_drained
        self._draining = None
        writer.transport.set_write_buffer_limits(high=_CONGESTED_BYTES)
        self._loop = asyncio.get_running_loop()
        self._lines = []
        self._is_scheduled = False
        self._has_begun = False

    def write(self, line: dict) -> None:
        self._lines.append(json.dumps(line, separators=(",", ":")))
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if not self._lines or self._writer.is_closing():
            return
        data = ("\n".join(self._lines) + "\n").encode()
        self._lines.clear()
        head = b"" if self._has_begun else _head(200, "application/x-ndjson", "Transfer-Encoding: chunked")
        self._has_begun = True
        self._writer.write(b"%s%x\r\n%s\r\n" % (head, len(data), data))
        if self.is_congested() and self._draining is None:
            self._draining = self._loop.create_task(self._drain())

    def is_congested(self) -> bool:
        return self._writer.transport.get_write_buffer_size() > _CONGESTED_BYTES

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except ConnectionError:
            pass  # the client is gone; whoever waits for it stops the work
        self._draining = None
        self._on_drained()

    async def finish(self) -> None:
        self._flush()
        if not self._writer.is_closing():
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()


class Connection:
    """What a handler may know of the connection it answers on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader = reader
        self.writer = writer
        self.has_stream = False
        self.nonce = None  # what the request says that its answer must repeat

    def open_stream(self, on_drained) -> LineStream:
        self.has_stream = True
        return LineStream(self.writer, on_drained)

    async def is_closed(self) -> None:
        """Returns when the client has closed the connection (a client that sends more also counts as gone: it must
        wait for its answer)."""
        await self.reader.read(1)


async def serve(host: str, port: int, authorize, handle) -> asyncio.AbstractServer:
    """`authorize(headers)` may raise HttpError; only then is a body read. `handle(request, connection)` returns
    (status, JSON body), or None after it has streamed its answer."""

    async def on_connection(reader, writer):
        try:
            while await _answer_one(Connection(reader, writer), authorize, handle):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        except asyncio.CancelledError:
            pass  # the server ends; asyncio would report an idle connection's task as failed
        finally:
            writer.close()

    return await asyncio.start_server(on_connection, host, port, limit=1 << 20, backlog=128)


async def _answer_one(connection: Connection, authorize, handle) -> bool:
    """Whether the connection may be used again."""
    try:
        request = await _read_request(connection, authorize)
    except HttpError as error:
        await _write_json(connection, error.status, error.body, is_last=True)
        await _discard_rest(connection)
        return False
    if request is None:
        return False
    try:
        answer = await handle(request, connection)
    except HttpError as error:
        answer = error.status, error.body
    except ConnectionError:  # the client went away
        return False
    except Exception:
        traceback.print_exc()
        if connection.has_stream:  # what was sent can't be taken back: a cut stream says that it is not whole
            return False
        answer = 500, {"code": "internal", "detail": "the supervisor failed; its error is in its log"}
    if answer is not None:
        await _write_json(connection, *answer)
    return not connection.writer.is_closing() and not connection.reader.at_eof()


async def _read_request(connection: Connection, authorize):
    reader = connection.reader
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    if len(head) > _HEAD_LIMIT_BYTES:
        raise HttpError(413, "too_large", "the request's head is over %d bytes" % _HEAD_LIMIT_BYTES)
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise HttpError(400, "invalid_request", "not an HTTP request line")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    connection.nonce = headers.get("x-request-nonce")
    authorize(headers)
    return Request(words[0], words[1], headers, await _read_body(reader, headers))


async def _read_body(reader: asyncio.StreamReader, headers: dict) -> bytes:
    if "transfer-encoding" in headers:
        raise HttpError(411, "invalid_request", "send the body with Content-Length")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) <= _LENGTH_DIGITS):
        raise HttpError(400, "invalid_request", "Content-Length is no number")
    if int(length) > _BODY_LIMIT_BYTES:
        raise HttpError(413, "too_large", "the body is over %d bytes" % _BODY_LIMIT_BYTES)
    return await reader.readexactly(int(length)) if int(length) else b""


def _head(status: int, content_type: str, headers: str) -> bytes:
    reason = _REASONS.get(status, "")
    text = "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s\r\n\r\n" % (status, reason, content_type, headers)
    return text.encode()


async def _write_json(connection: Connection, status: int, body: dict, is_last: bool = False) -> None:
    data = json.dumps(body if connection.nonce is None else {**body, "nonce": connection.nonce}).encode()
    headers = "Content-Length: %d" % len(data) + ("\r\nConnection: close" if is_last else "")
    connection.writer.write(_head(status, "application/json", headers) + data)
    await connection.writer.drain()


async def _discard_rest(connection: Connection) -> None:
    """Lets a client that is still sending come to its end. To close on it would reset the connection, and the refusal
    would be lost on the way."""
    try:
        connection.writer.write_eof()
        await asyncio.wait_for(_read_to_end(connection.reader), _DISCARD_LIMIT_S)
    except (ConnectionError, asyncio.TimeoutError):
        pass


async def _read_to_end(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass
