"""A job on a machine that is about to be taken away saves what it has learnt, and goes on elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from endpoint import LocalEndpoint
from jobs import QUICKLY, TRAIN, start_job, torchrun

STEPS = 12


def job_of(model: str) -> list[str]:
    return ["--model", model, "--tasks", "token_tasks", "--skip-eval", "--max-steps", str(STEPS), *QUICKLY]


@pytest.mark.parametrize("launcher", [TRAIN, torchrun(2)], ids=["alone", "two processes"])
def test_it_stops_after_the_step_and_goes_on_from_there(
    launcher: list[str],
    endpoint: LocalEndpoint,
    tiny_model: str,
    tmp_path: Path,
    no_sandboxes: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop_file = tmp_path / "stop"
    monkeypatch.setenv("CODE_REWARDS_STOP_FILE", str(stop_file))
    output = tmp_path / "out"

    def ask_at_the_third_step(line: str) -> None:
        if line.startswith("step 3/"):
            stop_file.touch()

    with start_job(
        [*launcher, *job_of(tiny_model)], output, endpoint.url, endpoint.api_key, ask_at_the_third_step
    ) as job:
        code = job.wait()
    # A launcher has its own word for a process that ended with anything but 0.
    assert code == (5 if launcher == TRAIN else 1), job.text
    assert job.says("stopped, as asked. Saved")
    stopped = job.metrics()["stopped"]
    step = int(stopped["checkpoint"].rsplit("-", 1)[1])
    assert 3 <= step < STEPS
    assert (output / f"checkpoint-{step}" / "trainer_state.json").is_file()

    stop_file.unlink()
    resumed = [*launcher, *job_of(tiny_model), "--resume-from-checkpoint"]
    with start_job(resumed, output, endpoint.url, endpoint.api_key) as job:
        assert job.wait() == 0, job.text
    steps = [entry["step"] for entry in job.metrics()["history"] if "reward" in entry]
    assert steps == list(range(1, STEPS + 1))


def test_it_ends_well_when_it_is_asked_in_its_last_step(
    endpoint: LocalEndpoint, tiny_model: str, tmp_path: Path, no_sandboxes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_file = tmp_path / "stop"
    stop_file.touch()
    monkeypatch.setenv("CODE_REWARDS_STOP_FILE", str(stop_file))
    command = [*TRAIN, "--model", tiny_model, "--tasks", "token_tasks", "--skip-eval", "--max-steps", "1", *QUICKLY]
    with start_job(command, tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == 0, job.text
    assert (tmp_path / "out" / "checkpoint").is_dir()
