"""Programs whose reward is known beforehand: the task's own solution, and the shortcuts a model finds first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ECHO = "import sys\nsys.stdout.write(sys.stdin.read())"
TELL_SIZE = "import json, sys\nprint(len(json.load(sys.stdin)))"
GIVE_UP = "raise SystemExit(0)"
CONSTANTS = ("{}", "[]", "0", "1", "true", "false", "null", '""')


@dataclass(frozen=True)
class Probe:
    """A completion for a task, and what it stands for. `due_cases`: how many test cases it passes in any task."""

    name: str
    completion: str
    is_solution: bool = False
    due_cases: int = 0


def list_probes(task: Mapping[str, Any]) -> list[Probe]:
    """The probes of one task: its solution, if it has one, and every shortcut."""
    solution = task.get("solution")
    known = [Probe("solution", fence(solution), is_solution=True)] if solution else []
    return known + list_shortcuts(task)


def list_shortcuts(task: Mapping[str, Any]) -> list[Probe]:
    outputs = Counter(test_case["output"] for test_case in task["test_cases"])
    usual = outputs.most_common(1)[0][0]
    constants = {f"prints {text}": print_text(text) for text in CONSTANTS}
    programs = constants | {
        "prints nothing": GIVE_UP,
        "echoes its input": ECHO,
        "prints the size of its input": TELL_SIZE,
    }
    return [
        Probe("says that it doesn't know", "I don't know."),
        Probe("is an empty block", fence("")),
        *(Probe(name, fence(source)) for name, source in programs.items()),
        Probe("prints the answer of most cases", fence(print_text(usual)), due_cases=1),
        *([Probe("prints all answers, one a line", fence(print_text("\n".join(outputs))))] if len(outputs) > 1 else []),
    ]


def fence(source: str) -> str:
    """A completion that holds this program, whatever the program's own text is."""
    longest = max((len(run) for run in backtick_runs(source)), default=0)
    marker = "`" * max(3, longest + 1)
    return f"{marker}python\n{source}\n{marker}"


def backtick_runs(text: str) -> list[str]:
    return ("".join(character if character == "`" else " " for character in text)).split()


def print_text(text: str) -> str:
    return f"import sys\nsys.stdout.write({json.dumps(text)})"
