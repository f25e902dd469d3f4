"""The flags of a training job."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..retry import DEFAULT_FAULT_BUDGET_S
from ..trl_settings import DEFAULT_MASK_BUDGET_S, DEFAULT_WORKERS, RewardSettings

LATEST = "latest"
SEED = 42


@dataclass(frozen=True)
class TrainOptions:
    """What the command line asks for. Lengths are in tokens, batch sizes in completions."""

    model: str
    output_dir: str
    tasks: str
    endpoint: str | None
    workers: int
    on_fault: str
    fault_budget_s: float
    mask_budget_s: float
    max_steps: int
    max_completion_length: int
    num_generations: int
    batch_size: int
    gradient_accumulation_steps: int
    eval_generations: int
    learning_rate: float
    lr_scheduler: str
    temperature: float
    seed: int
    cpu: bool
    baseline_only: bool
    skip_eval: bool
    save_steps: int
    resume_from_checkpoint: str | None
    record_samples: bool
    report_to: str

    def reward_settings(self, environment: RewardSettings, run_id: str) -> RewardSettings:
        """What the flags say, and for the rest the environment."""
        return replace(
            environment,
            url=self.endpoint or environment.url,
            run_id=run_id,
            run_name=environment.run_name or f"train {self.model}"[:100],
            workers=self.workers,
            on_fault=self.on_fault,
            fault_budget_s=self.fault_budget_s,
            mask_budget_s=self.mask_budget_s,
        )


def parse_options(arguments: Sequence[str] | None = None) -> TrainOptions:
    """Reads the command line; a combination that can't work ends the process with a word, as argparse does."""
    parser = build_parser()
    read = parser.parse_args(arguments)
    if read.create_interval is not None:
        parser.error(
            "--create-interval is not a setting of the trainer: how fast sandboxes are created is set with the plan of "
            "the endpoint (hobby: one a second, pro: five)"
        )
    if read.baseline_only and read.skip_eval:
        parser.error("--baseline-only only evaluates, so it can't go with --skip-eval")
    if read.baseline_only and read.resume_from_checkpoint:
        parser.error("--baseline-only trains nothing, so there is nothing to resume; pass the checkpoint as --model")
    if not read.model.strip():
        parser.error("--model is empty: name a model of the hub, or a local directory")
    if read.num_generations < 2:
        parser.error("--num-generations must be at least 2: a completion is compared with others of its prompt")
    values = vars(read) | {"batch_size": read.batch_size or read.num_generations}
    values.pop("create_interval")
    return TrainOptions(**values)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m code_rewards.train",
        description="Trains a model with GRPO on tasks whose programs a code-rewards endpoint runs and judges.",
        epilog="The endpoint's key is read from CODE_REWARDS_API_KEY. Works under accelerate launch and torchrun.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add_job_flags(parser)
    add_endpoint_flags(parser)
    add_training_flags(parser)
    return parser


def add_job_flags(parser: argparse.ArgumentParser) -> None:
    job = parser.add_argument_group("what to do")
    job.add_argument("--model", required=True, help="a model of the Hugging Face hub, or a local directory")
    job.add_argument("--output-dir", default="training_results", help="where the files are written")
    job.add_argument(
        "--tasks", default="code_rewards.tasks", help="a .py file or module with TRAIN_TASKS, HELD_OUT_TASKS"
    )
    job.add_argument("--baseline-only", action="store_true", help="evaluate the model as it is; no weight changes")
    job.add_argument("--skip-eval", action="store_true", help="no evaluation before and after training")
    job.add_argument("--cpu", action="store_true", help="train without a GPU: slow, to check that everything works")
    job.add_argument(
        "--resume-from-checkpoint",
        nargs="?",
        const=LATEST,
        metavar="DIR",
        help="go on from this checkpoint-N directory; without a name, from the latest of --output-dir",
    )
    job.add_argument(
        "--save-steps", type=whole(0), default=0, help="a checkpoint to resume from every N steps; 0: none"
    )
    job.add_argument(
        "--record-samples", action="store_true", help="write every completion and its verdicts to samples.jsonl"
    )
    job.add_argument("--report-to", default="none", help="where else metrics go: wandb, tensorboard, …")


def add_endpoint_flags(parser: argparse.ArgumentParser) -> None:
    endpoint = parser.add_argument_group("the endpoint")
    endpoint.add_argument("--endpoint", metavar="URL", help="its address (default: CODE_REWARDS_URL)")
    endpoint.add_argument(
        "--workers", "--sandbox-workers", type=whole(1), default=DEFAULT_WORKERS, help="sandboxes that the job may hold"
    )
    endpoint.add_argument(
        "--on-fault",
        choices=("abort", "mask"),
        default="abort",
        help="when the platform fails for longer than the fault budget: save a checkpoint and stop, or go on without "
        "the rewards in question",
    )
    endpoint.add_argument(
        "--fault-budget-s",
        type=seconds,
        default=DEFAULT_FAULT_BUDGET_S,
        help="how long one batch of rewards may be tried again after its first fault",
    )
    endpoint.add_argument(
        "--mask-budget-s",
        type=seconds,
        default=DEFAULT_MASK_BUDGET_S,
        help="with --on-fault mask: how long the whole job may wait for rewards that never come before it stops",
    )
    endpoint.add_argument("--create-interval", type=float, help=argparse.SUPPRESS)


def add_training_flags(parser: argparse.ArgumentParser) -> None:
    training = parser.add_argument_group("training")
    training.add_argument("--max-steps", type=whole(1), default=8)
    training.add_argument(
        "--max-completion-length", type=whole(1), default=256, help="tokens of one completion at most"
    )
    training.add_argument("--num-generations", type=whole(1), default=2, help="completions per prompt")
    training.add_argument(
        "--batch-size", type=whole(0), default=0, help="completions per process and batch; 0: one prompt's"
    )
    training.add_argument("--gradient-accumulation-steps", type=whole(1), default=1)
    training.add_argument("--eval-generations", type=whole(1), default=8, help="completions per prompt in evaluations")
    training.add_argument("--learning-rate", type=float, default=5e-6)
    training.add_argument("--lr-scheduler", default="linear", help="linear, constant, cosine, …")
    training.add_argument("--temperature", type=float, default=1.0)
    training.add_argument("--seed", type=int, default=SEED)


def whole(low: int) -> Callable[[str], int]:
    """An argparse type: a whole number that is at least `low`."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, not {value}")
        return value

    return read


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds from 0, not {text}")
    return value
