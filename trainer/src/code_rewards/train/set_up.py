"""The trainer's configuration: what the flags leave open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..task_files import as_dataset_rows
from .arguments import LATEST, TrainOptions
from .preflight import RefusedError, eval_batch_size


def require_device(options: TrainOptions) -> None:
    import torch

    if not options.cpu and not torch.cuda.is_available():
        raise RefusedError("there is no CUDA GPU here; pass --cpu for a slow run that checks that everything works")


def make_config(options: TrainOptions, world_size: int) -> Any:
    """Under a launcher this joins the processes of the job."""
    import torch
    from trl.trainer.grpo_config import GRPOConfig

    bf16 = not options.cpu and torch.cuda.is_bf16_supported()
    return GRPOConfig(
        output_dir=options.output_dir,
        use_cpu=options.cpu,
        bf16=bf16,
        fp16=False,
        model_init_kwargs={"dtype": "bfloat16" if bf16 else "float32"},
        per_device_train_batch_size=options.batch_size,
        per_device_eval_batch_size=eval_batch_size(options.eval_generations, world_size),
        gradient_accumulation_steps=options.gradient_accumulation_steps,
        num_generations=options.num_generations,
        num_generations_eval=options.eval_generations,
        max_completion_length=options.max_completion_length,
        max_steps=options.max_steps,
        learning_rate=options.learning_rate,
        lr_scheduler_type=options.lr_scheduler,
        temperature=options.temperature,
        gradient_checkpointing=True,
        logging_steps=1,
        disable_tqdm=True,
        save_strategy="steps" if options.save_steps else "no",
        save_steps=options.save_steps or 500,
        save_total_limit=2,
        report_to=options.report_to,
        push_to_hub=False,
        dataloader_pin_memory=not options.cpu,
        seed=options.seed,
    )


def make_trainer(options: TrainOptions, config: Any, reward: Any, train_tasks: Sequence[Any]) -> Any:
    from trl.trainer.grpo_trainer import GRPOTrainer

    return GRPOTrainer(model=options.model, args=config, reward_funcs=reward, train_dataset=make_dataset(train_tasks))


def make_dataset(tasks: Sequence[Any]) -> Any:
    from datasets import Dataset

    return Dataset.from_list(as_dataset_rows(tasks))


def find_checkpoint(options: TrainOptions) -> str | None:
    """The directory to resume from, None when nothing is to be resumed. Raises RefusedError when it isn't there."""
    if options.resume_from_checkpoint is None:
        return None
    directory = Path(options.resume_from_checkpoint)
    if options.resume_from_checkpoint == LATEST:
        numbered = {read_number(path): path for path in Path(options.output_dir).glob("checkpoint-*")}
        if not numbered:
            raise RefusedError(f"there is no checkpoint-N directory in {options.output_dir} to resume from")
        directory = numbered[max(numbered)]
    state = directory / "trainer_state.json"
    if not state.is_file():
        raise RefusedError(f"{directory} is no checkpoint to resume from: it has no trainer_state.json")
    done = json.loads(state.read_text(encoding="utf-8"))["global_step"]
    if done >= options.max_steps:
        raise RefusedError(f"{directory} has done {done} steps already: raise --max-steps above that to go on")
    return str(directory)


def read_number(checkpoint: Path) -> int:
    number = checkpoint.name.removeprefix("checkpoint-")
    return int(number) if number.isdecimal() else -1
