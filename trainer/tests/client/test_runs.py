"""A run from its registration to its end."""

from __future__ import annotations

import pytest

from code_rewards import InvalidRequestError, RewardClient, RewardError, RunFinishedError, RunOptions
from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy, lose_answer, problem, refuse, stream
from polling import until
from programs import DOUBLE, RIGHT

ONE = RunOptions(name="a test", workers=1, metadata={"seed": "7"})
LAUNCHED = {"WORLD_SIZE": "2", "MASTER_ADDR": "node-1", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "1"}


def launch(monkeypatch: pytest.MonkeyPatch, rank: int, **more: str) -> None:
    for name, value in {**LAUNCHED, "RANK": str(rank), **more}.items():
        monkeypatch.setenv(name, value)


def state_of(endpoint: LocalEndpoint, run_id: str | None) -> str:
    return endpoint.get(f"/v1/runs/{run_id}")["state"]


def test_a_run_is_registered_when_it_is_needed_and_finished_at_the_end(
    endpoint: LocalEndpoint, proxy: FaultyProxy
) -> None:
    with RewardClient(proxy.url, endpoint.api_key, run=ONE) as client:
        assert proxy.seen == [], "nothing is asked for before it is needed"
        for _ in range(3):
            assert client.score([RIGHT], [DOUBLE]).rewards == [1]
        run = endpoint.get(f"/v1/runs/{client.run_id}")
        assert (run["name"], run["state"], run["totals"]["batches"]) == ("a test", "active", 3)
        assert client.close() == []
    assert state_of(endpoint, client.run_id) == "finished"
    [registration] = proxy.requests("PUT")
    assert registration.json == {"name": "a test", "workers": 1, "metadata": {"seed": "7"}}
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 1


def test_registering_early_has_the_workers_ready(endpoint: LocalEndpoint) -> None:
    with RewardClient(endpoint.url, endpoint.api_key, run=ONE) as client:
        run_id = client.register()
        assert run_id == client.run_id and state_of(endpoint, run_id) == "active"
        assert client.register() == run_id
        assert client.score([RIGHT], [DOUBLE]).usage.workers_created == 0


def test_a_client_that_did_nothing_leaves_nothing(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with RewardClient(proxy.url, endpoint.api_key, run=ONE):
        pass
    assert proxy.seen == []


def test_a_run_that_cant_be_is_refused(endpoint: LocalEndpoint) -> None:
    with RewardClient(endpoint.url, endpoint.api_key, run=RunOptions(workers=100_000)) as client:
        with pytest.raises(InvalidRequestError) as caught:
            client.register()
    assert [problem.pointer for problem in caught.value.problems] == ["/workers"]


def test_only_the_first_rank_finishes_the_run(endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = []
    for rank in (0, 1):
        launch(monkeypatch, rank, MASTER_PORT="29511")
        clients.append(RewardClient(endpoint.url, endpoint.api_key, run=ONE))
        assert clients[rank].score([RIGHT], [DOUBLE]).rewards == [1]
    first, second = clients
    assert first.run_id == second.run_id
    assert second.close() == []
    assert state_of(endpoint, first.run_id) == "active"
    first.close()
    assert state_of(endpoint, first.run_id) == "finished"
    assert endpoint.get(f"/v1/runs/{first.run_id}")["totals"]["batches"] == 2


def test_a_job_that_is_launched_again_is_another_run(
    endpoint: LocalEndpoint, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for _ in range(3):
        launch(monkeypatch, 0, MASTER_PORT="29512")
        first = RewardClient(proxy.url, endpoint.api_key, run=ONE)
        launch(monkeypatch, 1, MASTER_PORT="29512")
        second = RewardClient(proxy.url, endpoint.api_key, run=ONE)
        assert first.register() == second.register()
        ids.append(first.run_id)
        second.close()
        first.close()
    assert ids == [ids[0], f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_run_that_was_named_is_not_replaced_by_another(
    endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RewardClient(endpoint.url, endpoint.api_key, run=RunOptions(id="named-once", workers=1)) as client:
        assert client.register() == "named-once"
    monkeypatch.setenv("CODE_REWARDS_RUN_ID", "named-once")
    with RewardClient(endpoint.url, endpoint.api_key, run=ONE) as client:
        with pytest.raises(RunFinishedError, match="named-once"):
            client.register()
        with pytest.raises(RunFinishedError):
            client.score([RIGHT], [DOUBLE])


def test_a_run_that_was_finished_elsewhere_is_over(endpoint: LocalEndpoint) -> None:
    with RewardClient(endpoint.url, endpoint.api_key, run=ONE) as client:
        client.register()
        endpoint.ask("DELETE", f"/v1/runs/{client.run_id}").raise_for_status()
        with pytest.raises(RunFinishedError, match="finished"):
            client.score([RIGHT], [DOUBLE])


def test_a_run_is_kept_alive_between_batches(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    options = RunOptions(workers=1, heartbeat_s=0.05)
    with RewardClient(proxy.url, endpoint.api_key, run=options) as client:
        client.register()
        until(lambda: len(proxy.requests("POST", f"/v1/runs/{client.run_id}/heartbeat")) >= 3)
        proxy.plan("POST", "/v1/runs/", refuse(502), problem(401, "unauthorized"))
        until(lambda: not proxy.acts["POST /v1/runs/"])
        endpoint.age_run(client.run_id or "")
        until(lambda: state_of(endpoint, client.run_id) == "active")
        assert client.run_id
        endpoint.lose_run(client.run_id)
        until(lambda: client.run_id in endpoint.run_ids())
    assert state_of(endpoint, client.run_id) == "finished"


def test_a_run_that_a_stream_does_not_find_is_registered_anew(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    lost = {"type": "error", "status": 404, "code": "run_not_found", "detail": "as planned"}
    with RewardClient(proxy.url, endpoint.api_key, run=ONE) as client:
        proxy.plan("POST", "/v1/rewards", stream({"type": "progress", "done": 0, "total": 1}, lost))
        batch = client.score([RIGHT], [DOUBLE])
    assert (batch.rewards, batch.retries) == ([1], 1)
    assert len(proxy.requests("PUT")) == 2


def test_finishing_goes_on_until_it_is_answered(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with RewardClient(proxy.url, endpoint.api_key, run=ONE) as client:
        client.register()
        proxy.plan("DELETE", "/v1/runs/", lose_answer, refuse(502), problem(503, "store_unavailable"))
    assert len(proxy.requests("DELETE", "/v1/runs/")) == 4


def test_sandboxes_that_remain_are_told(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    client = RewardClient(proxy.url, endpoint.api_key, run=ONE)
    client.register()
    body = b'{"run_id":"x","remaining_sandboxes":["i1","i2"],"totals":{}}'
    proxy.plan("DELETE", "/v1/runs/", refuse(200, body, content_type="application/json"))
    assert client.finish() == ["i1", "i2"]
    endpoint.ask("DELETE", f"/v1/runs/{client.run_id}")


def test_a_run_that_cant_be_finished_is_told_and_may_be_tried_again(
    endpoint: LocalEndpoint, proxy: FaultyProxy
) -> None:
    client = RewardClient(proxy.url, endpoint.api_key, run=ONE)
    client.register()
    proxy.plan("DELETE", "/v1/runs/", *[refuse(502)] * 30)
    with pytest.raises(RewardError, match="502"):
        client.finish(limit_s=0.3)
    proxy.acts.clear()
    assert client.finish() == []
    assert state_of(endpoint, client.run_id) == "finished"


def test_what_a_block_raised_is_not_hidden_by_its_end(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        with RewardClient(proxy.url, endpoint.api_key, run=ONE) as client:
            client.register()
            proxy.plan("DELETE", "/v1/runs/", problem(401, "unauthorized"))
            _ = 1 / 0
    assert "could not be finished" in caught.value.__notes__[0]
    client.finish()
