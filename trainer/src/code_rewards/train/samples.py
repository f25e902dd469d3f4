"""What became of single completions: collected for an evaluation, shown, and written to a file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..intervals import interval_of
from ..trl import ScoredCall
from ..trl_metrics import describe_result

SHOWN_CHARACTERS = 1_500
SHOWN_SAMPLES = 2


class EvaluationSamples:
    """The rewards of one evaluation on this process, and its first completions."""

    def __init__(self) -> None:
        self.rewards: list[tuple[str, float | None]] = []
        self.shown: list[str] = []

    def __call__(self, call: ScoredCall) -> None:
        for task_id, completion, result in zip(call.task_ids, call.completions, call.result.results, strict=True):
            self.rewards.append((str(task_id), result.reward))
            if len(self.shown) < SHOWN_SAMPLES:
                text = read_text(completion)[:SHOWN_CHARACTERS]
                self.shown.append(f"--- {task_id}: {describe_result(result)}\n{text}")


def summarize_rewards(samples: Sequence[tuple[str, float | None]]) -> dict[str, Any]:
    """The mean of all samples and of each task's, with 95 % confidence intervals."""
    by_task: dict[str, list[float | None]] = defaultdict(list)
    for task_id, reward in samples:
        by_task[task_id].append(reward)
    tasks = {task_id: interval_of(rewards) for task_id, rewards in sorted(by_task.items())}
    whole = interval_of([reward for _, reward in samples])
    return {
        "interval": asdict(whole) if whole else None,
        "tasks": {task_id: asdict(found) for task_id, found in tasks.items() if found},
        "masked": sum(reward is None for _, reward in samples),
    }


class SampleFile:
    """Appends one JSON line per completion; a file per process. `phase` says what the job is doing."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self.phase = "train"

    def __call__(self, call: ScoredCall) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in describe_samples(call, self.phase))


def describe_samples(call: ScoredCall, phase: str) -> Iterator[dict[str, Any]]:
    for task_id, completion, result in zip(call.task_ids, call.completions, call.result.results, strict=True):
        yield {
            "phase": phase,
            "step": call.step,
            "task_id": task_id,
            "reward": result.reward,
            "status": result.status,
            "reason": result.reason,
            "fault": asdict(result.fault) if result.fault else None,
            "verdicts": [verdict.verdict for verdict in result.verdicts],
            "completion": read_text(completion),
        }


def read_text(completion: Any) -> str:
    """The text of a completion, for people; lone surrogates and the like are kept by JSON's escapes."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")
