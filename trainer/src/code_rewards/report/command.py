"""`code-rewards report`: a metrics file as a page."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from .page import render_page


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="code-rewards report", description="Writes one self-contained HTML page about a training job."
    )
    parser.add_argument("metrics", type=Path, help="the metrics.json or baseline.json that the job wrote")
    parser.add_argument("-o", "--output", type=Path, default=Path("report.html"), help="default: report.html")
    options = parser.parse_args(arguments)
    try:
        metrics = json.loads(options.metrics.read_text(encoding="utf-8"))
        if not isinstance(metrics, dict) or "model" not in metrics:
            raise ValueError("no training job wrote it")
    except (OSError, ValueError) as error:
        print(f"{options.metrics} can't be read: {error}", file=sys.stderr)
        return 1
    options.output.write_text(render_page(metrics), encoding="utf-8")
    print(f"Wrote {options.output}")
    return 0
