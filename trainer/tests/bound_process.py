"""Processes that end with the tests, even when those are killed."""

from __future__ import annotations

import ctypes
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent(number: signal.Signals) -> Callable[[], None]:
    """For `preexec_fn`: the new process gets a signal when the one that started it has died."""

    def arrange() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)

    return arrange
