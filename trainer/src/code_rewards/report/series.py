"""What a metrics file says, as numbers by step. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..trl_metrics import VERDICTS

VERDICT_PREFIX = "e2b/verdict/"


@dataclass(frozen=True)
class Series:
    """One number per step. A step without a number (say, a masked one) has None."""

    name: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def known(self) -> list[tuple[float, float]]:
        return [(step, value) for step, value in self.points if value is not None]


def training_steps(metrics: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The log entries of training steps, in order; a step logged again after a resume counts once, the later time."""
    by_step = {entry["step"]: entry for entry in metrics.get("history", []) if "reward" in entry and "step" in entry}
    return [by_step[step] for step in sorted(by_step)]


def read_series(steps: Sequence[Mapping[str, Any]], key: str, name: str | None = None) -> Series:
    return Series(name or key, tuple((entry["step"], as_number(entry.get(key))) for entry in steps))


def as_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return float(value) if is_number else None


def verdict_mix(steps: Sequence[Mapping[str, Any]]) -> list[Series]:
    """The share of each verdict by step, for the verdicts that occurred."""
    mix = [read_series(steps, VERDICT_PREFIX + verdict, verdict) for verdict in VERDICTS]
    return [series for series in mix if any(value for _, value in series.known)]


def thin_out(series: Series, most: int) -> Series:
    """At most so many points: neighbours are averaged."""
    size = -(-len(series.points) // most)
    if size <= 1:
        return series
    groups = [series.points[start : start + size] for start in range(0, len(series.points), size)]
    return Series(series.name, tuple((group[-1][0], average(value for _, value in group)) for group in groups))


def average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
