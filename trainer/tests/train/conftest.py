from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from answers import DEGENERATE, HANGING, LEARNABLE
from endpoint import LocalEndpoint
from polling import until

MAKER = Path(__file__).parent / "tiny_model.py"
SETTLE_LIMIT_S = 60.0


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of them are made by one process: loading what makes them takes longer than the rest."""
    folder = tmp_path_factory.mktemp("models")
    answers = {"tiny": LEARNABLE, "degenerate": LEARNABLE + DEGENERATE, "hanging": HANGING}
    wanted = folder / "answers.json"
    wanted.write_text(json.dumps({str(folder / name): texts for name, texts in answers.items()}), encoding="utf-8")
    subprocess.run([sys.executable, MAKER, wanted], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def tiny_model(models: Path) -> str:
    return str(models / "tiny")


@pytest.fixture(scope="session")
def degenerate_model(models: Path) -> str:
    """Says what breaks graders, as often as what it could learn from."""
    return str(models / "degenerate")


@pytest.fixture(scope="session")
def hanging_model(models: Path) -> str:
    return str(models / "hanging")


@pytest.fixture
def no_sandboxes(endpoint: LocalEndpoint) -> Iterator[None]:
    """None is there at the start, and none may be at the end."""
    for run_id in endpoint.run_ids():
        endpoint.age_run(run_id)
    endpoint.sweep()
    until(lambda: not endpoint.sandboxes(), limit_s=SETTLE_LIMIT_S)
    yield
    until(lambda: not endpoint.sandboxes(), limit_s=SETTLE_LIMIT_S)
