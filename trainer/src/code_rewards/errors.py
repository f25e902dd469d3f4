"""What can go wrong, by what is to be done about it.

    RewardError
    ├── AuthenticationError    the key is not one of the service's: set another one
    ├── InvalidRequestError    a task or an option can't be graded: `problems` say which, and why
    ├── MisconfiguredError     the service or this client is not set up: mend what the message names
    ├── UnavailableError       the service could not be reached in the time there was; `partial` is what is known
    ├── RunFinishedError       the run was finished, or the client closed: start another one
    └── BatchCancelledError    somebody cancelled this batch

What happened to a single sample is never an exception: a fault is a result without a reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import BatchResult

SHOWN_PROBLEMS = 5


class RewardError(Exception):
    """`code` is the service's word for it, `request_id` names the request in the service's log; either may be None."""

    def __init__(self, detail: str, *, code: str | None = None, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code
        self.request_id = request_id

    def __str__(self) -> str:
        notes = [note for note in (self.code, self.request_id and f"request {self.request_id}") if note]
        return f"{self.detail} ({', '.join(notes)})" if notes else self.detail

    def __reduce__(self) -> tuple[Any, ...]:
        return _remake, (type(self), self.args, self.__dict__)


def _remake(kind: type[RewardError], args: tuple[Any, ...], state: dict[str, Any]) -> RewardError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class AuthenticationError(RewardError):
    """The service does not know the key."""


@dataclass(frozen=True)
class RequestProblem:
    """One thing that can't be graded.

    `pointer` is a JSON pointer into what `score` was given (`/tasks/3/test_cases/0/output` is in the task of sample 3);
    `samples` are the indexes of the samples it concerns, empty when it concerns the whole call.
    """

    pointer: str
    detail: str
    samples: tuple[int, ...] = ()


class InvalidRequestError(RewardError):
    """Nothing was graded: what was sent asks for something impossible. Sending it again won't help."""

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        problems: tuple[RequestProblem, ...] = (),
    ) -> None:
        super().__init__(detail, code=code, request_id=request_id)
        self.problems = problems

    def __str__(self) -> str:
        shown = "".join(f"\n  {problem.pointer}: {problem.detail}" for problem in self.problems[:SHOWN_PROBLEMS])
        rest = len(self.problems) - SHOWN_PROBLEMS
        return super().__str__() + shown + (f"\n  and {rest} more" if rest > 0 else "")


class BodyTooLargeError(InvalidRequestError):
    """The body is more than the service, or something before it, lets through."""


class MisconfiguredError(RewardError):
    """The service, or this client, is not set up as it must be."""


class UnavailableError(RewardError):
    """The service was not there, was overloaded, or broke off, for longer than there was time.

    `partial` has what is known of each sample when a whole call failed: those not graded are faults without a reward.
    """

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(detail, code=code, request_id=request_id)
        self.retry_after_s = retry_after_s
        self.partial: BatchResult | None = None


class RunNotFoundError(RewardError):
    """The service does not know the run (any more). The client registers it anew; callers never see this."""


class RunFinishedError(RewardError):
    """The run is over for good."""


class BatchCancelledError(RewardError):
    """The batch was cancelled on the service."""
