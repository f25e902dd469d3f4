"""A bar on standard error, for people who watch."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

WIDTH = 24
EVERY_S = 0.1


class ProgressBar:
    """Shows how many samples are done; erased when the call ends."""

    def __init__(self, total: int, stream: TextIO) -> None:
        self._total = total
        self._stream = stream
        self._drawn_at_s = 0.0
        self._lock = threading.Lock()
        self._is_open = True

    def show(self, done: int) -> None:
        with self._lock:
            now_s = time.monotonic()
            if not self._is_open or (now_s - self._drawn_at_s < EVERY_S and done < self._total):
                return
            self._drawn_at_s = now_s
            filled = WIDTH * done // max(1, self._total)
            self._write(f"\rrewards |{'#' * filled}{' ' * (WIDTH - filled)}| {done}/{self._total}")

    def close(self) -> None:
        with self._lock:
            if self._is_open and self._drawn_at_s > 0:
                self._write("\r\x1b[K")
            self._is_open = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            # A terminal that has gone is no reason to lose a batch.
            self._is_open = False


def open_progress(total: int, wanted: bool | None) -> ProgressBar | None:
    """`wanted`: None shows it on a terminal only."""
    stream = sys.stderr
    if stream is None or wanted is False:
        return None
    if wanted is None and not stream.isatty():
        return None
    return ProgressBar(total, stream)
