"""Reading a file of tasks, and making its rows fit for a dataset."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

Task = dict[str, Any]

TRAIN_NAME = "TRAIN_TASKS"
HELD_OUT_NAMES = ("HELD_OUT_TASKS", "EVAL_TASKS")


class TaskFileError(ValueError):
    """A file of tasks can't be used; the message says what to change in it."""


def load_tasks(source: str) -> tuple[list[Task], list[Task]]:
    """The training and the held-out tasks of a Python file or module, as two lists of rows.

    Raises TaskFileError for a file without `TRAIN_TASKS`, or with a row that is no task.
    """
    module = load_module(source)
    train = getattr(module, TRAIN_NAME, None)
    held_out: list[Task] = next((getattr(module, name) for name in HELD_OUT_NAMES if hasattr(module, name)), [])
    if not train:
        raise TaskFileError(f"{source} has no {TRAIN_NAME}: name a list of tasks so")
    for name, rows in ((TRAIN_NAME, train), (HELD_OUT_NAMES[0], held_out)):
        for index, row in enumerate(rows):
            check_row(f"{name}[{index}] of {source}", row)
    return list(train), list(held_out)


def load_module(source: str) -> ModuleType:
    path = Path(source)
    if path.suffix != ".py":
        return importlib.import_module(source)
    if not path.is_file():
        raise TaskFileError(f"there is no file {source}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def check_row(where: str, row: Any) -> None:
    if not isinstance(row, dict) or "prompt" not in row:
        raise TaskFileError(f"{where} has no prompt: make it with `task(…)`")
    cases = row.get("test_cases")
    if not cases:
        raise TaskFileError(f"{where} has no test cases")
    for number, test_case in enumerate(cases):
        if set(test_case) != {"input", "output"} or not all(isinstance(text, str) for text in test_case.values()):
            raise TaskFileError(f"test case {number} of {where} is not made of two texts: make it with `case(…)`")


def as_dataset_rows(tasks: Sequence[Task]) -> list[Task]:
    """What the trainer is given: the known solution stays behind, and every row has the same columns."""
    columns = {"task_id", "prompt", "test_cases"} | {name for row in tasks for name in row}
    columns.discard("solution")
    return [{name: row.get(name) for name in sorted(columns)} for row in tasks]
