"""However a job ends, its sandboxes go, and its last words say why it ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from answers import hanging_programs
from endpoint import LocalEndpoint
from jobs import QUICKLY, TRAIN, Job, start_job, torchrun
from polling import until

START_LIMIT_S = 90.0
END_LIMIT_S = 60.0


def hanging_job(model: str, *more: str) -> list[str]:
    """Its first batch of programs takes as long as it is let."""
    return ["--model", model, "--tasks", "slow_tasks", "--skip-eval", *QUICKLY, *more]


def wait_for_programs(job: Job) -> None:
    def look() -> bool:
        assert job.process.poll() is None, job.text
        return bool(hanging_programs())

    until(look, limit_s=START_LIMIT_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_batch(
    number: int, endpoint: LocalEndpoint, hanging_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    with start_job([*TRAIN, *hanging_job(hanging_model)], tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        wait_for_programs(job)
        job.signal(number)
        assert job.wait(END_LIMIT_S) == 128 + number, job.text
    assert endpoint.sandboxes() == []
    assert hanging_programs() == []
    assert job.says(f"stopped by {signal.Signals(number).name}")


def test_an_exception_in_the_trainer(
    endpoint: LocalEndpoint, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    command = [*TRAIN, "--model", tiny_model, "--tasks", "raising_tasks", "--skip-eval", *QUICKLY]
    with start_job(command, tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == 1, job.text
    assert endpoint.sandboxes() == []
    assert job.says("a bug in the user's own code")
    assert [entry["step"] for entry in job.metrics()["history"] if "reward" in entry] == [1, 2]


def test_a_job_that_is_killed_leaves_its_sandboxes_until_the_idle_limit(
    endpoint: LocalEndpoint, hanging_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    before = endpoint.run_ids()
    with start_job([*TRAIN, *hanging_job(hanging_model)], tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        wait_for_programs(job)
        job.signal(signal.SIGKILL)
        assert job.wait(END_LIMIT_S) == -signal.SIGKILL
    (run_id,) = endpoint.run_ids() - before
    endpoint.age_run(run_id)

    def look() -> bool:
        endpoint.sweep()
        return not endpoint.sandboxes()

    until(look, limit_s=END_LIMIT_S)


def test_the_first_of_two_processes_is_killed(
    endpoint: LocalEndpoint, hanging_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    """The one that would have finished the run; the other does."""
    command = [*torchrun(2), *hanging_job(hanging_model)]
    with start_job(command, tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        wait_for_programs(job)
        os.kill(find_rank(job.process.pid, 0), signal.SIGKILL)
        began_s = time.monotonic()
        assert job.wait(END_LIMIT_S) != 0
    assert time.monotonic() - began_s < END_LIMIT_S
    assert job.says("rank 1: stopped by SIGTERM; a launcher stops every process"), job.text
    assert endpoint.sandboxes() == []


def find_rank(launcher: int, rank: int) -> int:
    """The launcher's child that is this rank."""
    wanted = f"RANK={rank}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == launcher and wanted in (folder / "environ").read_bytes().split(b"\0"):
                return int(folder.name)
        except OSError:
            continue  # it ended while we looked
    raise AssertionError(f"there is no rank {rank}")
