"""HTTP/1.1 on one connection, as much of it as the agent needs: whole requests in, whole or chunked replies out.

Head and body of a reply leave in one send: two small ones would meet Nagle's algorithm and delayed ACKs, at 40 ms each.
"""

import json
import urllib.parse
from collections import namedtuple

HEAD_LIMIT_BYTES = 64 * 1024
BODY_LIMIT_BYTES = 256 * 1024 * 1024
_REASONS = {200: "OK", 204: "No Content"}

Request = namedtuple("Request", "method path query headers body")


class BadRequest(Exception):
    """What came isn't a request that can be answered; the connection ends."""


def read_request(stream):
    """The next request of a buffered stream, or None at its end. Header names are lower case, queries are flat."""
    line = stream.readline(HEAD_LIMIT_BYTES)
    if not line.strip():
        return None
    parts = line.decode("latin-1").split()
    if len(parts) != 3:
        raise BadRequest("not an HTTP request line")
    headers = _read_headers(stream)
    target = urllib.parse.urlsplit(parts[1])
    query = dict(urllib.parse.parse_qsl(target.query, keep_blank_values=True))
    return Request(parts[0], urllib.parse.unquote(target.path), query, headers, _read_body(stream, headers))


def _read_headers(stream):
    headers, left = {}, HEAD_LIMIT_BYTES
    while True:
        line = stream.readline(left)
        left -= len(line)
        if line in (b"\r\n", b"\n"):
            return headers
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon or left <= 0:
            raise BadRequest("bad or too many header lines")
        headers[name.strip().lower()] = value.strip()


def _read_body(stream, headers):
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _read_chunks(stream)
    return _read_exactly(stream, int(headers.get("content-length", "0"), 10))


def _read_chunks(stream):
    body = bytearray()
    while True:
        size = int(stream.readline(1024).split(b";")[0], 16)
        if len(body) + size > BODY_LIMIT_BYTES:
            raise BadRequest("body too large")
        body += _read_exactly(stream, size)
        stream.readline(1024)
        if size == 0:
            return bytes(body)


def _read_exactly(stream, size):
    if not 0 <= size <= BODY_LIMIT_BYTES:
        raise BadRequest("body too large")
    data = stream.read(size)
    if len(data) != size:
        raise BadRequest("body cut short")
    return data


def send_reply(connection, status, body=b"", content_type="application/octet-stream"):
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\n"
    if status != 204:
        head += f"content-type: {content_type}\r\ncontent-length: {len(body)}\r\n"
    connection.sendall(head.encode("latin-1") + b"\r\n" + body)


def send_json(connection, status, value):
    send_reply(connection, status, json.dumps(value).encode(), "application/json")


def stream_head(content_type):
    text = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    return text.encode("latin-1")


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"
