"""What would go wrong later, found before anything is loaded or paid for. Pure."""

from __future__ import annotations

from math import gcd

from .arguments import TrainOptions


class RefusedError(ValueError):
    """The job can't work as it was asked for; the message says what to change."""


def check_batches(options: TrainOptions, train_tasks: int, world_size: int) -> None:
    """Raises RefusedError for batches that can't be cut into groups, or that more prompts would be needed for.

    The second matters most: a trainer whose data doesn't fill one batch does no step, and ends as if all were well.
    """
    batch = options.batch_size * world_size * options.gradient_accumulation_steps
    if batch % options.num_generations != 0:
        raise RefusedError(
            f"a batch of {batch} completions ({describe_batch(options, world_size)}) can't be cut into groups of "
            f"--num-generations {options.num_generations}: make one a multiple of the other"
        )
    prompts = batch // options.num_generations
    if prompts > train_tasks:
        raise RefusedError(
            f"a batch of {batch} completions ({describe_batch(options, world_size)}) takes {prompts} different "
            f"prompts, and there are only {train_tasks} training tasks: no step would be done. Add tasks, lower "
            "--batch-size or --gradient-accumulation-steps, use fewer processes, or raise --num-generations"
        )


def describe_batch(options: TrainOptions, world_size: int) -> str:
    parts = [f"--batch-size {options.batch_size}", f"{world_size} process{'es' if world_size > 1 else ''}"]
    if options.gradient_accumulation_steps > 1:
        parts.append(f"--gradient-accumulation-steps {options.gradient_accumulation_steps}")
    return " × ".join(parts)


def eval_batch_size(eval_generations: int, world_size: int) -> int:
    """Completions per process and evaluation batch: the fewest with which the processes fill whole groups."""
    return eval_generations // gcd(eval_generations, world_size)
