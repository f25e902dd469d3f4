"""What the numbers of a job say about its settings. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MOSTLY = 0.9
OFTEN = 0.25


def advise(evaluations: Iterable[Mapping[str, Any]], history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences for whoever runs the job, the most important first; none when nothing stands out.

    `evaluations` are what the trainer's `evaluate` returned, `history` is its log.
    """
    steps = [entry for entry in history if "frac_reward_zero_std" in entry]
    # Training itself may have cured what the first steps show.
    numbers = steps or [strip_prefix(entry) for entry in evaluations]
    latest = numbers[-max(1, len(numbers) // 4) :] if steps else numbers
    found = [
        advise_blocks(latest),
        advise_cut(latest),
        advise_equal(numbers),
        advise_masked(numbers),
    ]
    return [sentence for sentence in found if sentence]


def strip_prefix(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("eval_"): value for name, value in entry.items()}


def mean_of(entries: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = [
        entry[name] for entry in entries if isinstance(entry.get(name), int | float) and entry[name] == entry[name]
    ]
    return sum(values) / len(values) if values else None


def advise_blocks(numbers: Sequence[Mapping[str, Any]]) -> str | None:
    share = mean_of(numbers, "e2b/no_program/no_fenced_block")
    if share is None or share < OFTEN:
        return None
    return (
        f"{share:.0%} of the completions hold no fenced python block, so there was nothing to run. Ask for one in the "
        "prompt, and use a model tuned to follow instructions."
    )


def advise_cut(numbers: Sequence[Mapping[str, Any]]) -> str | None:
    share = mean_of(numbers, "completions/clipped_ratio")
    if share is None or share < OFTEN:
        return None
    return f"{share:.0%} of the completions were cut at their longest: raise --max-completion-length."


def advise_equal(numbers: Sequence[Mapping[str, Any]]) -> str | None:
    share = mean_of(numbers, "frac_reward_zero_std")
    if share is None or share < MOSTLY:
        return None
    reward = mean_of(numbers, "reward") or 0.0
    start = f"In {share:.0%} of the groups all completions earned the same, and nothing can be learned from those. "
    if reward > 1 - MOSTLY / 10:
        return start + "Nearly all are right already: use harder tasks."
    if reward < 0.05:
        return start + "Nearly all are wrong: use easier tasks, a more capable model, or more --num-generations."
    return start + "More --num-generations or a higher --temperature makes the completions of a prompt differ."


def advise_masked(numbers: Sequence[Mapping[str, Any]]) -> str | None:
    share = mean_of(numbers, "e2b/verdict/fault")
    if not share:
        return None
    return f"{share:.1%} of the completions have no reward because the platform failed; they moved no weight."
