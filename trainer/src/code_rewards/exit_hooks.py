"""What is to be ended when the process ends: at exit, and on the signals that would end it without a word.

A signal that Python code handles already (Ctrl-C raises KeyboardInterrupt, a trainer may save a checkpoint on SIGTERM)
is left to that code: what it does leads to the exit, where the rest is ended. Only a signal that would kill the process
on the spot is taken, and passed on afterwards. A forked child gives it back, and takes it again when it uses a client.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from types import FrameType
from typing import Protocol

EXIT_LIMIT_S = 60.0
# Launchers kill for good about 30 s after they asked.
SIGNAL_LIMIT_S = 20.0
DEADLY_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Closable(Protocol):
    pid: int

    def close_at_exit(self, limit_s: float) -> None: ...


_open: dict[int, Closable] = {}
_forking = threading.local()


def close_at_exit(thing: Closable) -> None:
    """Has `thing` closed when this process ends, unless `forget` comes before. A forked child ends only its own."""
    _open[id(thing)] = thing


def forget(thing: Closable) -> None:
    _open.pop(id(thing), None)


def watch_signals() -> None:
    """Takes the signals that would kill this process; can be called often. Only a main thread may take signals."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in DEADLY_SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _close_and_die)


def _close_and_die(number: int, _frame: FrameType | None) -> None:
    try:
        _close_all(SIGNAL_LIMIT_S)
    finally:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _hold_signals() -> None:
    """Python drops what arrives in a child before it is set up: a child that is killed at once would live on."""
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, DEADLY_SIGNALS)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _give_signals_back() -> None:
    for number in DEADLY_SIGNALS:
        if signal.getsignal(number) is _close_and_die:
            signal.signal(number, signal.SIG_DFL)
    _release_signals()


def _close_all(limit_s: float = EXIT_LIMIT_S) -> None:
    for thing in [thing for thing in _open.values() if thing.pid == os.getpid()]:
        forget(thing)
        thing.close_at_exit(limit_s)


atexit.register(_close_all)
os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_give_signals_back)
