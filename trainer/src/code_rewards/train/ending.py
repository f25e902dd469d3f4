"""Ends a job on SIGINT and SIGTERM, whatever the main thread is doing.

    signal ──► handler: raises StoppedBySignal in the main thread ──► finally: the clean-up ──► exit 128 + signal
           └─► wake-up pipe ──► watcher thread: has the main thread not begun to clean up after UNWIND_S, or not ended
                                after CLEAN_UP_S more, the watcher does it and ends the process

The second way is needed because Python runs a handler only between two steps of the main thread, and a rank whose peer
has died may wait inside a collective operation for half an hour.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
UNWIND_S = 5.0
CLEAN_UP_S = 35.0


class StoppedBySignal(BaseException):
    """The process was asked to end. Not an Exception, so that nothing on the way takes it for a fault and goes on."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number

    def __str__(self) -> str:
        return f"stopped by {signal.Signals(self.signal_number).name}"

    @property
    def exit_code(self) -> int:
        return 128 + self.signal_number


class Ending:
    """Watches the signals from `install` on. `clean_up` is what the watcher calls if the main thread can't."""

    def __init__(self, clean_up: Callable[[], object]) -> None:
        self._clean_up = clean_up
        self._armed = True
        self._cleaning = threading.Event()
        self._over = threading.Event()
        self.received: int | None = None

    def install(self) -> None:
        """Takes the signals over; call it in the main thread."""
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._writing = writing
        for number in SIGNALS:
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, args=(reading,), name="ending", daemon=True).start()

    def begin_clean_up(self) -> None:
        """From here on signals interrupt nothing: what remains to be done is what they ask for."""
        self._armed = False
        self._cleaning.set()

    def end(self) -> None:
        """The clean-up is done."""
        self._over.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.received = self.received or number
        if self._armed:
            self._armed = False
            raise StoppedBySignal(number)

    def _watch(self, reading: socket.socket) -> None:
        number = wait_for_signal(reading)
        if number is None:
            return
        if not self._cleaning.wait(UNWIND_S):
            say(f"{StoppedBySignal(number)}: the main thread doesn't answer; cleaning up without it")
            end_after(CLEAN_UP_S, number)
            self._clean_up()
        elif not self._over.wait(CLEAN_UP_S):
            say(f"{StoppedBySignal(number)}: the clean-up takes longer than {CLEAN_UP_S:.0f} s; leaving")
        else:
            return
        leave(number)


def wait_for_signal(reading: socket.socket) -> int | None:
    """The first of our signals, None when the pipe is closed. Other signals of the process are passed over."""
    while received := reading.recv(1):
        if received[0] in SIGNALS:
            return received[0]
    return None


def end_after(seconds: float, number: int) -> None:
    def wait_and_leave() -> None:
        time.sleep(seconds)
        leave(number)

    threading.Thread(target=wait_and_leave, daemon=True).start()


def leave(number: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(128 + number)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
