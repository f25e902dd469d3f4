"""Evaluating a model as it is, and what is refused before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from endpoint import LocalEndpoint
from jobs import QUICKLY, TRAIN, start_job

REFUSED = 2


def test_baseline_only_writes_both_sets_and_changes_nothing(
    endpoint: LocalEndpoint, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    """With the tasks that come with the package."""
    command = [*TRAIN, "--model", tiny_model, "--cpu", "--baseline-only", "--max-completion-length", "1"]
    with start_job(command, tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == 0, job.text
    metrics = job.metrics("baseline.json")
    assert set(metrics["baseline"]) == {"train_tasks", "held_out"}
    assert set(metrics["baseline"]["train_tasks"]["tasks"]) == {"token-totals", "request-counts", "successful-tokens"}
    assert set(metrics["baseline"]["held_out"]["tasks"]) == {"input-token-totals", "error-counts"}
    assert 0 <= metrics["baseline"]["held_out"]["eval_reward"] <= 1
    assert metrics["baseline"]["held_out"]["eval_frac_reward_zero_std"] is not None
    assert metrics["pool"]["usage"]["samples"] == 5 * 8
    assert metrics["advice"]
    assert not (tmp_path / "out" / "checkpoint").exists()
    assert job.says("--- token-totals: ")


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (["--cpu", "--batch-size", "8"], "no step would be done"),
        (["--cpu", "--batch-size", "3"], "can't be cut into groups"),
        (["--create-interval", "1"], "is set with the plan"),
        (["--cpu", "--tasks", "nowhere.py"], "there is no file nowhere.py"),
        (["--cpu", "--resume-from-checkpoint"], "no checkpoint-N directory"),
        (["--cpu", "--baseline-only", "--skip-eval"], "can't go with --skip-eval"),
        (["--cpu", "--num-generations", "1"], "must be at least 2"),
    ],
)
def test_refused_at_once(flags: list[str], word: str, endpoint: LocalEndpoint, tmp_path: Path) -> None:
    command = [*TRAIN, "--model", "no/such-model", *flags]
    with start_job(command, tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == REFUSED, job.text
    assert job.says(word), job.text
    assert not (tmp_path / "out").exists()


def test_a_gpu_is_required_unless_said_otherwise(
    endpoint: LocalEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with start_job([*TRAIN, "--model", "no/such-model"], tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == REFUSED, job.text
    assert job.says("no CUDA GPU here")


def test_a_wrong_key_is_told_before_a_model_is_loaded(endpoint: LocalEndpoint, tmp_path: Path) -> None:
    command = [*TRAIN, "--model", "no/such-model", *QUICKLY]
    with start_job(command, tmp_path / "out", endpoint.url, "another-key") as job:
        assert job.wait() == 1, job.text
    assert job.says("unauthorized"), job.text
    assert not job.says("no/such-model"), job.text
