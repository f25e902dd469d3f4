"""The Connect protocol with JSON: the errors, and the envelopes of a stream.

An envelope is a flag byte, a big-endian uint32 length, and JSON. Flag 2 marks the last one, which is `{}` or holds the
error. See https://connectrpc.com/docs/protocol.
"""

import json
import struct

STREAM_TYPE = "application/connect+json"
_END_STREAM = 2
HTTP_STATUS = {
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "already_exists": 409,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


class RpcError(Exception):
    """An answer that is an error: one of the codes above and a message for people."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
        self.message = message


def as_json(error):
    return {"code": error.code, "message": error.message}


def envelope(message, flags=0):
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def end_envelope(error=None):
    return envelope({} if error is None else {"error": as_json(error)}, _END_STREAM)


def open_envelope(body):
    """The message of a request with exactly one envelope."""
    if len(body) < 5:
        raise RpcError("invalid_argument", "protocol error: incomplete envelope")
    flags, size = struct.unpack(">BI", body[:5])
    if flags != 0 or len(body) != 5 + size:
        raise RpcError("invalid_argument", "protocol error: expected one uncompressed envelope")
    return parse(body[5:])


def parse(body):
    try:
        message = json.loads(body) if body else {}
    except ValueError as error:
        raise RpcError("invalid_argument", f"invalid JSON: {error}") from None
    if not isinstance(message, dict):
        raise RpcError("invalid_argument", "the message must be a JSON object")
    return message
