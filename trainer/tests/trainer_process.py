"""A trainer in a process of its own, to be interrupted, killed and looked at from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bound_process import die_with_parent

TESTS = Path(__file__).resolve().parent
END_LIMIT_S = 40


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str


class TrainerProcess:
    def __init__(self, source: str, url: str, api_key: str, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", source],
            env={
                **os.environ,
                "PYTHONPATH": str(TESTS),
                "PYTHONFAULTHANDLER": "1",
                "CODE_REWARDS_URL": url,
                "CODE_REWARDS_API_KEY": api_key,
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGKILL),
        )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Ended:
        """How it ended, once it has."""
        try:
            stdout, stderr = self.process.communicate(timeout=END_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGABRT)
            stdout, stderr = self.process.communicate()
            raise AssertionError(f"the trainer did not end; where its threads were:\n{stderr}") from None
        return Ended(self.process.returncode, stdout, stderr)


@contextmanager
def start_trainer(source: str, url: str, api_key: str, **environment: str) -> Iterator[TrainerProcess]:
    trainer = TrainerProcess(source, url, api_key, environment)
    try:
        yield trainer
    finally:
        with suppress(ProcessLookupError):
            os.killpg(trainer.process.pid, signal.SIGKILL)
        trainer.process.communicate()
