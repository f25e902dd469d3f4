"""What a reward function for TRL is set up with: by arguments, or by environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import MisconfiguredError
from .retry import DEFAULT_DEADLINE_S, DEFAULT_FAULT_BUDGET_S

DEFAULT_WORKERS = 2
DEFAULT_MASK_BUDGET_S = 3_600.0
PREFIX = "CODE_REWARDS_"
ON_FAULT = ("abort", "mask")


@dataclass(frozen=True)
class RewardSettings:
    """All of them have an environment variable: CODE_REWARDS_ and the name in capitals.

    url, api_key: the endpoint. run_id, run_name, workers: the run that the job registers; `workers` sandboxes at most.
    on_fault: what happens when a call has spent its fault budget: `abort` stops the training, `mask` gives the samples
    in question no reward and goes on. fault_budget_s: how long one call may be tried again after its first fault.
    deadline_s: the longest that one call may take. mask_budget_s: how long a whole job with `mask` may wait for rewards
    that never come; then it stops as with `abort`. extraction, reasoning: how programs are found in completions.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    run_id: str | None = None
    run_name: str | None = None
    workers: int = DEFAULT_WORKERS
    on_fault: str = "abort"
    fault_budget_s: float = DEFAULT_FAULT_BUDGET_S
    deadline_s: float = DEFAULT_DEADLINE_S
    mask_budget_s: float = DEFAULT_MASK_BUDGET_S
    extraction: str = "first"
    reasoning: str = "auto"

    def __post_init__(self) -> None:
        if self.on_fault not in ON_FAULT:
            raise MisconfiguredError(f"on_fault must be abort or mask, not {self.on_fault!r}")


READERS: dict[str, Callable[[str], Any]] = {
    "url": str,
    "api_key": str,
    "run_id": str,
    "run_name": str,
    "workers": int,
    "on_fault": str,
    "fault_budget_s": float,
    "deadline_s": float,
    "mask_budget_s": float,
    "extraction": str,
    "reasoning": str,
}


def read_settings(environment: Mapping[str, str] = os.environ) -> RewardSettings:
    """Settings from the environment. An empty variable is one that isn't set. Raises MisconfiguredError."""
    values = {}
    for name, read in READERS.items():
        text = environment.get(PREFIX + name.upper(), "").strip()
        if not text:
            continue
        try:
            values[name] = read(text)
        except ValueError:
            raise MisconfiguredError(f"{PREFIX}{name.upper()} must be a number, not {text!r}") from None
    return RewardSettings(**values)
