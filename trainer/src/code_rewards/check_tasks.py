"""`code-rewards check-tasks`: what known programs score on your tasks, before a GPU is spent on them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .client import RewardClient
from .errors import RewardError
from .results import Result
from .runs import RunOptions
from .task_files import Task, TaskFileError, load_tasks
from .task_probes import Probe, list_probes
from .trl_columns import build_task
from .trl_metrics import describe_result

FINE = 0
WARNED = 1
FAILED = 2


@dataclass(frozen=True)
class Finding:
    """What one program scored on one task. `warning` says what is wrong with that, None when nothing is."""

    task: str
    program: str
    reward: float | None
    outcome: str
    warning: str | None


def main(arguments: Sequence[str]) -> int:
    """0 when every solution scores 1 and no shortcut scores anything, 1 when that isn't so, 2 when nobody knows."""
    options = read_arguments(arguments)
    try:
        train, held_out = load_tasks(options.tasks)
        findings = check_tasks(train + held_out, options.endpoint)
    except (TaskFileError, RewardError) as error:
        print(error, file=sys.stderr)
        return FAILED
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print("\n".join(describe_findings(findings)))
    if any(finding.reward is None for finding in findings):
        return FAILED
    return WARNED if any(finding.warning for finding in findings) else FINE


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="code-rewards check-tasks",
        description="Runs each task's solution and the usual shortcuts through the endpoint: the solution should score "
        "1, and a shortcut nothing.",
    )
    parser.add_argument("tasks", nargs="?", default="code_rewards.tasks", help="a .py file or module; default: ours")
    parser.add_argument("--endpoint", metavar="URL", help="default: CODE_REWARDS_URL; the key is CODE_REWARDS_API_KEY")
    parser.add_argument("--json", action="store_true", help="every finding as JSON")
    return parser.parse_args(arguments)


def check_tasks(tasks: Sequence[Task], endpoint: str | None = None) -> list[Finding]:
    """Scores every probe of every task in one batch. Raises RewardError."""
    probes = [(task, probe) for task in tasks for probe in list_probes(task)]
    completions = [probe.completion for _, probe in probes]
    built = [build_task(task) for task, _ in probes]
    with RewardClient(endpoint, run=RunOptions(name="check-tasks")) as client:
        results = client.score(completions, built).results
    findings = [judge(task, probe, result) for (task, probe), result in zip(probes, results, strict=True)]
    return findings + [missing_solution(task) for task in tasks if "solution" not in task]


def judge(task: Task, probe: Probe, result: Result) -> Finding:
    name, reward = str(task.get("task_id", "a task")), result.reward
    warning = None
    if reward is None:
        warning = "the platform failed, so nothing is known of it: run the check again"
    elif probe.is_solution and reward < 1:
        warning = "the solution should score 1: correct it, the test cases or the limits"
    elif not probe.is_solution and is_too_much(reward, probe, len(task["test_cases"])):
        warning = f"a program that {probe.name} earns {reward:.3g}: change the test cases in which that is right"
    return Finding(name, probe.name, reward, describe_result(result), warning)


def is_too_much(reward: float, probe: Probe, cases: int) -> bool:
    """Whoever knows one case's answer passes that case, which is fair as long as there are others."""
    return reward > 0 and (cases == 1 or reward * cases > probe.due_cases + 0.5)


def missing_solution(task: Task) -> Finding:
    warning = "no solution is known: add solution=… to be sure that the task can be solved"
    return Finding(str(task.get("task_id", "a task")), "solution", 0.0, "not there", warning)


def describe_findings(findings: Sequence[Finding]) -> list[str]:
    """A line per task, and one per warning under it."""
    lines = []
    for task in dict.fromkeys(finding.task for finding in findings):
        own = [finding for finding in findings if finding.task == task]
        shortcuts = [finding for finding in own if finding.program != "solution"]
        best = max((finding.reward or 0.0 for finding in shortcuts), default=0.0)
        solution = next(finding for finding in own if finding.program == "solution")
        scored = "unknown" if solution.outcome == "not there" else as_text(solution.reward)
        lines.append(f"{task}: solution {scored}, best of {len(shortcuts)} shortcuts {best:.3g}")
        lines += [
            f"  warning: {finding.warning} ({finding.program}: {finding.outcome})" for finding in own if finding.warning
        ]
    warnings = sum(finding.warning is not None for finding in findings)
    return [*lines, "All is as it should be." if warnings == 0 else f"{warnings} warnings."]


def as_text(value: Any) -> str:
    return "unknown" if value is None else f"{value:.3g}"
