"""The report of one job: a single HTML page that needs nothing but itself. Pure: a metrics file in, markup out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from ..intervals import Interval, difference_of
from .series import Series, read_series, thin_out, training_steps, verdict_mix
from .svg import draw_intervals, draw_lines, draw_stack, number_text

Metrics = Mapping[str, Any]
Steps = Sequence[Metrics]
Rows = Sequence[tuple[str, str | None]]
Lines = Sequence[tuple[Series, str]]

MOST_POINTS = 400
MOST_BARS = 80
VERDICT_COLOURS = {
    "passed": "green",
    "wrong_output": "orange",
    "runtime_error": "red",
    "signaled": "brown",
    "time_limit": "violet",
    "memory_limit": "pink",
    "output_limit": "teal",
    "not_run": "line-grey",
    "no_program": "grey",
    "syntax_error": "amber",
    "fault": "blue",
}


def render_page(metrics: Metrics) -> str:
    """One self-contained page for the content of a metrics.json or baseline.json."""
    steps = training_steps(metrics)
    cards = [
        before_after_card(metrics),
        baseline_card(metrics),
        *([reward_card(steps), verdict_card(steps), variance_card(steps), seconds_card(steps)] if steps else []),
        cost_card(metrics),
        setting_card(metrics),
    ]
    style = files("code_rewards.report").joinpath("style.css").read_text(encoding="utf-8")
    title = f"Training report: {metrics.get('model', 'unknown model')}"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main>"
        f"<header><h1>{escape(title)}</h1>{about(metrics)}</header>"
        f"{notes(metrics)}{tiles(metrics, steps)}"
        f'<div class="grid-2">{"".join(card for card in cards if card)}</div></main></body></html>\n'
    )


def about(metrics: Metrics) -> str:
    run_id = metrics.get("pool", {}).get("run_id")
    parts = [f"started {metrics['started_at']}" if "started_at" in metrics else "", f"run {run_id}" if run_id else ""]
    return f'<p class="about">{escape(" · ".join(part for part in parts if part))}</p>'


def notes(metrics: Metrics) -> str:
    stopped = metrics.get("stopped")
    texts = ([f"This job stopped before its end. {stopped['cause']}"] if stopped else []) + metrics.get("advice", [])
    return "".join(f'<p class="note">{escape(text)}</p>' for text in texts)


def tiles(metrics: Metrics, steps: Steps) -> str:
    pool = metrics.get("pool", {})
    usage = pool.get("usage", {})
    cells = [
        ("held-out reward", before_after_text(metrics)),
        ("training steps", str(steps[-1]["step"]) if steps else None),
        ("completions scored", maybe(usage.get("samples"), number_text)),
        ("masked by faults", maybe(usage.get("masked"), number_text)),
        ("sandbox seconds", maybe(pool.get("worker_seconds_estimate"), number_text)),
        ("sandbox cost", maybe(pool.get("cost_usd"), money)),
    ]
    shown = [f'<div class="tile"><b>{text}</b><span>{name}</span></div>' for name, text in cells if text]
    return f'<div class="tiles">{"".join(shown)}</div>' if shown else ""


def before_after_text(metrics: Metrics) -> str | None:
    means = [metrics[phase]["interval"]["mean"] for phase in ("before", "after") if interval_in(metrics, phase)]
    return " → ".join(f"{mean:.2f}" for mean in means) or None


def interval_in(metrics: Metrics, phase: str) -> Interval | None:
    found = (metrics.get(phase) or {}).get("interval")
    return Interval(**found) if found else None


def before_after_card(metrics: Metrics) -> str:
    rows = [
        *phase_rows(metrics.get("before"), "before", "grey"),
        *phase_rows(metrics.get("after"), "after", "green"),
    ]
    if not rows:
        return ""
    before, after = interval_in(metrics, "before"), interval_in(metrics, "after")
    hint = "Mean reward on the held-out tasks, with 95 % confidence intervals over the samples of these tasks."
    if before and after:
        change = difference_of(before, after)
        doubt = "" if change.low > 0 or change.high < 0 else " That may be chance: the interval holds 0."
        hint += f" Change: {change.mean:+.2f} ({change.low:+.2f} to {change.high:+.2f}).{doubt}"
    ordered = sorted(rows, key=lambda row: (row[0].rsplit(", ", 1)[0] != "all", row[0].rsplit(", ", 1)[0]))
    return card(
        "Before and after training", hint, draw_intervals("Held-out reward before and after", ordered), wide=True
    )


def phase_rows(phase: Metrics | None, name: str, colour: str) -> list[tuple[str, Interval, str]]:
    if not phase or not phase.get("interval"):
        return []
    tasks = phase.get("tasks", {})
    named = [("all", phase["interval"])] + ([(task_id, found) for task_id, found in tasks.items()] if tasks else [])
    return [(f"{shorten(label)}, {name}", Interval(**found), colour) for label, found in named if found]


def baseline_card(metrics: Metrics) -> str:
    baseline = metrics.get("baseline", {})
    rows = [
        *phase_rows(baseline.get("train_tasks"), "training", "blue"),
        *phase_rows(baseline.get("held_out"), "held out", "orange"),
    ]
    hint = "Mean reward of the untrained model, with 95 % confidence intervals over the samples of these tasks."
    return card("Baseline", hint, draw_intervals("Baseline reward", rows), wide=True) if rows else ""


def reward_card(steps: Steps) -> str:
    lines = [(read_series(steps, "reward", "mean reward"), "blue")]
    hint = "Mean reward of the completions of each step."
    return line_card("Reward per step", hint, lines, high_y=1.0)


def variance_card(steps: Steps) -> str:
    lines = [(read_series(steps, "frac_reward_zero_std", "groups without variance"), "violet")]
    hint = "Share of groups whose completions all earned the same: nothing can be learned from those."
    return line_card("Groups without variance", hint, lines, high_y=1.0)


def seconds_card(steps: Steps) -> str:
    lines = [
        (read_series(steps, "step_time", "whole step"), "grey"),
        (read_series(steps, "e2b/reward_seconds", "waiting for rewards"), "blue"),
        (read_series(steps, "e2b/worker_seconds_since_previous_reward", "sandboxes busy"), "orange"),
    ]
    hint = (
        "Seconds per step: the whole step, the part that waited for rewards, and sandbox seconds spent (all workers)."
    )
    return line_card("Seconds", hint, lines)


def line_card(title: str, hint: str, lines: Lines, high_y: float | None = None) -> str:
    shown = [(thin_out(series, MOST_POINTS), colour) for series, colour in lines if series.known]
    if not shown:
        return ""
    return card(title, hint, (legend(shown) if len(lines) > 1 else "") + draw_lines(title, shown, high_y))


def verdict_card(steps: Steps) -> str:
    layers = [(thin_out(series, MOST_BARS), VERDICT_COLOURS[series.name]) for series in verdict_mix(steps)]
    if not layers:
        return ""
    hint = "What became of the completions of each step; every completion counts once, split over its test cases."
    return card("Verdicts", hint, legend(layers) + draw_stack("Verdicts by step", layers))


def legend(shown: Lines) -> str:
    items = [
        f'<li class="{colour}"><i></i><span>{escape(series.name.replace("_", " "))}</span></li>'
        for series, colour in shown
    ]
    return f'<ul class="legend">{"".join(items)}</ul>'


def cost_card(metrics: Metrics) -> str:
    pool = metrics.get("pool")
    if not pool:
        return ""
    usage = pool.get("usage", {})
    timings = pool.get("timings", {}).get("reward_batch", {})
    rows = [
        ("sandboxes created", maybe(pool.get("workers_created"), number_text)),
        ("sandbox seconds, idle ones included", maybe(pool.get("worker_seconds_estimate"), number_text)),
        ("estimated cost", maybe(pool.get("cost_usd"), money)),
        ("cost per 1,000 completions", maybe(per_thousand(pool.get("cost_usd"), usage.get("samples")), money)),
        ("reward calls", maybe(timings.get("count"), number_text)),
        ("seconds per reward call, mean", maybe(timings.get("mean_seconds"), number_text)),
        ("seconds per reward call, longest", maybe(timings.get("max_seconds"), number_text)),
        ("duplicates that weren't run again", maybe(usage.get("duplicates"), number_text)),
        ("retried after a fault", maybe(pool.get("infrastructure_retries"), number_text)),
        ("sandboxes left at the end", str(len(pool["remaining_sandboxes"])) if "remaining_sandboxes" in pool else None),
    ]
    return card("Sandboxes and cost", "As the endpoint counted them for this run.", table(rows))


def setting_card(metrics: Metrics) -> str:
    config = metrics.get("config", {})
    names = (
        "num_generations",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
        "max_completion_length",
        "max_steps",
        "learning_rate",
        "temperature",
        "seed",
        "bf16",
    )
    rows = [(name.replace("_", " "), escape(str(config[name]))) for name in names if name in config]
    rows += [(name, escape(str(version))) for name, version in metrics.get("versions", {}).items()]
    return card("Settings", "What this job ran with.", table(rows)) if rows else ""


def table(rows: Rows) -> str:
    return "<table>" + "".join(f"<tr><th>{name}</th><td>{text}</td></tr>" for name, text in rows if text) + "</table>"


def card(title: str, hint: str, body: str, wide: bool = False) -> str:
    classes = "card wide" if wide else "card"
    return f'<section class="{classes}"><h2>{escape(title)}</h2><p class="hint">{escape(hint)}</p>{body}</section>'


def maybe(value: float | None, text: Callable[[float], str]) -> str | None:
    return None if value is None else text(value)


def per_thousand(cost: float | None, samples: float | None) -> float | None:
    return cost / samples * 1000 if cost is not None and samples else None


def money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.4f}"


def shorten(text: str, most: int = 24) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
