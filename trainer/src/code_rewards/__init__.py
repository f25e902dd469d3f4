"""The trainer's side of code-rewards: completions in, one reward in [0, 1] or None per completion out.

from code_rewards import RewardClient

with RewardClient() as client:
    task = {"test_cases": [{"input": "2", "output": "4"}]}
    print(client.score(["```python\\nprint(int(input()) * 2)\\n```"], [task]).rewards)
"""

from .client import AsyncRewardClient, RewardClient
from .errors import (
    AuthenticationError,
    BatchCancelledError,
    InvalidRequestError,
    MisconfiguredError,
    RequestProblem,
    RewardError,
    RunFinishedError,
    UnavailableError,
)
from .results import BatchResult, Fault, Result, Usage, Verdict
from .runs import RunOptions

__all__ = [
    "AsyncRewardClient",
    "AuthenticationError",
    "BatchCancelledError",
    "BatchResult",
    "Fault",
    "InvalidRequestError",
    "MisconfiguredError",
    "RequestProblem",
    "Result",
    "RewardClient",
    "RewardError",
    "RunFinishedError",
    "RunOptions",
    "UnavailableError",
    "Usage",
    "Verdict",
]
