from __future__ import annotations

from collections.abc import Iterator

import pytest

from endpoint import LocalEndpoint, start_endpoint
from faulty_proxy import FaultyProxy, start_proxy


@pytest.fixture(scope="session")
def endpoint() -> Iterator[LocalEndpoint]:
    with start_endpoint("--plan", "pro", "--no-cron") as started:
        yield started


@pytest.fixture
def proxy(endpoint: LocalEndpoint) -> Iterator[FaultyProxy]:
    with start_proxy(endpoint.url) as started:
        yield started


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests say what their environment is."""
    for name in ("CODE_REWARDS_URL", "CODE_REWARDS_API_KEY", "CODE_REWARDS_RUN_ID", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
