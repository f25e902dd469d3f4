"""A service that is stopped and started again, as by a deploy or a person, in the middle of a training's batch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from code_rewards import RewardClient, RunOptions
from endpoint import start_endpoint
from faulty_proxy import FaultyProxy, start_proxy
from polling import until
from programs import MARKER, SLOW, fence, running_programs

API_KEY = "the-same-key"
# Takes long enough to be interrupted, and ends when it is run again.
PATIENT = fence(
    "import os, sys\n"
    'program = "import time; time.sleep(3); print(1)"\n'
    f'os.execv(sys.executable, [sys.executable, "-c", program, "{MARKER}"])'
)


@pytest.fixture
def lives() -> Iterator[ExitStack]:
    """The service's life under way."""
    with ExitStack() as stack:
        yield stack


def start_life(lives: ExitStack) -> str:
    return lives.enter_context(start_endpoint("--slots", "1", "--no-cron", api_key=API_KEY)).url


def answers(proxy: FaultyProxy) -> list[int | None]:
    return [seen.status for seen in proxy.requests("POST", "/v1/rewards")]


@pytest.mark.parametrize("run", [None, RunOptions(workers=1)], ids=["without a run", "of a run"])
def test_a_batch_survives_a_restart_of_the_service(lives: ExitStack, run: RunOptions | None) -> None:
    with start_proxy(start_life(lives)) as proxy, ThreadPoolExecutor(1) as pool:
        with RewardClient(proxy.url, API_KEY, run=run) as client:
            scored = pool.submit(client.score, [PATIENT], [SLOW])
            until(running_programs)
            lives.close()
            assert running_programs() == [], "nothing of the batch outlives the service"
            proxy.target = start_life(lives)
            batch = scored.result(timeout=60)
        assert batch.rewards == [1]
        assert batch.retries >= 1
        assert proxy.requests("DELETE", "/v1/batches/") == [], "nothing is cancelled that is taken up again"
        assert answers(proxy)[0] == answers(proxy)[-1] == 200
