"""Signals end a job even when its main thread can't be reached."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

END_LIMIT_S = 20.0
BEGIN = """
import ctypes, time
from code_rewards.train import ending
ending.UNWIND_S = 2
ending.CLEAN_UP_S = 0.5

def clean_up():
    print("cleaned up by the watcher", flush=True)

watch = ending.Ending(clean_up)
watch.install()
"""
# A lock that is taken twice: the call never comes back, whatever signal arrives.
STUCK = """
lock = ctypes.create_string_buffer(64)
libc = ctypes.CDLL(None)
libc.pthread_mutex_lock(lock)
try:
    print("ready", flush=True)
    libc.pthread_mutex_lock(lock)
except ending.StoppedBySignal:
    libc.pthread_mutex_lock(lock)
"""
BUSY = """
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.01)
except ending.StoppedBySignal as stop:
    watch.begin_clean_up()
    print("cleaned up by the main thread", flush=True)
    watch.end()
    raise SystemExit(stop.exit_code)
"""
STUCK_CLEAN_UP = """
try:
    print("ready", flush=True)
    time.sleep(60)
except ending.StoppedBySignal:
    watch.begin_clean_up()
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("state", "word"),
    [
        (STUCK, "cleaned up by the watcher"),
        (BUSY, "cleaned up by the main thread"),
        (STUCK_CLEAN_UP, "the clean-up takes longer"),
    ],
)
def test_a_signal_ends_the_process(number: signal.Signals, state: str, word: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BEGIN + state], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        text, _ = process.communicate(timeout=END_LIMIT_S)
    assert word in text
    assert process.returncode == 128 + number
