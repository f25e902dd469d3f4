"""The files that a job writes, and what they say of its settings."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("trl", "transformers", "torch", "accelerate", "datasets", "code-rewards")


class JobFiles:
    def __init__(self, directory: Path, baseline_only: bool) -> None:
        self._directory = directory
        self._metrics_path = directory / ("baseline.json" if baseline_only else "metrics.json")
        self.checkpoint_path = directory / "checkpoint"

    def samples_path(self, rank: int) -> Path:
        return self._directory / ("samples.jsonl" if rank == 0 else f"samples-rank{rank}.jsonl")

    def read_before(self) -> dict[str, Any]:
        """The evaluation before training that an earlier part of the same job wrote, if it did."""
        try:
            metrics = json.loads(self._metrics_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {"before": metrics["before"]} if isinstance(metrics, dict) and metrics.get("before") else {}

    def write(self, metrics: dict[str, Any]) -> str:
        """The whole file or none of it: a job that is killed meanwhile leaves the old one."""
        self._directory.mkdir(parents=True, exist_ok=True)
        unfinished = self._metrics_path.with_suffix(".tmp")
        unfinished.write_text(json.dumps(metrics, indent=2, default=str) + "\n", encoding="utf-8")
        os.replace(unfinished, self._metrics_path)
        return str(self._metrics_path)


def describe_config(config: Any) -> dict[str, Any]:
    """The trainer's settings, without what only says where something is or what a token opens."""
    return {name: value for name, value in config.to_dict().items() if "token" not in name or isinstance(value, int)}


def describe_versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
