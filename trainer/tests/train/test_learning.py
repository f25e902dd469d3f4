"""Jobs that learn: rewards come through the real endpoint, and the model ends up right nearly always."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from code_rewards import RewardClient, RunOptions
from code_rewards.trl_columns import build_task
from endpoint import LocalEndpoint, start_endpoint
from faulty_proxy import FaultyProxy, go_through, lose_answer
from jobs import JOB_LIMIT_S, QUICKLY, TRAIN, Job, start_job, torchrun
from polling import until
from token_tasks import HELD_OUT_TASKS, TRAIN_TASKS

LEARNED = 0.9
STEPS = "24"


def last_rewards(job: Job, count: int = 3) -> float:
    rewards = [entry["reward"] for entry in job.metrics()["history"] if "reward" in entry]
    return sum(rewards[-count:]) / count


def check_recorded_rewards(job: Job, endpoint: LocalEndpoint) -> None:
    """Every reward that the trainer was given is the one that the same completion earns when nothing fails."""
    tasks = {task["task_id"]: build_task(task) for task in TRAIN_TASKS + HELD_OUT_TASKS}
    recorded = {(line["task_id"], line["completion"], line["reward"]) for line in job.samples()}
    with RewardClient(endpoint.url, endpoint.api_key, run=RunOptions(name="again")) as client:
        again = client.score([text for _, text, _ in recorded], [tasks[task_id] for task_id, _, _ in recorded])
    assert again.rewards == [reward for _, _, reward in recorded]


def kill_worker_every(steps: int, endpoint: LocalEndpoint, killed: list[str]) -> Callable[[str], None]:
    """Kills one of the job's sandboxes after each so many steps, behind everybody's back."""

    def on_line(line: str) -> None:
        step = line.removeprefix("step ").split("/")[0]
        if line.startswith("step ") and int(step) % steps == 0:
            for sandbox in endpoint.sandboxes()[:1]:
                httpx.delete(f"{endpoint.e2b_api_url}/sandboxes/{sandbox}", headers={"x-api-key": "e2b_local"})
                killed.append(sandbox)

    return on_line


def test_one_process_learns_and_writes_what_it_found(
    endpoint: LocalEndpoint, degenerate_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    """Some of the model's answers are of the kind that ends other graders; the run goes on, and they score 0."""
    command = [*TRAIN, "--model", degenerate_model, "--tasks", "token_tasks", "--max-steps", "30", "--batch-size", "16"]
    with start_job([*command, *QUICKLY], tmp_path / "out", endpoint.url, endpoint.api_key) as job:
        assert job.wait() == 0, job.text
    metrics = job.metrics()
    assert last_rewards(job) >= LEARNED
    assert metrics["after"]["eval_reward"] >= LEARNED > metrics["before"]["eval_reward"]
    assert metrics["after"]["interval"]["samples"] == 16
    assert set(metrics["after"]["tasks"]) == {"sum-101", "sum-102"}
    assert metrics["train"]["train_loss"] is not None
    assert metrics["pool"]["remaining_sandboxes"] == []
    assert metrics["pool"]["usage"]["samples"] == 30 * 16 + 2 * 16
    assert metrics["pool"]["worker_seconds_estimate"] > 0
    assert set(metrics["pool"]["timings"]) == {"reward_batch", "queue"}
    assert (tmp_path / "out" / "checkpoint" / "model.safetensors").is_file()
    assert (tmp_path / "out" / "checkpoint" / "tokenizer.json").is_file()
    degenerate = {line["completion"][:20]: line for line in job.samples() if len(line["completion"]) > 50_000}
    assert degenerate and {line["reward"] for line in degenerate.values()} == {0}
    assert all(line["status"] != "fault" for line in degenerate.values())
    check_recorded_rewards(job, endpoint)


def test_two_processes_learn_while_workers_die_and_answers_are_lost(
    endpoint: LocalEndpoint, proxy: FaultyProxy, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    proxy.plan("POST", "/v1/rewards", *[go_through, go_through, lose_answer, go_through, go_through] * 100)
    killed: list[str] = []
    command = [*torchrun(2), "--model", tiny_model, "--tasks", "token_tasks", "--max-steps", STEPS, *QUICKLY]
    command.append("--skip-eval")
    on_line = kill_worker_every(5, endpoint, killed)
    with start_job(command, tmp_path / "out", proxy.url, endpoint.api_key, on_line) as job:
        assert job.wait() == 0, job.text
    assert last_rewards(job) >= LEARNED
    assert len(killed) >= 3
    assert sum(seen.status == 200 for seen in proxy.requests("POST", "/v1/rewards")) >= 2 * int(STEPS)
    assert len(list((tmp_path / "out").glob("samples*.jsonl"))) == 2
    runs = {seen.json["run_id"] for seen in proxy.requests("POST", "/v1/rewards")}
    assert runs == {job.metrics()["pool"]["run_id"]}
    assert None not in {line["reward"] for line in job.samples()}
    check_recorded_rewards(job, endpoint)


def test_a_job_outlives_a_restart_of_the_endpoint(
    endpoint: LocalEndpoint,
    proxy: FaultyProxy,
    tiny_model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service that comes back has another table and other sandboxes: it has never heard of the run."""
    command = [*TRAIN, "--model", tiny_model, "--tasks", "token_tasks", "--max-steps", STEPS, "--batch-size", "16"]
    steps: Counter[str] = Counter()

    def on_line(line: str) -> None:
        if line.startswith("step 6/"):
            proxy.target = "http://127.0.0.1:9"
            steps["down"] += 1

    with start_job([*command, *QUICKLY, "--skip-eval"], tmp_path / "out", proxy.url, endpoint.api_key, on_line) as job:
        with start_endpoint("--plan", "pro", "--no-cron", api_key=endpoint.api_key) as second:
            until(lambda: steps["down"] or job.process.poll() is not None, limit_s=JOB_LIMIT_S)
            proxy.target = second.url
            assert job.wait() == 0, job.text
            assert second.sandboxes() == []
    assert last_rewards(job) >= LEARNED
    assert None not in {line["reward"] for line in job.samples()}
    check_recorded_rewards(job, endpoint)


def test_a_script_of_ones_own_needs_nothing_but_the_function(
    endpoint: LocalEndpoint, proxy: FaultyProxy, tiny_model: str, tmp_path: Path, no_sandboxes: None
) -> None:
    """Nothing in it finishes the run: that happens at its end."""
    script = str(Path(__file__).parent / "plain_script.py")
    with start_job([script, tiny_model, str(tmp_path)], tmp_path / "out", proxy.url, endpoint.api_key) as job:
        assert job.wait() == 0, job.text
    assert job.says("rewards: [")
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1
