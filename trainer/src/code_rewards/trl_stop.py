"""Stops a training on every process at once, with a checkpoint of the last step that was whole.

A reward function runs in another thread, on every process for itself, and must not wait for the others there. So it
only notes why to stop; the processes compare notes before the weights are changed, and save together: saving takes all
of them when a model is sharded.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from .trl_faults import FaultBudgetSpentError

if TYPE_CHECKING:
    from .trl import CodeReward


class StopOnFault(TrainerCallback):
    def __init__(self, trainer: Any, rewards: Sequence[CodeReward]) -> None:
        self._trainer = trainer
        self._rewards = rewards

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The rewards of this step are not what they should be, and its weights are not yet changed."""
        cause = self._find_cause(args)
        if cause is None:
            return
        error = FaultBudgetSpentError(cause)
        self._trainer._save_checkpoint(self._trainer.model, trial=None)
        if args.world_size > 1:
            # A launcher ends the others as soon as one process has failed.
            import torch

            torch.distributed.barrier()
        error.checkpoint = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
        raise error

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        cause = self._find_cause(args)
        if cause is not None:
            raise FaultBudgetSpentError(cause)

    def _find_cause(self, args: Any) -> str | None:
        """The first process's cause that has one; every process must ask at the same point."""
        mine = next((reward.stop_cause for reward in self._rewards if reward.stop_cause is not None), None)
        if args.world_size == 1:
            return mine
        import torch

        flag = torch.tensor([0 if mine is None else 1], device=args.device)
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
        if not flag.item():
            return None
        causes: list[str | None] = [None] * args.world_size
        torch.distributed.all_gather_object(causes, mine)
        return next(f"(rank {rank}) {cause}" for rank, cause in enumerate(causes) if cause is not None)


def add_stop_callback(trainer: Any, rewards: Sequence[CodeReward]) -> None:
    trainer.add_callback(StopOnFault(trainer, rewards))
