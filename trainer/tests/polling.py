"""Waiting for something to become so, for a bounded time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], *, limit_s: float = 15.0) -> T:
    """The first answer that is true."""
    ends_s = time.monotonic() + limit_s
    while not (seen := look()):
        assert time.monotonic() < ends_s, f"still {seen!r} after {limit_s} s"
        time.sleep(0.02)
    return seen
