"""One client, many users of it: threads, event loops, and tasks that are cancelled."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from code_rewards import AsyncRewardClient, RewardClient, RunFinishedError, RunOptions
from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy, go_through, hang, refuse
from polling import until
from programs import DOUBLE, ENDLESS, NOTHING, RIGHT, SLOW, running_programs

ONE = RunOptions(workers=1)


def count_sockets() -> int:
    folder = "/proc/self/fd"
    found = 0
    for name in os.listdir(folder):
        try:
            found += os.readlink(f"{folder}/{name}").startswith("socket:")
        except OSError:
            continue
    return found


def test_event_loops_come_and_go(endpoint: LocalEndpoint) -> None:
    client = AsyncRewardClient(endpoint.url, endpoint.api_key)

    async def score_twice() -> list[float | None]:
        both = await asyncio.gather(client.score([RIGHT], [DOUBLE]), client.score([NOTHING], [DOUBLE]))
        return [reward for batch in both for reward in batch.rewards]

    assert asyncio.run(score_twice()) == [1, 0]
    sockets = count_sockets()
    for _ in range(20):
        assert asyncio.run(score_twice()) == [1, 0]
    assert count_sockets() == sockets
    assert asyncio.run(client.aclose()) == []
    assert count_sockets() <= sockets - 1


def test_two_event_loops_at_once(endpoint: LocalEndpoint) -> None:
    client = AsyncRewardClient(endpoint.url, endpoint.api_key)

    def score(completion: str) -> list[float | None]:
        return asyncio.run(client.score([completion], [DOUBLE])).rewards

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(score, [RIGHT, NOTHING] * 5)) == [[1], [0]] * 5
    client.finish()


def test_threads(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with RewardClient(proxy.url, endpoint.api_key, run=ONE) as client, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda text: client.score([text], [DOUBLE]).rewards, [RIGHT, NOTHING] * 12))
    assert answers == [[1], [0]] * 12
    assert len({seen.key for seen in proxy.requests("POST")}) == 24
    assert len(proxy.requests("PUT")) == 1


def test_an_async_with_block(endpoint: LocalEndpoint) -> None:
    async def train() -> str | None:
        async with AsyncRewardClient(endpoint.url, endpoint.api_key, run=ONE) as client:
            assert (await client.score([RIGHT], [DOUBLE])).rewards == [1]
        return client.run_id

    assert endpoint.get(f"/v1/runs/{asyncio.run(train())}")["state"] == "finished"


@pytest.mark.parametrize("act", [go_through, hang])
def test_a_cancelled_task_stops_its_programs_before_it_ends(endpoint: LocalEndpoint, proxy: FaultyProxy, act) -> None:
    proxy.plan("POST", "/v1/rewards", act)
    client = AsyncRewardClient(proxy.url, endpoint.api_key)

    async def begin_and_cancel() -> None:
        task = asyncio.create_task(client.score([ENDLESS], [SLOW]))
        await asyncio.to_thread(until, running_programs)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert running_programs() == []

    asyncio.run(begin_and_cancel())
    [asked] = proxy.requests("POST")
    assert [seen.path for seen in proxy.requests("DELETE")] == [f"/v1/batches/{asked.key}"]
    assert client.finish() == []


def test_a_call_that_is_cancelled_while_it_waits_to_try_again(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", refuse(503, retry_after="30"))
    client = AsyncRewardClient(proxy.url, endpoint.api_key)

    async def begin_and_cancel() -> None:
        task = asyncio.create_task(client.score([RIGHT], [DOUBLE]))
        await asyncio.to_thread(until, lambda: proxy.requests("POST"))
        await asyncio.sleep(0)
        began_s = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - began_s < 5

    asyncio.run(begin_and_cancel())
    assert len(proxy.requests("DELETE")) >= 1
    client.finish()


def test_a_time_limit_of_the_caller(endpoint: LocalEndpoint) -> None:
    client = AsyncRewardClient(endpoint.url, endpoint.api_key)
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(client.score([ENDLESS], [SLOW]), timeout=1))
    assert running_programs() == []
    client.finish()


def test_closing_ends_what_is_under_way(endpoint: LocalEndpoint) -> None:
    client = RewardClient(endpoint.url, endpoint.api_key, run=ONE)
    with ThreadPoolExecutor(1) as threads:
        call = threads.submit(client.score, [ENDLESS], [SLOW])
        until(running_programs)
        assert client.close() == []
        assert running_programs() == []
        with pytest.raises(RunFinishedError):
            call.result(10)


def test_a_copy_counts_for_the_same_run_and_leaves_it_alone(endpoint: LocalEndpoint) -> None:
    client = AsyncRewardClient(endpoint.url, endpoint.api_key, run=ONE)
    client.register()
    state = pickle.dumps(client)
    copy = pickle.loads(state)
    assert copy.run_id == client.run_id
    assert asyncio.run(copy.score([RIGHT], [DOUBLE])).rewards == [1]
    assert copy.finish() == []
    run = endpoint.get(f"/v1/runs/{client.run_id}")
    assert (run["state"], run["totals"]["batches"]) == ("active", 1)
    client.finish()
    assert endpoint.get(f"/v1/runs/{client.run_id}")["state"] == "finished"


def test_a_key_of_the_environment_is_in_no_copy(endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODE_REWARDS_URL", endpoint.url)
    monkeypatch.setenv("CODE_REWARDS_API_KEY", endpoint.api_key)
    client = RewardClient()
    state = pickle.dumps(client)
    assert endpoint.api_key.encode() not in state
    with pickle.loads(state) as copy:
        assert copy.score([RIGHT], [DOUBLE]).rewards == [1]
    assert endpoint.api_key not in repr(vars(client))
