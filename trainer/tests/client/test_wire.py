"""How a call becomes requests."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from code_rewards import InvalidRequestError, RewardClient, wire
from code_rewards.wire import Options, Part, encode_batch, split_batch
from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy
from programs import DOUBLE, NOTHING, RIGHT


def split(completions, tasks, *, detail: str = "verdicts", remaining_s: float = 900) -> list[Part]:
    batch = encode_batch(completions, tasks)
    return list(split_batch(batch, batch.samples, Options(detail=detail), "job-7", lambda: remaining_s))


def read(part: Part):
    return json.loads(gzip.decompress(part.body))


def noise(seed: int, characters: int) -> str:
    """A text that can't be compressed to less than about a half of its length."""
    return random.Random(seed).randbytes(characters // 2).hex()


def test_a_request_says_what_the_service_wants() -> None:
    [part] = split([RIGHT, [{"role": "assistant", "content": "é\ud800\0"}]], [DOUBLE, DOUBLE])
    body = gzip.decompress(part.body)
    assert body.isascii() and b"\\ud800" in body
    assert json.loads(body) == {
        "run_id": "job-7",
        "options": {"detail": "verdicts", "extraction": "first", "reasoning": "auto", "deadline_ms": 600_000},
        "tasks": {"0": DOUBLE},
        "samples": [
            {"task": "0", "completion": RIGHT},
            {"task": "0", "completion": [{"role": "assistant", "content": "é\ud800\0"}]},
        ],
    }


def test_the_same_call_has_the_same_body() -> None:
    assert split([RIGHT], [DOUBLE]) == split([RIGHT], [DOUBLE])
    assert split([RIGHT], [DOUBLE])[0].digest != split([NOTHING], [DOUBLE])[0].digest


@pytest.mark.parametrize(
    ("remaining_s", "deadline_ms"), [(2_000, 600_000), (605, 600_000), (100, 95_000), (5, 1_000), (-3, 1_000)]
)
def test_the_service_is_given_less_than_the_client_has(remaining_s: float, deadline_ms: int) -> None:
    [part] = split([RIGHT], [DOUBLE], remaining_s=remaining_s)
    assert read(part)["options"]["deadline_ms"] == deadline_ms


def check_split(parts: list[Part], completions: list[str], tasks: list[dict]) -> None:
    """All samples are there, in order, each with its task, and every body is small enough."""
    assert [sample.index for part in parts for sample in part.samples] == list(range(len(completions)))
    for part in parts:
        assert len(part.body) <= 4 * 1024 * 1024
        body = gzip.decompress(part.body)
        assert len(body) <= 32 * 1024 * 1024
        request = json.loads(body)
        for sample, sent in zip(part.samples, request["samples"], strict=True):
            assert sent["completion"] == completions[sample.index]
            assert request["tasks"][sent["task"]] == tasks[sample.index]
        assert set(request["tasks"]) == {sent["task"] for sent in request["samples"]}


def test_bodies_over_four_mebibytes_are_split() -> None:
    completions = [noise(seed, 500_000) for seed in range(30)]
    tasks = [{"test_cases": [{"input": str(seed % 4), "output": "1"}]} for seed in range(30)]
    parts = split(completions, tasks)
    check_split(parts, completions, tasks)
    assert 2 <= len(parts) <= 8


def test_bodies_that_are_too_much_inflated_are_split() -> None:
    task = {"test_cases": [{"input": "x" * 1_000_000, "output": "1"}]}
    completions = ["y" * 200_000] * 200
    parts = split(completions, [task] * 200)
    check_split(parts, completions, [task] * 200)
    assert len(parts) == 2


def test_no_request_has_more_than_ten_thousand_samples() -> None:
    parts = split([RIGHT] * 20_001, [DOUBLE] * 20_001)
    assert [len(part.samples) for part in parts] == [10_000, 10_000, 1]


def test_no_answer_has_more_than_a_million_verdicts() -> None:
    task = {"test_cases": [{"input": "", "output": "1"}] * 1_000}
    assert [len(part.samples) for part in split([RIGHT] * 1_500, [task] * 1_500)] == [1_000, 500]
    assert len(split([RIGHT] * 1_500, [task] * 1_500, detail="rewards")) == 1


def test_a_task_that_fits_no_request_is_named() -> None:
    task = {"test_cases": [{"input": noise(seed, 1_000_000), "output": "1"} for seed in range(14)]}
    with pytest.raises(InvalidRequestError) as caught:
        split([RIGHT, RIGHT, RIGHT], [DOUBLE, task, task])
    [problem] = caught.value.problems
    assert problem.pointer == "/tasks/1" and problem.samples == (1,)


def test_a_large_task_is_sent_alone() -> None:
    task = {"test_cases": [{"input": noise(seed, 1_000_000), "output": "1"} for seed in range(9)]}
    parts = split([RIGHT, RIGHT, RIGHT], [DOUBLE, task, task])
    assert [len(part.samples) for part in parts] == [1, 1, 1]
    assert 4 * 1024 * 1024 < len(parts[1].body) < 6 * 1024 * 1024


def test_a_split_call_is_graded_in_order(
    endpoint: LocalEndpoint, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_SAMPLES", 3)
    completions = [RIGHT, NOTHING, NOTHING, RIGHT, NOTHING, RIGHT, RIGHT, RIGHT]
    with RewardClient(proxy.url, endpoint.api_key) as client:
        batch = client.score(completions, [DOUBLE] * 8)
    assert batch.rewards == [1, 0, 0, 1, 0, 1, 1, 1]
    requests = proxy.requests("POST")
    assert [len(seen.json["samples"]) for seen in requests] == [3, 3, 2]
    assert len({seen.key for seen in requests}) == 3
    assert batch.usage.programs_run == 3, "what the requests cost is added up"
