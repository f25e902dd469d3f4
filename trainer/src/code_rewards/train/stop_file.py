"""Stops a job that somebody asks to make room, with a checkpoint of the step that was under way.

Whoever runs the job, say on a machine that is about to be taken away, asks by making the file that
CODE_REWARDS_STOP_FILE names. A file and not a signal: launchers end every process of a job on a signal, and the
processes have to save together.
"""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from .interruption import InterruptedJobError

STOP_FILE = "CODE_REWARDS_STOP_FILE"


class SaveAndStop(TrainerCallback):
    """Every process must look at the same points, and then do the same."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.checkpoint: str | None = None

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step < state.max_steps and self._is_asked(args):
            control.should_save = control.should_training_stop = True
            self.checkpoint = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """An evaluation is begun anew by whoever goes on."""
        if self._is_asked(args):
            raise InterruptedJobError(None)

    def _is_asked(self, args: Any) -> bool:
        asked = os.path.exists(self._path)
        if args.world_size == 1:
            return asked
        import torch

        flag = torch.tensor([int(asked)], device=args.device)
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
        return bool(flag.item())


def stop_when_asked(trainer: Any) -> SaveAndStop | None:
    """None when nobody can ask: the environment names no file."""
    path = os.environ.get(STOP_FILE)
    if not path:
        return None
    callback = SaveAndStop(path)
    trainer.add_callback(callback)
    return callback
