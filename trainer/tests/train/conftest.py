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


def make_model(folder: Path, answers: list[str]) -> str:
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")
    model = folder / "model"
    subprocess.run([sys.executable, MAKER, model, folder / "answers.json"], check=True, capture_output=True)
    return str(model)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("tiny"), LEARNABLE)


@pytest.fixture(scope="session")
def degenerate_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Says what breaks graders, as often as what it could learn from."""
    return make_model(tmp_path_factory.mktemp("degenerate"), LEARNABLE + DEGENERATE)


@pytest.fixture(scope="session")
def hanging_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_model(tmp_path_factory.mktemp("hanging"), HANGING)


@pytest.fixture
def no_sandboxes(endpoint: LocalEndpoint) -> Iterator[None]:
    """None is there at the start, and none may be at the end."""
    for run_id in endpoint.run_ids():
        endpoint.age_run(run_id)
    endpoint.sweep()
    until(lambda: not endpoint.sandboxes(), limit_s=SETTLE_LIMIT_S)
    yield
    until(lambda: not endpoint.sandboxes(), limit_s=SETTLE_LIMIT_S)
