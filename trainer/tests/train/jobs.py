"""Training jobs as processes of their own, and what they wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
TRAIN = ["-m", "code_rewards.train"]
JOB_LIMIT_S = 240.0
# With it a model of ten thousand weights learns in some twenty steps.
QUICKLY = (
    "--cpu --max-completion-length 1 --num-generations 8 --learning-rate 1e-2 --lr-scheduler constant --record-samples"
).split()


@dataclass
class Job:
    """`on_line` is called with each line that the job says, while it goes on."""

    process: subprocess.Popen[str]
    output: Path
    lines: list[str] = field(default_factory=list)
    on_line: Callable[[str], None] = lambda line: None

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self.on_line(line)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def wait(self, limit_s: float = JOB_LIMIT_S) -> int:
        code = self.process.wait(limit_s)
        self.reader.join(10)
        return code

    def says(self, words: str) -> bool:
        return any(words in line for line in list(self.lines))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def metrics(self, name: str = "metrics.json") -> dict[str, Any]:
        return json.loads((self.output / name).read_text(encoding="utf-8"))

    def samples(self) -> list[dict[str, Any]]:
        """The recorded samples of all processes."""
        paths = sorted(self.output.glob("samples*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]

    def start_reading(self) -> None:
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()


@contextmanager
def start_job(
    command: Sequence[str], output: Path, url: str, api_key: str, on_line: Callable[[str], None] = lambda line: None
) -> Iterator[Job]:
    """Starts `python COMMAND`; whatever is left of it is killed at the end."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "CODE_REWARDS_URL": url,
        "CODE_REWARDS_API_KEY": api_key,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONPATH": str(FOLDER),
    }
    process = subprocess.Popen(
        [sys.executable, *command, "--output-dir", str(output)],
        cwd=output.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    job = Job(process, output, on_line=on_line)
    job.start_reading()
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        job.reader.join(10)
        if process.stdout is not None:
            process.stdout.close()


def torchrun(processes: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *TRAIN]


def accelerate_launch(processes: int) -> list[str]:
    """As for GPUs: for processes without one it launches a single process."""
    launch = [
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        str(processes),
        "--num_machines",
        "1",
    ]
    return [
        *launch,
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
        "--module",
        *TRAIN[1:],
    ]
