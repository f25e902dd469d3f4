"""What tiny models can say."""

from __future__ import annotations

from programs import ENDLESS, NOTHING, fence

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
HANGING = [ENDLESS]
