"""The endpoint is down for good: nothing is scored 0 for it, and no training is lost."""

from __future__ import annotations

from pathlib import Path

from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy
from jobs import QUICKLY, TRAIN, accelerate_launch, start_job

NOWHERE = "http://127.0.0.1:9"
FAULT_BUDGET_SPENT = 3


def go_down_after(step: int, proxy: FaultyProxy):
    def on_line(line: str) -> None:
        if line.startswith(f"step {step}/"):
            proxy.target = NOWHERE

    return on_line


def test_abort_saves_a_checkpoint_that_training_goes_on_from(
    endpoint: LocalEndpoint, proxy: FaultyProxy, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    """Two processes of one run stop at one point, and one process goes on."""
    flags = ["--model", tiny_model, "--tasks", "token_tasks", "--max-steps", "6", *QUICKLY]
    with start_job(
        [*accelerate_launch(2), *flags, "--batch-size", "4", "--fault-budget-s", "1"],
        tmp_path / "out",
        proxy.url,
        endpoint.api_key,
        go_down_after(3, proxy),
    ) as job:
        assert job.wait() != 0, job.text
    checkpoint = tmp_path / "out" / "checkpoint-3"
    assert (checkpoint / "optimizer.pt").is_file()
    for rank in (0, 1):
        assert job.says(f"rank {rank}: (rank "), job.text
    assert job.says("The platform failed for longer than the budget of one call, 1 s")
    assert job.says(f"rank 0: Saved {checkpoint}")
    assert job.metrics()["stopped"]["checkpoint"] == str(checkpoint)
    assert [line["reward"] for line in job.samples() if line["step"] == 3] == [None] * 8
    assert job.metrics()["processes"] == 2
    assert len({seen.json["run_id"] for seen in proxy.requests("POST", "/v1/rewards")}) == 1
    before = job.metrics()["before"]

    proxy.target = endpoint.url
    with start_job(
        [*TRAIN, *flags, "--resume-from-checkpoint"], tmp_path / "out", proxy.url, endpoint.api_key
    ) as resumed:
        assert resumed.wait() == 0, resumed.text
    metrics = resumed.metrics()
    assert [entry["step"] for entry in metrics["history"] if "reward" in entry] == [1, 2, 3, 4, 5, 6]
    assert metrics["before"] == before
    assert metrics["resumed_from"] == str(checkpoint)
    # What the aborted job could not finish was finished by nobody: its run expires.
    for run_id in endpoint.run_ids():
        endpoint.age_run(run_id)
    endpoint.sweep()


def test_mask_goes_on_without_rewards_until_the_budget_of_the_job(
    endpoint: LocalEndpoint, proxy: FaultyProxy, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    command = [*TRAIN, "--model", tiny_model, "--tasks", "token_tasks", "--max-steps", "50", "--skip-eval", *QUICKLY]
    budgets = ["--on-fault", "mask", "--fault-budget-s", "0.5", "--mask-budget-s", "2"]
    with start_job([*command, *budgets], tmp_path / "out", proxy.url, endpoint.api_key, go_down_after(2, proxy)) as job:
        assert job.wait() == FAULT_BUDGET_SPENT, job.text
    steps = [entry for entry in job.metrics()["history"] if "reward" in entry]
    masked = [entry for entry in steps if entry["reward"] is None]
    assert len(masked) >= 2
    assert steps[2:] == masked
    assert {entry["grad_norm"] for entry in masked} == {0}
    late = [line for line in job.samples() if line["step"] >= 2]
    assert {line["reward"] for line in late} == {None}
    assert {line["fault"]["code"] for line in late} == {"unavailable"}
    assert job.says("The platform failed for longer than the budget of the job, 2 s")
    assert (tmp_path / "out" / f"checkpoint-{len(steps)}" / "model.safetensors").is_file()
    assert [line for line in job.lines if "nova" in line] == [], "expected outputs were printed"
    for run_id in endpoint.run_ids():
        endpoint.age_run(run_id)
    endpoint.sweep()
