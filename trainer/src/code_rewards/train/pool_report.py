"""What a job used of the endpoint: this process's counts, and the endpoint's own totals of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..trl import ScoredCall
from ..trl_metrics import measure_call

SUMMED = (
    "e2b/worker_seconds",
    "e2b/workers_created",
    "e2b/programs_run",
    "e2b/duplicates",
    "e2b/retries",
    "e2b/resubmitted",
    "e2b/cost_usd",
)
TIMED = {"reward_batch": "e2b/reward_seconds", "queue": "e2b/queue_seconds"}


class PoolCounts:
    """Sums over the reward calls of one process. Plain numbers, so that processes can send them to each other."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.longest: dict[str, float] = {}

    def __call__(self, call: ScoredCall) -> None:
        numbers = measure_call(call.result)
        self.sums["calls"] += 1
        self.sums["samples"] += len(call.result.rewards)
        self.sums["masked"] += len(call.result.faults)
        for name in SUMMED:
            self.sums[name.removeprefix("e2b/")] += numbers[name]  # type: ignore[assignment]
        for name, metric in TIMED.items():
            self.sums[f"{name}_seconds"] += numbers[metric]  # type: ignore[assignment]
            self.longest[name] = max(self.longest.get(name, 0.0), numbers[metric])

    def __add__(self, other: PoolCounts) -> PoolCounts:
        both = PoolCounts()
        both.sums = self.sums + other.sums
        names = self.longest.keys() | other.longest.keys()
        both.longest = {name: max(self.longest.get(name, 0.0), other.longest.get(name, 0.0)) for name in names}
        return both


def describe_pool(counts: PoolCounts, run_id: str | None, totals: Mapping[str, Any] | None) -> dict[str, Any]:
    """The `pool` of a metrics file. Without the endpoint's totals, idle sandboxes are not in the seconds."""
    sums = counts.sums
    calls = sums["calls"]
    known = totals or {}
    names = ("calls", "samples", "masked", *(name.removeprefix("e2b/") for name in SUMMED))
    return {
        "run_id": run_id,
        "workers_created": known.get("workers_created", sums["workers_created"]),
        "infrastructure_retries": sums["retries"] + sums["resubmitted"],
        "worker_seconds_estimate": known.get("worker_seconds", sums["worker_seconds"]),
        "cost_usd": known.get("cost_usd", sums["cost_usd"]),
        "timings": {
            name: {
                "count": calls,
                "mean_seconds": sums[f"{name}_seconds"] / calls,
                "max_seconds": counts.longest[name],
            }
            for name in TIMED
            if calls
        },
        "usage": {name: sums[name] for name in names},
        "totals": totals,
    }
