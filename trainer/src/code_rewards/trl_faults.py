"""When a training job stops because the platform fails. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .errors import RewardError, UnavailableError
from .results import BatchResult
from .trl_settings import RewardSettings


class FaultBudgetSpentError(RewardError):
    """The platform failed for longer than the job's settings allow. No program was scored 0 for it.

    `checkpoint` is where the training was saved, None when nothing was.
    """

    checkpoint: str | None = None


@dataclass
class FaultWatch:
    """Sums up what one process's calls lost, and says when it is too much."""

    settings: RewardSettings
    waited_s: float = 0.0

    def judge(self, result: BatchResult, error: UnavailableError | None) -> str | None:
        """Why the job has to stop, or None.

        A call whose retryable samples have no reward has spent its budget: the client tried them again until then.
        Samples that no retry can help are masked, whatever the setting.
        """
        lost = [fault for fault in result.faults.values() if fault.retryable]
        if error is None and not lost:
            return None
        self.waited_s += result.wall_s
        settings = self.settings
        if settings.on_fault == "mask" and self.waited_s < settings.mask_budget_s:
            return None
        budget = (
            f"the budget of one call, {settings.fault_budget_s:g} s"
            if settings.on_fault == "abort"
            else f"the budget of the job, {settings.mask_budget_s:g} s"
        )
        cause = error.detail if error else describe_faults(result)
        missing = sum(reward is None for reward in result.rewards)
        return (
            f"The platform failed for longer than {budget}: {missing} of {len(result.rewards)} completions have no "
            f"reward. {cause}"
        )


def describe_faults(result: BatchResult) -> str:
    """The faults by code, each with one example's words."""
    faults = list(result.faults.values())
    counts = Counter(fault.code for fault in faults)
    example = {fault.code: fault.detail for fault in faults}
    return " ".join(f"{count} × {code}: {example[code]}" for code, count in counts.most_common())
