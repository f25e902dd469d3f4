"""What the numbers of a job say about its settings, and what is refused before it starts."""

from __future__ import annotations

from typing import Any

import pytest

from code_rewards.train.advice import advise
from code_rewards.train.arguments import parse_options
from code_rewards.train.preflight import RefusedError, check_batches, eval_batch_size

GOOD = {"frac_reward_zero_std": 0.2, "reward": 0.5, "completions/clipped_ratio": 0.0, "e2b/verdict/fault": 0.0}


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ({"e2b/no_program/no_fenced_block": 0.5}, "50% of the completions hold no fenced python block"),
        ({"completions/clipped_ratio": 0.4}, "raise --max-completion-length"),
        ({"frac_reward_zero_std": 1.0, "reward": 0.0}, "easier tasks, a more capable model"),
        ({"frac_reward_zero_std": 1.0, "reward": 1.0}, "use harder tasks"),
        ({"frac_reward_zero_std": 1.0, "reward": 0.5}, "higher --temperature"),
        ({"e2b/verdict/fault": 0.01}, "1.0% of the completions have no reward"),
    ],
)
def test_advice(numbers: dict[str, Any], word: str) -> None:
    (from_steps,) = advise([], [GOOD | numbers])
    (from_baseline,) = advise([{f"eval_{name}": value for name, value in (GOOD | numbers).items()}], [])
    assert word in from_steps
    assert from_baseline == from_steps


def test_nothing_is_said_when_all_is_well() -> None:
    assert advise([], [GOOD, {"train_runtime": 3.0}]) == []


def test_what_training_cured_is_no_longer_advised_on() -> None:
    first = GOOD | {"e2b/no_program/no_fenced_block": 1.0}
    assert advise([], [first] * 10 + [GOOD | {"e2b/no_program/no_fenced_block": 0.0}] * 10) == []


@pytest.mark.parametrize(
    ("flags", "tasks", "processes"),
    [("--batch-size 2", 3, 1), ("--batch-size 2", 3, 3), ("--num-generations 4 --batch-size 2", 1, 2)],
)
def test_batches_that_fit(flags: str, tasks: int, processes: int) -> None:
    check_batches(parse_options(["--model", "m", *flags.split()]), tasks, processes)


@pytest.mark.parametrize(
    ("flags", "tasks", "processes", "word"),
    [
        ("--batch-size 2", 3, 4, "takes 4 different prompts, and there are only 3 training tasks"),
        ("--gradient-accumulation-steps 4", 3, 1, "--gradient-accumulation-steps 4"),
        ("--num-generations 4 --batch-size 2", 3, 1, "can't be cut into groups"),
    ],
)
def test_batches_that_do_not_fit(flags: str, tasks: int, processes: int, word: str) -> None:
    with pytest.raises(RefusedError, match=word):
        check_batches(parse_options(["--model", "m", *flags.split()]), tasks, processes)


@pytest.mark.parametrize(("generations", "processes", "size"), [(8, 1, 8), (8, 2, 4), (8, 3, 8), (8, 16, 1), (6, 4, 3)])
def test_processes_fill_whole_groups_in_evaluations(generations: int, processes: int, size: int) -> None:
    assert eval_batch_size(generations, processes) == size
    assert size * processes % generations == 0


def test_the_defaults_are_the_ones_that_are_documented() -> None:
    options = parse_options(["--model", "m"])
    assert (options.num_generations, options.batch_size, options.max_steps) == (2, 2, 8)
    assert (options.max_completion_length, options.learning_rate, options.seed) == (256, 5e-6, 42)
    assert (options.workers, options.on_fault, options.fault_budget_s) == (2, "abort", 900)


def test_the_old_name_of_workers_is_understood() -> None:
    assert parse_options(["--model", "m", "--sandbox-workers", "5"]).workers == 5
