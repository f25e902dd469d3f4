"""Rewards for TRL's trainers (GRPO, RLOO).

    trainer = GRPOTrainer(model=…, reward_funcs=code_reward, train_dataset=dataset)
    stop_on_fault(trainer)

or `trl grpo --reward_funcs code_rewards.trl.code_reward`. The dataset has a column `test_cases` (or `tests`, in the
shape that a published dataset has) beside its prompts, and may have `comparison`, `limits`, `scoring` and `task_id`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .client import AsyncRewardClient
from .errors import UnavailableError
from .results import BatchResult
from .runs import RunOptions
from .trl_columns import build_tasks, keep_columns_quiet
from .trl_faults import FaultBudgetSpentError, FaultWatch
from .trl_metrics import describe_result, measure_call
from .trl_settings import RewardSettings, read_settings

VERDICT_COLUMN = "e2b/verdict"


@dataclass(frozen=True)
class ScoredCall:
    """One reward call, for those who watch. Lists are in the order of the completions."""

    completions: Sequence[Any]
    task_ids: Sequence[Any]
    result: BatchResult
    step: int | None


class CodeReward:
    """A reward function with settings of its own. Picklable, and one object serves any number of trainers.

    reward = CodeReward(RewardSettings(url="https://…", workers=8, on_fault="mask"))
    trainer = GRPOTrainer(model=…, reward_funcs=reward, train_dataset=dataset)
    """

    __name__ = "code_reward"

    def __init__(self, settings: RewardSettings | None = None) -> None:
        """Raises MisconfiguredError when there is no address or no key of an endpoint."""
        self.settings = settings or read_settings()
        self.client = make_client(self.settings)
        self._start()

    def _start(self) -> None:
        self.watch = FaultWatch(self.settings)
        self.stop_cause: str | None = None
        # Whether a callback ends the training when there is a cause to; else the call itself does, by raising.
        self.is_watched = False
        self.observers: list[Callable[[ScoredCall], None]] = []

    async def __call__(
        self,
        completions: Sequence[Any],
        test_cases: Sequence[Any] | None = None,
        *,
        tests: Sequence[Any] | None = None,
        comparison: Sequence[Any] | None = None,
        limits: Sequence[Any] | None = None,
        scoring: Sequence[Any] | None = None,
        task_id: Sequence[Any] | None = None,
        trainer_state: Any = None,
        log_metric: Callable[[str, float], None] | None = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        **_columns: Any,
    ) -> list[float | None]:
        """One reward in [0, 1] per completion, in order; None where the platform failed, never 0 for that.

        Raises FaultBudgetSpentError as the settings say, InvalidRequestError for a task that can't be judged,
        AuthenticationError, MisconfiguredError.
        """
        keep_columns_quiet()
        tasks = build_tasks(
            len(completions),
            {
                "test_cases": test_cases,
                "tests": tests,
                "comparison": comparison,
                "limits": limits,
                "scoring": scoring,
            },
        )
        result, error = await self._score(completions, tasks)
        if log_metric is not None:
            for name, value in measure_call(result).items():
                log_metric(name, value)
        if log_extra is not None:
            log_extra(VERDICT_COLUMN, [describe_result(one) for one in result.results])
        call = ScoredCall(completions, task_id or [None] * len(completions), result, read_step(trainer_state))
        for observe in self.observers:
            observe(call)
        self._stop_or_go_on(result, error)
        return result.rewards

    async def _score(
        self, completions: Sequence[Any], tasks: list[dict[str, Any]]
    ) -> tuple[BatchResult, UnavailableError | None]:
        settings = self.settings
        try:
            scored = await self.client.score(
                completions, tasks, extraction=settings.extraction, reasoning=settings.reasoning
            )
            return scored, None
        except UnavailableError as error:
            if error.partial is None:
                raise
            return error.partial, error

    def _stop_or_go_on(self, result: BatchResult, error: UnavailableError | None) -> None:
        cause = self.watch.judge(result, error)
        if cause is None:
            return
        self.stop_cause = self.stop_cause or cause
        if not self.is_watched:
            raise FaultBudgetSpentError(cause) from error

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "client": self.client}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()


def make_client(settings: RewardSettings) -> AsyncRewardClient:
    return AsyncRewardClient(
        settings.url,
        settings.api_key,
        run=RunOptions(id=settings.run_id, name=settings.run_name, workers=settings.workers),
        fault_budget_s=settings.fault_budget_s,
        deadline_s=settings.deadline_s,
    )


def read_step(trainer_state: Any) -> int | None:
    step = getattr(trainer_state, "global_step", None)
    return step if isinstance(step, int) else None


async def code_reward(
    completions: Sequence[Any], test_cases: Sequence[Any] | None = None, **columns: Any
) -> list[float | None]:
    """`CodeReward` with settings from the environment: CODE_REWARDS_URL, CODE_REWARDS_API_KEY, and those that
    `RewardSettings` names. A module-level function, so that it can be named by its dotted path."""
    return await default_reward()(completions, test_cases, **columns)


_default: CodeReward | None = None
_lock = threading.Lock()


def default_reward() -> CodeReward:
    """The object behind `code_reward`, made when it is first needed."""
    global _default
    with _lock:
        if _default is None:
            _default = CodeReward()
        return _default


def stop_on_fault(trainer: Any) -> None:
    """Has a trainer save a checkpoint before it stops because of `on_fault`.

    Call it once, after the trainer is made. Without it the reward function itself raises, on one process and without a
    checkpoint. Raises ValueError for a trainer without one of our reward functions.
    """
    from .trl_stop import add_stop_callback

    rewards = [default_reward() if func is code_reward else func for func in trainer.reward_funcs]
    ours = [reward for reward in rewards if isinstance(reward, CodeReward)]
    if not ours:
        raise ValueError("the trainer has no code_reward among its reward functions")
    for reward in ours:
        reward.is_watched = True
    add_stop_callback(trainer, ours)
