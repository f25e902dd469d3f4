"""One readable line per step, instead of everything that the trainer knows; all of it is in the metrics file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import PrinterCallback, ProgressCallback, TrainerCallback


class StepLines(TrainerCallback):
    """Prints on the first process of a job only."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any) -> None:
        line = describe_log(logs or {}, state.global_step, state.max_steps)
        if line and state.is_world_process_zero:
            print(line, flush=True)


def describe_log(logs: Mapping[str, Any], step: int, max_steps: int) -> str | None:
    """None for what needs no line."""
    if "reward" in logs:
        return f"step {step}/{max_steps}: {describe_numbers(logs, '')}"
    if "eval_reward" in logs:
        return f"evaluation: {describe_numbers(logs, 'eval_')}"
    return None


def describe_numbers(logs: Mapping[str, Any], prefix: str) -> str:
    def read(name: str) -> float | None:
        value = logs.get(prefix + name)
        return float(value) if isinstance(value, int | float) else None

    reward, equal, waited, faults = (
        read(name) for name in ("reward", "frac_reward_zero_std", "e2b/reward_seconds", "e2b/faults")
    )
    parts = [
        "no reward" if reward is None else f"reward {reward:.3f}",
        "" if equal is None else f"groups without variance {equal:.0%}",
        "" if waited is None else f"waited {waited:.2f} s for rewards",
        f"{faults:g} without a reward by a fault" if faults else "",
    ]
    return ", ".join(part for part in parts if part)


def print_steps_only(trainer: Any) -> None:
    """Replaces the trainer's own printing."""
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    trainer.add_callback(StepLines())
