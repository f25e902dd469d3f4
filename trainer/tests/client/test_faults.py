"""What a client does when the way to the service, or the service, fails."""

from __future__ import annotations

import logging
import pickle
import time

import pytest

from code_rewards import (
    AuthenticationError,
    BatchCancelledError,
    InvalidRequestError,
    MisconfiguredError,
    RewardClient,
    RewardError,
    RunFinishedError,
    RunOptions,
    UnavailableError,
)
from endpoint import LocalEndpoint
from faulty_proxy import Act, FaultyProxy, cut_after, drop, hang, lose_answer, lose_connection, problem, refuse, stream
from polling import until
from programs import DOUBLE, NOTHING, PARTLY, RIGHT, fence

COMPLETIONS = [RIGHT, PARTLY, NOTHING]
REWARDS = [1, 1 / 3, 0]
USAGE = {"wall_ms": 1, "queue_ms": 0, "workers": 1, "worker_seconds": 0.5}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The luckiest draw of every waiting time."""
    monkeypatch.setattr("random.random", lambda: 0.02)


@pytest.fixture
def client(endpoint: LocalEndpoint, proxy: FaultyProxy):
    with RewardClient(proxy.url, endpoint.api_key) as opened:
        yield opened


def score(client: RewardClient):
    return client.score(COMPLETIONS, [DOUBLE] * len(COMPLETIONS))


def told_late(status: int, code: str) -> Act:
    """Refused after the stream began."""
    refusal = {"type": "error", "status": status, "code": code, "detail": "as planned", "retry_after_s": 0}
    return stream({"type": "progress", "done": 0, "total": 3}, refusal)


FAULTS: list[tuple[str, Act]] = [
    ("the connection is dropped before anything arrives", drop),
    ("the answer is lost when the work is done", lose_answer),
    ("the stream is cut at once", cut_after(0)),
    ("the stream is cut after a line", cut_after(1)),
    ("the stream is cut before its last line", cut_after(4)),
    ("a balancer's 502", refuse(502, b"<html>Bad Gateway</html>", content_type="text/html")),
    ("a function's 502", refuse(502, b'{"Message":null}', content_type="application/json")),
    ("a function's throttling", refuse(429, b'{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}')),
    ("a gateway's 504", refuse(504)),
    ("a 503 without a body", refuse(503)),
    ("an unexpected error", problem(500, "internal")),
    ("no worker", problem(503, "no_capacity", retry_after="0")),
    ("no sandboxes", problem(503, "sandbox_unavailable", retry_after="0")),
    ("no table", problem(503, "store_unavailable", retry_after="0")),
    ("no isolation", problem(503, "isolation_failed", retry_after="0")),
    ("the first request is still under way", problem(409, "in_progress", retry_after="0")),
    ("a code that this version does not know", problem(503, "overloaded")),
    ("a service that is being restarted", problem(503, "stopping", retry_after="0")),
    ("an error line", stream({"type": "error", "status": 503, "code": "no_capacity", "detail": "none"})),
    ("an error line of a restart", told_late(503, "stopping")),
    ("an error line of a table that does not answer", told_late(503, "store_unavailable")),
    ("an error line of another attempt", told_late(409, "in_progress")),
    ("a page of somebody else", refuse(200, b"<html>Log in</html>", content_type="text/html")),
    ("a line that is no JSON", refuse(200, b'{"type":"resu\n', content_type="application/x-ndjson")),
    ("a line that is no object", refuse(200, b"1\n", content_type="application/x-ndjson")),
    ("a summary without results", stream({"type": "summary", "rewards": [1, 1, 1], "usage": USAGE})),
    ("a result of a sample that was not sent", stream({"type": "result", "index": 3, "reward": 1})),
    ("a reward that can't be one", stream({"type": "result", "index": 0, "reward": 1.5, "status": "graded"})),
]


@pytest.mark.parametrize("act", [act for _, act in FAULTS], ids=[name for name, _ in FAULTS])
def test_a_passing_fault_costs_a_retry_under_the_same_key(client: RewardClient, proxy: FaultyProxy, act: Act) -> None:
    proxy.plan("POST", "/v1/rewards", act)
    batch = score(client)
    assert batch.rewards == REWARDS
    assert (batch.retries, batch.resubmitted) == (1, 0)
    first, second = proxy.requests("POST", "/v1/rewards")
    assert first.key == second.key and first.key
    assert first.body == second.body
    assert proxy.requests("DELETE") == [], "nothing is cancelled that is taken up again"


def test_a_batch_that_goes_on_without_us_is_taken_up_again(client: RewardClient, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", lose_connection)
    slowly = fence("import time\ntime.sleep(1)\nprint(int(input()) * 2)")
    batch = client.score([slowly, NOTHING], [DOUBLE] * 2)
    assert batch.rewards == [1, 0]
    assert batch.retries >= 1
    assert len({seen.key for seen in proxy.requests("POST")}) == 1


def test_other_requests_have_other_keys(client: RewardClient, proxy: FaultyProxy) -> None:
    for _ in range(3):
        assert score(client).rewards == REWARDS
    keys = {seen.key for seen in proxy.requests("POST")}
    assert len(keys) == 3
    assert all(key and len(key) <= 200 and key.isascii() for key in keys)


FINAL: list[tuple[str, Act, type[RewardError], str]] = [
    ("a key that is not known", problem(401, "unauthorized"), AuthenticationError, "as planned"),
    ("a refusal before the service", refuse(403, b'{"Message":"Forbidden"}'), AuthenticationError, "Forbidden"),
    ("a request that asks too much", problem(422, "invalid_request"), InvalidRequestError, "as planned"),
    ("a code of a refusal that is not known", problem(418, "teapot"), InvalidRequestError, "teapot"),
    ("a service without settings", problem(503, "misconfigured"), MisconfiguredError, "as planned"),
    ("another place", problem(404, "not_found"), MisconfiguredError, "as planned"),
    ("another server", refuse(404, b"nope"), MisconfiguredError, "look at its URL"),
    ("a redirection", refuse(301, location="https://example.invalid/"), MisconfiguredError, "look at its URL"),
    ("a cancelled batch", problem(409, "cancelled"), BatchCancelledError, "as planned"),
    ("a finished run", problem(409, "run_finished"), RunFinishedError, "as planned"),
    ("another body, told late", told_late(422, "idempotency_mismatch"), InvalidRequestError, "as planned"),
    ("a cancelled batch, told late", told_late(409, "cancelled"), BatchCancelledError, "as planned"),
    (
        "a finished run, told by the stream",
        stream({"type": "error", "status": 409, "code": "run_finished", "detail": "over"}),
        RunFinishedError,
        "over",
    ),
]


@pytest.mark.parametrize(("act", "kind", "message"), [row[1:] for row in FINAL], ids=[row[0] for row in FINAL])
def test_what_wont_mend_itself_is_raised_at_once(
    client: RewardClient, proxy: FaultyProxy, act: Act, kind: type[RewardError], message: str
) -> None:
    proxy.plan("POST", "/v1/rewards", act)
    with pytest.raises(kind, match=message) as caught:
        score(client)
    assert type(caught.value) is kind
    assert len(proxy.requests("POST")) == 1
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again), again.code) == (kind, str(caught.value), caught.value.code)


def test_a_wrong_key_is_told_by_the_service(endpoint: LocalEndpoint) -> None:
    with RewardClient(endpoint.url, "another-key") as client, pytest.raises(AuthenticationError):
        score(client)


def test_the_service_says_when_to_ask_again(client: RewardClient, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", problem(503, "no_capacity", retry_after="1"), refuse(429, retry_after="1"))
    began_s = time.monotonic()
    batch = score(client)
    assert batch.rewards == REWARDS and batch.retries == 2
    assert time.monotonic() - began_s >= 2


def test_a_body_that_something_lets_not_through_is_halved(client: RewardClient, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", refuse(413, b"Request Entity Too Large"), problem(413, "too_large"))
    batch = client.score([RIGHT, PARTLY, NOTHING, RIGHT], [DOUBLE] * 4)
    assert batch.rewards == [1, 1 / 3, 0, 1]
    requests = proxy.requests("POST")
    assert [len(seen.json["samples"]) for seen in requests] == [4, 2, 1, 1, 2]
    assert len({seen.key for seen in requests}) == 5


def test_a_sample_that_is_too_large_alone_is_named(client: RewardClient, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", refuse(413), refuse(413), refuse(413))
    with pytest.raises(InvalidRequestError) as caught:
        client.score([RIGHT] * 4, [DOUBLE] * 4)
    assert caught.value.problems[0].samples == (0,)


def fault_line(index: int, *, retryable: bool, code: str = "worker_lost") -> dict:
    fault = {"code": code, "detail": "gone", "retryable": retryable}
    return {"type": "result", "index": index, "reward": None, "status": "fault", "fault": fault}


def result_line(index: int, reward: float) -> dict:
    return {"type": "result", "index": index, "reward": reward, "status": "graded", "passed": 3, "total": 3}


def summary(*rewards: float | None) -> dict:
    return {"type": "summary", "rewards": list(rewards), "usage": USAGE, "request_id": "r"}


def test_only_samples_that_may_yet_be_graded_are_sent_again(client: RewardClient, proxy: FaultyProxy) -> None:
    first = stream(
        fault_line(2, retryable=True),
        result_line(0, 0.25),
        fault_line(1, retryable=False, code="invalid_task"),
        summary(0.25, None, None),
    )
    proxy.plan("POST", "/v1/rewards", first)
    batch = client.score([NOTHING, RIGHT, PARTLY], [DOUBLE] * 3)
    assert batch.rewards == [0.25, None, 1 / 3], "what is known stays, what can't be graded stays without a reward"
    assert (batch.retries, batch.resubmitted) == (0, 1)
    assert {index: fault.code for index, fault in batch.faults.items()} == {1: "invalid_task"}
    asked, again = proxy.requests("POST")
    assert asked.key != again.key
    assert [sample["completion"] for sample in again.json["samples"]] == [PARTLY]
    assert batch.usage.worker_seconds > USAGE["worker_seconds"], "what both cost is added up"


def test_a_fault_that_stays_leaves_no_reward(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    lost = stream(fault_line(0, retryable=True), result_line(1, 0), summary(None, 0))
    again = stream(fault_line(0, retryable=True), summary(None))
    proxy.plan("POST", "/v1/rewards", lost, *[again] * 30)
    with RewardClient(proxy.url, endpoint.api_key, fault_budget_s=1) as client:
        batch = client.score([RIGHT, NOTHING], [DOUBLE] * 2)
    assert batch.rewards == [None, 0]
    assert batch.faults[0].retryable and batch.resubmitted >= 1
    assert batch.wall_s < 5


def test_a_small_budget_leaves_honest_grading_its_time(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", refuse(502))
    slowly = fence("import time\ntime.sleep(1.5)\nprint(int(input()) * 2)")
    with RewardClient(proxy.url, endpoint.api_key, fault_budget_s=1) as client:
        batch = client.score([slowly], [DOUBLE])
    assert batch.rewards == [1] and batch.retries == 1 and batch.wall_s > 1.5


def test_a_registration_that_does_not_come_back_is_given_up(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    proxy.plan("PUT", "/v1/runs/", hang)
    with RewardClient(proxy.url, endpoint.api_key, run=RunOptions(workers=1), deadline_s=1) as client:
        began_s = time.monotonic()
        with pytest.raises(UnavailableError, match="did not come in time"):
            score(client)
        assert time.monotonic() - began_s < 5
        until(lambda: client.run_id in endpoint.run_ids())
    assert endpoint.get(f"/v1/runs/{client.run_id}")["state"] == "finished", "though nobody was told of it"


def test_a_service_that_stays_away_is_given_up(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", *[refuse(502)] * 50)
    with RewardClient(proxy.url, endpoint.api_key, fault_budget_s=1) as client:
        began_s = time.monotonic()
        with pytest.raises(UnavailableError, match="The last failure: Status 502") as caught:
            score(client)
        assert time.monotonic() - began_s < 5
        assert caught.value.partial is not None
        assert caught.value.partial.rewards == [None] * 3
        assert {fault.code for fault in caught.value.partial.faults.values()} == {"unavailable"}
        proxy.acts.clear()
        assert score(client).rewards == REWARDS, "the next call has a budget of its own"


def test_what_was_known_of_a_call_that_failed_is_told(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    proxy.plan("POST", "/v1/rewards", stream(result_line(1, 0.5)), *[refuse(502)] * 50)
    with RewardClient(proxy.url, endpoint.api_key, fault_budget_s=1) as client:
        with pytest.raises(UnavailableError) as caught:
            score(client)
    assert caught.value.partial is not None and caught.value.partial.rewards == [None, 0.5, None]


def test_nobody_at_the_address(caplog: pytest.LogCaptureFixture) -> None:
    with RewardClient("http://127.0.0.1:1", "key", fault_budget_s=0.5) as client:
        with caplog.at_level(logging.WARNING, "code_rewards"), pytest.raises(UnavailableError, match="connection"):
            score(client)
    assert "sent again" in caplog.text


def test_an_answer_that_does_not_come_is_given_up_and_cancelled(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    def say_nothing(faulty) -> None:
        faulty.connection.settimeout(10)
        faulty.rfile.read(1)

    proxy.plan("POST", "/v1/rewards", say_nothing)
    proxy.plan("DELETE", "/v1/batches/", problem(404, "not_found"), refuse(200, b"{}", content_type="application/json"))
    with RewardClient(proxy.url, endpoint.api_key, deadline_s=1) as client:
        began_s = time.monotonic()
        with pytest.raises(UnavailableError, match="did not come in time"):
            score(client)
        assert 0.9 < time.monotonic() - began_s < 4
    [asked] = proxy.requests("POST")
    cancelled = proxy.requests("DELETE", "/v1/batches/")
    assert [seen.path for seen in cancelled] == [f"/v1/batches/{asked.key}"] * 2, "it may not have begun at first"


def test_a_run_that_the_service_forgot_is_registered_anew(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    with RewardClient(proxy.url, endpoint.api_key, run=RunOptions(workers=1)) as client:
        assert score(client).rewards == REWARDS
        assert client.run_id is not None
        endpoint.lose_run(client.run_id)
        batch = score(client)
        assert batch.rewards == REWARDS and batch.retries == 1
        assert len(proxy.requests("PUT", f"/v1/runs/{client.run_id}")) == 2
        assert endpoint.get(f"/v1/runs/{client.run_id}")["totals"]["batches"] == 1
