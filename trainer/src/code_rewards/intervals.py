"""How sure a mean reward is. Pure.

A reward lies in [0, 1], so its variance is at most that of a coin with the same mean: the Wilson interval of a
proportion holds for it too, and is on the careful side. Unlike a bootstrap it has a width when all samples are equal,
which is what a model that can't solve anything looks like.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

Z_95 = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % confidence interval, over so many samples."""

    mean: float
    low: float
    high: float
    samples: int


def interval_of(rewards: Iterable[float | None]) -> Interval | None:
    """Interval of these rewards (numbers in [0, 1]; None is left out), or None when nothing was scored.

    It speaks of these tasks only: how the model would do on others, no number of samples tells.
    """
    scored = [reward for reward in rewards if reward is not None]
    if not scored:
        return None
    count = len(scored)
    mean = sum(scored) / count
    spread = Z_95**2 / count
    centre = (mean + spread / 2) / (1 + spread)
    reach = Z_95 * sqrt(mean * (1 - mean) / count + spread / (4 * count)) / (1 + spread)
    return Interval(mean, max(0.0, centre - reach), min(1.0, centre + reach), count)


def difference_of(before: Interval, after: Interval) -> Interval:
    """Interval of `after` less `before` (Newcombe's method: two independent Wilson intervals)."""
    change = after.mean - before.mean
    down = sqrt((after.mean - after.low) ** 2 + (before.high - before.mean) ** 2)
    up = sqrt((after.high - after.mean) ** 2 + (before.mean - before.low) ** 2)
    return Interval(change, max(-1.0, change - down), min(1.0, change + up), min(before.samples, after.samples))
