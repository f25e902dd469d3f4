"""The command `code-rewards`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

USAGE = """usage: code-rewards COMMAND …

  check-tasks [FILE]             what known solutions and shortcuts score on your tasks
  train --model MODEL …          train a model with GRPO (needs the extra `train`)
  report METRICS [-o PAGE]       a metrics.json or baseline.json as one HTML page

Each says more with --help. The endpoint is named by CODE_REWARDS_URL and CODE_REWARDS_API_KEY."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = find_command(given[0]) if given else None
    if command is None:
        asked = bool(given) and given[0] in ("-h", "--help")
        print(USAGE, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    return command(given[1:])


def find_command(name: str) -> Callable[[Sequence[str]], int] | None:
    """Commands are imported when they are called: `train` needs packages that the others do without."""
    if name == "check-tasks":
        from .check_tasks import main as check_tasks

        return check_tasks
    if name == "report":
        from .report.command import main as report

        return report
    if name == "train":
        from .train.main import main as train

        return train
    return None


if __name__ == "__main__":
    sys.exit(main())
