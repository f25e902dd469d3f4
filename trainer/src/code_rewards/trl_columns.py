"""What TRL's datasets say of a task, as the endpoint wants it, and what TRL's log must not say of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

LEAKING_TEXT = "All reward functions returned None for the following kwargs"
QUIET_TEXT = (
    "The platform failed on some completions: they have no reward and move no weight. (Their columns are left out "
    "here, since they hold the expected outputs; the metric e2b/faults counts them.)"
)


SETTINGS = ("comparison", "limits", "scoring")


def build_tasks(count: int, columns: Mapping[str, Sequence[Any] | None]) -> list[dict[str, Any]]:
    """One task per completion, from the columns `test_cases` or `tests`, and those of SETTINGS.

    A column may hold JSON text instead of objects; what is None in a row is left out. Raises ValueError when there are
    no tests at all, or columns of another length.
    """
    known = {name: column for name, column in columns.items() if column is not None}
    if "test_cases" not in known and "tests" not in known:
        raise ValueError("the dataset has neither a column test_cases nor a column tests")
    for name, column in known.items():
        if len(column) != count:
            raise ValueError(f"{count} completions need as many {name}, not {len(column)}")
    return [build_task({name: column[index] for name, column in known.items()}) for index in range(count)]


def build_task(row: Mapping[str, Any]) -> dict[str, Any]:
    """The task of one row. `tests`, a dataset's own column, goes as it is: the endpoint knows such columns' shapes."""
    task: dict[str, Any] = {}
    if (test_cases := read_column(row.get("test_cases"))) is not None:
        task["test_cases"] = [without_nones(test_case) for test_case in test_cases]
    if (tests := row.get("tests")) is not None:
        task["tests"] = tests
    settings = {name: without_nones(read_column(row.get(name))) for name in SETTINGS}
    return task | {name: value for name, value in settings.items() if value}


def read_column(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def without_nones(value: Any) -> Any:
    """Datasets fill fields that only other rows have with None."""
    return {name: part for name, part in value.items() if part is not None} if isinstance(value, Mapping) else value


class ColumnFilter(logging.Filter):
    """Takes the columns out of TRL's warning about a sample that no function gave a reward to."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str) and LEAKING_TEXT in record.msg:
            record.msg, record.args = QUIET_TEXT, None
        return True


_filter = ColumnFilter()


def keep_columns_quiet() -> None:
    """Puts the filter on all of TRL's loggers; the ones that have it stay as they are."""
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if name.startswith("trl.") and isinstance(logger, logging.Logger):
            logger.addFilter(_filter)
