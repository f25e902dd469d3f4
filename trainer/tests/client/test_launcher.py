"""Ranks of a job come to the same run by themselves, other jobs to others."""

from __future__ import annotations

from code_rewards.launcher import derive_run_id, read_rank

TORCHRUN = {
    "RANK": "1",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_ERROR_FILE": "/tmp/torchelastic_a1/none_b2/attempt_0/1/error.json",
}
OTHER_RANK = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "TORCHELASTIC_ERROR_FILE": "/tmp/torchelastic_a1/none_b2/attempt_0/0/error.json",
}
CLUSTER = {
    "RANK": "9",
    "WORLD_SIZE": "16",
    "LOCAL_WORLD_SIZE": "8",
    "MASTER_ADDR": "node-1",
    "MASTER_PORT": "29500",
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
}


def test_ranks_of_a_launch_agree() -> None:
    assert derive_run_id(TORCHRUN) == derive_run_id(TORCHRUN | OTHER_RANK)
    assert derive_run_id(CLUSTER) == derive_run_id(CLUSTER | {"RANK": "0", "TORCHELASTIC_ERROR_FILE": "/tmp/x/y/0/e"})


def test_launches_differ() -> None:
    again = {"TORCHELASTIC_ERROR_FILE": "/tmp/torchelastic_c3/none_d4/attempt_0/1/error.json"}
    others = [again, {"TORCHELASTIC_RESTART_COUNT": "1"}, {"MASTER_PORT": "29501"}, {"TORCHELASTIC_RUN_ID": "x"}]
    ids = [derive_run_id(TORCHRUN | change) for change in [{}, *others]]
    ids += [derive_run_id(CLUSTER | change) for change in [{}, {"SLURM_JOB_ID": "4712"}, {"SLURM_STEP_ID": "1"}]]
    assert len(set(ids)) == len(ids)


def test_without_a_launcher_every_process_is_a_job() -> None:
    assert derive_run_id({}) != derive_run_id({})
    assert derive_run_id({"MASTER_ADDR": "a"}) != derive_run_id({"MASTER_ADDR": "a"})


def test_rank() -> None:
    assert [read_rank(environment) for environment in ({}, {"RANK": "3"}, {"RANK": ""}, {"RANK": "x"})] == [0, 3, 0, 0]
