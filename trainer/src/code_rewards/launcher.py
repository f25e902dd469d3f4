"""What the launcher of a job says of this process: its rank, and an id that all ranks of the job come to by themselves.

The variables are those of torchrun (and so of `accelerate launch`), SLURM and plain `env://` set-ups. Two launches may
well have the same variables (say, the same job script started twice): the id says which job it is, and whoever
registers it goes on to the next number when it is used up.
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
from collections.abc import Mapping

RUN_ID_VARIABLE = "CODE_REWARDS_RUN_ID"
JOB_VARIABLES = (
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_RESTART_COUNT",
    "MASTER_ADDR",
    "MASTER_PORT",
    "WORLD_SIZE",
)


def read_rank(environment: Mapping[str, str] = os.environ) -> int:
    """This process's place among all of the job; 0 when nothing launched it."""
    rank = environment.get("RANK", "")
    return int(rank) if rank.isascii() and rank.isdecimal() else 0


def read_run_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """The id that the user set for the job."""
    return environment.get(RUN_ID_VARIABLE, "").strip() or None


def derive_run_id(environment: Mapping[str, str] = os.environ) -> str:
    """An id that is the same on all ranks of a job, and another one for every other job. Random without a launcher."""
    if "RANK" not in environment or "WORLD_SIZE" not in environment:
        return f"job-{secrets.token_hex(8)}"
    facts = [f"{name}={environment.get(name, '')}" for name in JOB_VARIABLES]
    if environment.get("LOCAL_WORLD_SIZE", environment["WORLD_SIZE"]) == environment["WORLD_SIZE"]:
        # On one host the master's address is often 'localhost', as it is on every other host.
        facts += [f"host={platform.node()}", f"boot={read_boot_id()}", f"launch={read_launch(environment)}"]
    return f"job-{hashlib.sha256(chr(10).join(facts).encode()).hexdigest()[:16]}"


def read_boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_launch(environment: Mapping[str, str]) -> str:
    """torchrun gives the ranks of a launch one new folder for their errors, `…/attempt_N/RANK/error.json`."""
    path = environment.get("TORCHELASTIC_ERROR_FILE", "")
    return path.rsplit("/", 2)[0] if path.count("/") > 2 else ""
