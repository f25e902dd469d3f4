"""What one reward call tells the trainer's log. Pure.

The same names on every process and at every call, whatever happened: a trainer that gathers a metric which one process
lacks divides by the wrong number.
"""

from __future__ import annotations

from collections.abc import Sequence

from .results import BatchResult, Result

VERDICTS = (
    "passed",
    "wrong_output",
    "runtime_error",
    "signaled",
    "time_limit",
    "memory_limit",
    "output_limit",
    "not_run",
    "no_program",
    "syntax_error",
    "fault",
)
NO_PROGRAM_REASONS = (
    "no_fenced_block",
    "unclosed_block",
    "unclosed_reasoning",
    "empty_block",
    "too_large",
    "not_text",
)


def measure_call(result: BatchResult) -> dict[str, float]:
    """The metrics of one call, by name."""
    usage = result.usage
    return {
        "e2b/reward_seconds": result.wall_s,
        "e2b/queue_seconds": usage.queue_ms / 1000,
        "e2b/worker_seconds": usage.worker_seconds,
        "e2b/worker_seconds_since_previous_reward": usage.worker_seconds_since_previous_batch,
        "e2b/workers_created": usage.workers_created,
        "e2b/cost_usd": usage.cost_usd,
        "e2b/programs_run": usage.programs_run,
        "e2b/duplicates": usage.duplicates,
        "e2b/retries": usage.retries + result.retries,
        "e2b/resubmitted": result.resubmitted,
        "e2b/faults": len(result.faults),
        **{f"e2b/verdict/{name}": share for name, share in share_verdicts(result.results).items()},
        **{f"e2b/no_program/{name}": share for name, share in share_reasons(result.results).items()},
    }


def share_verdicts(results: Sequence[Result]) -> dict[str, float]:
    """What became of the samples, as shares that add up to 1: each counts once, split over its test cases.

    `not_run` is what a task with `fail_fast` didn't need. Where every test case counts the same, `passed` is the mean
    reward, had the samples without a reward earned nothing.
    """
    shares = dict.fromkeys(VERDICTS, 0.0)
    for result in results:
        if result.status == "graded" and result.verdicts:
            for verdict in result.verdicts:
                shares[verdict.verdict] = shares.get(verdict.verdict, 0.0) + 1 / len(result.verdicts)
        elif result.status in shares:
            shares[result.status] += 1.0
    return {name: shares[name] / max(1, len(results)) for name in VERDICTS}


def share_reasons(results: Sequence[Result]) -> dict[str, float]:
    """Why samples held no program, as shares of all samples."""
    reasons = [result.reason for result in results if result.status == "no_program"]
    return {name: reasons.count(name) / max(1, len(results)) for name in NO_PROGRAM_REASONS}


def describe_result(result: Result) -> str:
    """One sample's outcome in a few words, for a table of completions. Says nothing of expected outputs."""
    if result.fault is not None:
        return f"fault: {result.fault.code}"
    if result.status != "graded":
        return f"{result.status}: {result.reason}" if result.reason else str(result.status)
    others = [verdict.verdict for verdict in result.verdicts if verdict.verdict != "passed"]
    counted = [f"{others.count(name)} {name}" for name in dict.fromkeys(others)]
    return ", ".join([f"{result.passed}/{result.total} passed", *counted])
