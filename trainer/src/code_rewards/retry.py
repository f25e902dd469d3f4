"""How long to wait before a request is sent again, and when to give up. Pure: clock and chance are arguments."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import UnavailableError

# Half of the time in which the ranks of a distributed run wait for each other.
DEFAULT_DEADLINE_S = 900.0
DEFAULT_FAULT_BUDGET_S = 900.0


@dataclass(frozen=True)
class RetryPolicy:
    """`deadline_s`: the longest that a call may take. `fault_budget_s`: how much of that may be lost to faults: in
    attempts that failed and in waiting to try again."""

    deadline_s: float = DEFAULT_DEADLINE_S
    fault_budget_s: float = DEFAULT_FAULT_BUDGET_S
    base_s: float = 0.5
    cap_s: float = 20.0
    retry_after_cap_s: float = 120.0


@dataclass
class Patience:
    """One call's patience. All times are of one monotonic clock, in seconds."""

    policy: RetryPolicy
    began_s: float
    lost_s: float = 0.0
    failures: int = 0

    @property
    def ends_s(self) -> float:
        """When the call is given up, whatever it does."""
        return self.began_s + self.policy.deadline_s

    def lose(self, seconds: float) -> None:
        """Time that a fault cost."""
        self.lost_s += seconds

    def succeed(self) -> None:
        """All is well again: the next failure is a first one. What was lost stays lost."""
        self.failures = 0

    def next_wait_s(self, now_s: float, chance: float, retry_after_s: float | None = None) -> float | None:
        """How long to wait after a failure, None when there is no time for it.

        Full jitter (`chance` is from 0 to 1) over a doubling range, on top of what the service asked for.
        """
        asked_s = min(retry_after_s or 0.0, self.policy.retry_after_cap_s)
        range_s = min(self.policy.cap_s, self.policy.base_s * 2.0 ** min(self.failures, 16))
        wait_s = asked_s + chance * range_s
        if now_s + wait_s >= self.ends_s or self.lost_s + wait_s >= self.policy.fault_budget_s:
            return None
        self.failures += 1
        self.lost_s += wait_s
        return wait_s

    def give_up(self, now_s: float, last: UnavailableError) -> UnavailableError:
        spent_s = now_s - self.began_s
        detail = f"The service could not grade the batch within {spent_s:.0f} s. The last failure: {last.detail}"
        error = UnavailableError(detail, code=last.code, request_id=last.request_id, retry_after_s=last.retry_after_s)
        error.__cause__ = last
        return error
