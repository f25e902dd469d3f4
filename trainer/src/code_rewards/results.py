"""What came of a batch."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeVar

Status = Literal["graded", "no_program", "syntax_error", "fault"]


@dataclass(frozen=True)
class Fault:
    """The platform failed, and nothing is known of the sample's program."""

    code: str
    detail: str
    retryable: bool


@dataclass(frozen=True)
class Verdict:
    """What happened on one test case. `exit_code` comes with `runtime_error`, `signal` with `signaled`,
    `stdout` and `stderr_tail` with `detail="output"`."""

    verdict: str
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    peak_rss_kib: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    stdout: str | None = None
    stderr_tail: str | None = None


@dataclass(frozen=True)
class Result:
    """What came of one sample.

    `reward` is None exactly when `fault` says why: never take it for 0. `reason` comes with `no_program` and
    `syntax_error`. With `detail="rewards"` only `reward` and `fault` are told, and `status` is None but for faults.
    """

    reward: float | None
    status: Status | None
    passed: int | None = None
    total: int | None = None
    verdicts: tuple[Verdict, ...] = ()
    reason: str | None = None
    fault: Fault | None = None


@dataclass(frozen=True)
class Usage:
    """What the requests of one call cost, added up; `workers` is the most that one of them had."""

    wall_ms: float = 0.0
    queue_ms: float = 0.0
    workers: int = 0
    worker_seconds: float = 0.0
    workers_created: int = 0
    retries: int = 0
    programs_run: int = 0
    duplicates: int = 0
    cost_usd: float = 0.0
    worker_seconds_since_previous_batch: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        sums = {field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(Usage)}
        return Usage(**{**sums, "workers": max(self.workers, other.workers)})


Shape = TypeVar("Shape", Verdict, Usage)


@dataclass(frozen=True)
class BatchResult:
    """What came of one call, in the order of its completions.

    `retries`: requests that were sent again. `resubmitted`: samples that were sent again since a fault had left them
    without a reward. `wall_s`: seconds that the whole call took.
    """

    rewards: list[float | None]
    results: list[Result]
    usage: Usage
    retries: int = 0
    resubmitted: int = 0
    wall_s: float = 0.0

    @property
    def faults(self) -> dict[int, Fault]:
        """The samples without a reward, by their index."""
        return {index: result.fault for index, result in enumerate(self.results) if result.fault is not None}


def read_result(line: dict[str, Any]) -> Result:
    """A sample's result from its JSON. Fields that this version does not know are passed over.

    Raises `KeyError`, `TypeError` or `ValueError` when it is not one.
    """
    fault = line.get("fault")
    if fault is not None or line["reward"] is None:
        fault = fault or {}
        read = Fault(str(fault.get("code", "internal")), str(fault.get("detail", "")), fault.get("retryable") is True)
        return Result(reward=None, status="fault", fault=read)
    reward = float(line["reward"])
    if not 0 <= reward <= 1:
        raise ValueError(f"a reward of {reward}")
    return Result(
        reward=reward,
        status=line.get("status"),
        passed=line.get("passed"),
        total=line.get("total"),
        verdicts=tuple(_read_known(Verdict, verdict) for verdict in line.get("verdicts", ())),
        reason=line.get("reason"),
    )


def read_usage(usage: dict[str, Any]) -> Usage:
    """Raises `TypeError` when it is none."""
    return _read_known(Usage, usage)


def _read_known(shape: type[Shape], values: dict[str, Any]) -> Shape:
    known = {field.name for field in fields(shape)}
    return shape(**{name: value for name, value in values.items() if name in known and value is not None})
