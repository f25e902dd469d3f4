"""What a zygote tells its supervisor, one packet each.

U             ready to fork
C <number>    a child was forked; with its pidfd and its channel
E <ending>    a child was reaped (see `Ending`)
F <text>      the zygote itself couldn't be set up; it ends
"""

from __future__ import annotations

import struct
from typing import NamedTuple

UP = b"U"
CHILD = b"C"
ENDED = b"E"
FAILED = b"F"
_ENDING = struct.Struct("<qqddqq?")


class Ending(NamedTuple):
    number: int  # of the child
    wait_status: int
    at_s: float  # monotonic
    cpu_s: float
    max_rss_kib: int
    run_delay_ns: int  # how long its main thread was runnable without running
    used_up_own_limit: bool  # killed by the kernel for a limit of CPU time that it had set itself


def encode_ending(*fields) -> bytes:
    return ENDED + _ENDING.pack(*fields)


def decode_ending(message: bytes) -> Ending:
    return Ending(*_ENDING.unpack(message[1:]))
