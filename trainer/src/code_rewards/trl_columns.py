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


def build_tasks(
    test_cases: Sequence[Any], limits: Sequence[Any] | None, comparison: Sequence[Any] | None
) -> list[dict[str, Any]]:
    """One task per completion. A column may hold JSON text instead of objects; what is None in a row is left out."""
    count = len(test_cases)
    return [
        build_task(cases, limit, compared)
        for cases, limit, compared in zip(
            test_cases, limits or [None] * count, comparison or [None] * count, strict=True
        )
    ]


def build_task(test_cases: Any, limits: Any, comparison: Any) -> dict[str, Any]:
    parts = {"limits": without_nones(read_column(limits)), "comparison": without_nones(read_column(comparison))}
    cases = [without_nones(test_case) for test_case in read_column(test_cases) or []]
    return {"test_cases": cases} | {name: value for name, value in parts.items() if value}


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
