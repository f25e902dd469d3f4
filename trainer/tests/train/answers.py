"""What tiny models can say."""

from __future__ import annotations

import os
from pathlib import Path

from programs import NOTHING, fence

# Other tests may be running on this machine.
MARKER = f"a-program-that-nobody-waits-for-{os.getpid()}"

SUM_TOKENS = fence(
    "import json, sys\n"
    "totals = {}\n"
    "for record in json.load(sys.stdin):\n"
    "    totals[record['customer']] = totals.get(record['customer'], 0) + record['tokens']\n"
    "print(json.dumps(totals))"
)
PARTLY = fence("import json, sys\nprint(json.dumps({r['customer']: r['tokens'] for r in json.load(sys.stdin)}))")
DEGENERATE = [
    fence("print(" + "1+" * 30_000 + "1)"),
    fence("print('\x00')"),
    "`" * 1_000_000,
]
LEARNABLE = [SUM_TOKENS, PARTLY, fence("print('[]')"), fence("raise SystemExit(1)"), NOTHING]
# Becomes a process that is told from all others.
HANGING = [
    fence(
        f'import os, sys\nos.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(50)", "{MARKER}"])'
    )
]


def hanging_programs() -> list[int]:
    """Processes of `HANGING` on this machine."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARKER.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue  # it ended while we looked
    return found
