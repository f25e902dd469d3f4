"""Completions, the task that they are judged by, and how many of their processes there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

DOUBLE: dict[str, Any] = {
    "test_cases": [{"input": "2", "output": "4"}, {"input": "5", "output": "10"}, {"input": "0", "output": "0"}]
}
# Other tests may be running on this machine; processes that a test starts are told.
MARKER = os.environ.setdefault("CODE_REWARDS_TEST_MARKER", f"nobody-waits-for-this-program-{os.getpid()}")


def fence(source: str) -> str:
    return f"```python\n{source}\n```"


RIGHT = fence("print(int(input()) * 2)")
PARTLY = fence("print(int(input()) + 2)")
WRONG = fence("print('nothing')")
CRASH = fence("raise SystemExit(3)")
BROKEN = fence("print(")
NOTHING = "I don't know."
# Becomes a process that is told from all others.
ENDLESS = fence(
    f'import os, sys\nos.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(50)", "{MARKER}"])'
)
SLOW: dict[str, Any] = {"test_cases": [{"input": "", "output": "1"}], "limits": {"time_ms": 60_000}}


def running_programs() -> list[int]:
    """Processes of `ENDLESS` on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARKER.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it ended while we looked
    return found
