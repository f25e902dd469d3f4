"""The report of a job: one page that needs nothing but itself, whatever the job wrote."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from code_rewards.cli import main
from code_rewards.intervals import interval_of
from code_rewards.report.page import render_page
from code_rewards.trl_metrics import VERDICTS

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in BROWSERS if (path := shutil.which(name))), None)
VOID = {"meta", "br", "img", "hr", "link", "input"}


def phase(passed: int, of: int = 8) -> dict[str, Any]:
    rewards = [1.0] * passed + [0.0] * (of - passed)
    interval = interval_of(rewards * 2)
    task = interval_of(rewards)
    assert interval and task
    tasks = {"input-token-totals": asdict(task), "a task whose name is longer than the space there is": asdict(task)}
    return {"eval_reward": passed / of, "interval": asdict(interval), "tasks": tasks}


def step(number: int, of: int) -> dict[str, Any]:
    reward = number / of
    shares = dict.fromkeys(VERDICTS, 0.0) | {"passed": reward, "no_program": (1 - reward) / 2}
    shares["wrong_output"] = 1 - reward - shares["no_program"]
    return {
        "step": number,
        "reward": None if number == 3 else reward,
        "frac_reward_zero_std": (number % 4) / 4,
        "step_time": 2.0 + number % 3,
        "e2b/reward_seconds": 0.3 + (number % 5) / 10,
        "e2b/worker_seconds_since_previous_reward": 0.9,
        **{f"e2b/verdict/{name}": share for name, share in shares.items()},
    }


def a_job(steps: int = 12) -> dict[str, Any]:
    return {
        "model": "an/instruct-model",
        "started_at": "2027-01-15T08:00:00+00:00",
        "config": {"num_generations": 8, "learning_rate": 5e-6},
        "versions": {"trl": "1.14.2"},
        "before": phase(1),
        "after": phase(7),
        "history": [{"step": 0, "eval_reward": 0.1}, *(step(number, steps) for number in range(1, steps + 1))],
        "advice": ["Half of the completions were cut at their longest: raise --max-completion-length."],
        "pool": {
            "run_id": "train-1",
            "workers_created": 2,
            "infrastructure_retries": 1,
            "worker_seconds_estimate": 61.5,
            "cost_usd": 0.0021,
            "remaining_sandboxes": [],
            "timings": {"reward_batch": {"count": steps, "mean_seconds": 0.5, "max_seconds": 1.5}},
            "usage": {"samples": 16 * steps, "masked": 1, "duplicates": 30},
        },
    }


def a_baseline() -> dict[str, Any]:
    return {"model": "m", "baseline": {"train_tasks": phase(2), "held_out": phase(0)}, "history": [], "pool": {}}


JOBS = {
    "a whole job": a_job(),
    "a baseline": a_baseline(),
    "one step": a_job(1),
    "many steps": a_job(5_000),
    "nothing at all": {"model": "m"},
    "nothing but faults": a_job(3) | {"history": [step(3, 3) | {"reward": None}], "before": {"interval": None}},
    "no numbers": {"model": "m", "history": [{"step": 1, "reward": math.nan, "step_time": None}]},
    "no seconds": {"model": "m", "history": [{"step": 1, "reward": 0.0, "e2b/reward_seconds": 0.0}]},
    "an aborted job": {"model": "m", "stopped": {"cause": "The platform failed.", "checkpoint": None}, "history": []},
    "names with markup": a_job() | {"model": "<script>alert(1)</script>", "advice": ['"<b>&']},
}


class Balance(HTMLParser):
    """Fails on a tag that is not closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", JOBS)
def test_every_job_makes_a_page_of_its_own(name: str) -> None:
    page = render_page(JOBS[name])
    balance = Balance()
    balance.feed(page)
    balance.close()
    assert balance.open == []
    assert balance.addresses == [] and "script" not in balance.tags and "url(" not in page and "@import" not in page
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        check_drawing(drawing)
    assert len(page) < 1_500_000


def check_drawing(drawing: str) -> None:
    """All that is drawn lies in the picture."""
    root = ElementTree.fromstring(drawing)
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    assert root.findtext("title")
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(element.attrib.get(name, 0)) <= width + 1, ElementTree.tostring(element)
        for name in ("y", "y1", "y2", "cy"):
            assert -1 <= float(element.attrib.get(name, 0)) <= height + 1, ElementTree.tostring(element)
        for point in element.attrib.get("points", "").split():
            x, y = (float(number) for number in point.split(","))
            assert 0 <= x <= width and 0 <= y <= height


def test_the_page_of_a_whole_job_says_what_it_should() -> None:
    page = render_page(a_job())
    for title in (
        "Before and after",
        "Reward per step",
        "Groups without variance",
        "Verdicts",
        "Seconds",
        "Sandboxes and",
    ):
        assert f"<h2>{title}" in page
    assert "0.12 → 0.88" in page
    assert "Change: +0.75 (+0." in page
    assert "$0.0021" in page
    assert "raise --max-completion-length" in page
    assert page.count('class="bar ') >= 12 * 2


def test_a_change_that_may_be_chance_is_called_so() -> None:
    assert "That may be chance" in render_page(a_job() | {"before": phase(3), "after": phase(4)})


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = tmp_path / "metrics.json"
    metrics.write_text(json.dumps(a_job()), encoding="utf-8")
    assert main(["report", str(metrics), "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == render_page(a_job())
    assert main(["report", str(tmp_path / "none.json")]) == 1
    metrics.write_text("[]", encoding="utf-8")
    assert main(["report", str(metrics)]) == 1
    assert "can't be read" in capsys.readouterr().err


def browse(*arguments: str) -> str:
    assert BROWSER is not None
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.skipif(BROWSER is None, reason="there is no browser on this machine")
@pytest.mark.parametrize("width", [500, 1180])
def test_a_browser_shows_the_page_without_scrolling_sideways(width: int, tmp_path: Path) -> None:
    """Set CODE_REWARDS_SCREENSHOTS to a folder to look at the pictures."""
    page = tmp_path / "page.html"
    ask = "<script>document.body.dataset.fits = document.documentElement.scrollWidth <= innerWidth</script>"
    page.write_text(render_page(a_job(40)) + ask, encoding="utf-8")
    picture = Path(os.environ.get("CODE_REWARDS_SCREENSHOTS", tmp_path)) / f"report-{width}.png"
    size = f"--window-size={width},2000"
    assert 'data-fits="true"' in browse(size, "--dump-dom", page.as_uri())
    browse(size, f"--screenshot={picture}", page.as_uri())
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, 2000)
    assert len(data) > 40_000
