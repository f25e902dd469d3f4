"""What known programs score on tasks, before a GPU is spent on them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from code_rewards.cli import main
from code_rewards.task_files import as_dataset_rows, load_tasks
from code_rewards.tasks import HELD_OUT_TASKS, TRAIN_TASKS, case, task
from endpoint import LocalEndpoint

WEAK = """
from code_rewards.tasks import case, task

TRAIN_TASKS = [
    task("Group them.", case([], {}), case([1], {"a": 1}), task_id="weak", solution="print('{}')"),
    task("Double it.", case("5", "10"), task_id="single"),
    task("Say it again.", case("[1]", "[1]"), case("[2]", "[2]"), task_id="echo", solution="print(input())"),
]
"""


@pytest.fixture(autouse=True)
def at_the_endpoint(endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_REWARDS_URL", endpoint.url)
    monkeypatch.setenv("CODE_REWARDS_API_KEY", endpoint.api_key)


def test_our_own_tasks_are_solvable_and_no_shortcut_earns_anything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(TRAIN_TASKS) + len(HELD_OUT_TASKS) + 1
    assert all(": solution 1, best of " in line for line in lines[:-1])


def test_weak_tasks_are_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "weak.py"
    path.write_text(WEAK, encoding="utf-8")
    assert main(["check-tasks", str(path)]) == 1
    text = capsys.readouterr().out
    assert "the solution should score 1" in text
    assert "a program that prints {} earns 0.5" in text
    assert "no solution is known" in text
    assert "a program that prints the answer of most cases earns 1" in text
    assert "a program that echoes its input earns 1" in text


def test_findings_are_there_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-tasks", "--json"]) == 0
    findings = json.loads(capsys.readouterr().out)
    assert {finding["reward"] for finding in findings if finding["program"] == "solution"} == {1}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("X = 1", "has no TRAIN_TASKS"),
        ("TRAIN_TASKS = [{'test_cases': []}]", "has no prompt"),
        ("TRAIN_TASKS = [{'prompt': 'x', 'test_cases': []}]", "has no test cases"),
        ("TRAIN_TASKS = [{'prompt': 'x', 'test_cases': [{'input': 1, 'output': '2'}]}]", "not made of two texts"),
    ],
)
def test_files_without_usable_tasks(text: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tasks.py"
    path.write_text(text, encoding="utf-8")
    assert main(["check-tasks", str(path)]) == 2
    assert word in capsys.readouterr().err


def test_an_output_that_cannot_be_compared_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tasks.py"
    path.write_text(
        "from code_rewards.tasks import case, task\nTRAIN_TASKS = [task('x', case('1', 'one'))]", encoding="utf-8"
    )
    assert main(["check-tasks", str(path)]) == 2
    assert "/test_cases/0/output" in capsys.readouterr().err


def test_values_become_json_and_texts_stay_as_they_are() -> None:
    assert case([1, "a"], {"b": None}) == {"input": '[1, "a"]', "output": '{"b": null}'}
    assert case("5\n", '"a"') == {"input": "5\n", "output": '"a"'}


def test_a_task_needs_a_case() -> None:
    with pytest.raises(ValueError, match="at least one test case"):
        task("Nothing to judge by.")


def test_the_trainer_is_not_given_solutions() -> None:
    train, held_out = load_tasks("code_rewards.tasks")
    rows = as_dataset_rows([*train, *held_out, task("x", case("1", "1"), limits={"time_ms": 100})])
    assert {tuple(sorted(row)) for row in rows} == {("limits", "prompt", "task_id", "test_cases")}
    assert [row["limits"] for row in rows[-2:]] == [None, {"time_ms": 100}]
