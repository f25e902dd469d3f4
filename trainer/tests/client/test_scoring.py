"""What a batch comes to, asked from the service itself."""

from __future__ import annotations

import pytest

from code_rewards import InvalidRequestError, MisconfiguredError, RewardClient, RunFinishedError
from code_rewards.wire import OTHER_ROLES
from endpoint import LocalEndpoint
from faulty_proxy import FaultyProxy
from programs import BROKEN, CRASH, DOUBLE, NOTHING, PARTLY, RIGHT, WRONG, fence

KINDS = [RIGHT, PARTLY, WRONG, CRASH, BROKEN, NOTHING]
REWARDS = [1, 1 / 3, 0, 0, 0, 0]


@pytest.fixture
def client(endpoint: LocalEndpoint):
    with RewardClient(endpoint.url, endpoint.api_key) as opened:
        yield opened


def test_one_result_per_completion_in_order(client: RewardClient) -> None:
    batch = client.score(KINDS, [DOUBLE] * len(KINDS))
    assert batch.rewards == REWARDS
    assert [result.status for result in batch.results] == [
        *["graded"] * 4,
        "syntax_error",
        "no_program",
    ]
    verdicts = [[verdict.verdict for verdict in result.verdicts] for result in batch.results]
    assert verdicts[1] == ["passed", "wrong_output", "wrong_output"]
    assert batch.results[3].verdicts[0].exit_code == 3
    assert [result.reason for result in batch.results[4:]] == ["line 1: '(' was never closed", "no_fenced_block"]
    assert batch.usage.programs_run == 5 and batch.usage.worker_seconds > 0
    assert (batch.retries, batch.resubmitted, batch.faults) == (0, 0, {})
    assert 0 < batch.wall_s < 60


def test_a_chat_is_judged_by_the_text_of_the_models_last_message(client: RewardClient) -> None:
    parts = [{"type": "text", "text": RIGHT[:20]}, {"type": "image", "url": "x"}, {"type": "text", "text": RIGHT[20:]}]
    tool = {"arguments": [[[[]]]]}
    for _ in range(80):
        tool = {"arguments": tool}
    chats = [
        [{"role": "assistant", "content": RIGHT}],
        [{"role": "user", "content": RIGHT}, {"role": "assistant", "content": NOTHING}],
        [{"role": "assistant", "content": parts}],
        [{"role": "assistant", "content": RIGHT, "tool_calls": [tool]}],
        [{"role": "assistant", "content": None, "tool_calls": [tool]}],
        [{"role": "assistant", "content": [{**part, "type": "output_text"} for part in parts if "text" in part]}],
        [{"role": "assistant", "content": RIGHT}, {"role": "tool", "content": NOTHING}],
        [{"role": "assistant", "content": NOTHING}, {"role": "user", "content": RIGHT}],
        [{"role": "tool", "content": RIGHT}],
        [{"content": RIGHT}],
        [{"role": "assistant"}],
        [],
    ]
    batch = client.score(chats, [DOUBLE] * len(chats))
    assert batch.rewards == [1, 0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 0]


def test_the_service_takes_the_same_message_of_a_chat(client: RewardClient, endpoint: LocalEndpoint) -> None:
    roles = [*sorted(OTHER_ROLES), "Tool", "assistant", "model", "gpt"]
    chats = [[{"role": "assistant", "content": WRONG}, {"role": role, "content": RIGHT}] for role in roles]
    samples = [{"task": "t", "completion": chat} for chat in chats]
    asked = endpoint.ask("POST", "/v1/rewards", json={"tasks": {"t": DOUBLE}, "samples": samples}).json()["rewards"]
    assert asked == [0] * (len(roles) - 3) + [1] * 3
    assert client.score(chats, [DOUBLE] * len(chats)).rewards == asked


def test_reasoning_in_tags_of_ones_own_is_left_out(client: RewardClient) -> None:
    completion = f"<plan>\n{WRONG}\n</plan>\n{RIGHT}"
    assert client.score([completion], [DOUBLE]).rewards == [0]
    assert client.score([completion], [DOUBLE], reasoning={"tags": ["plan"]}).rewards == [1]


DEGENERATE = [
    ("a megabyte of backticks", "`" * 1_000_000, "no_program", "too_large"),
    ("sixty megabytes", "x" * 60_000_000, "no_program", "too_large"),
    ("a program of 300 KiB", fence("x = 1\n" * 50_000), "no_program", "too_large"),
    ("a program of 100 KiB", fence("x = 1\n" * 17_000), "no_program", "too_large"),
    ("a lone surrogate in the program", fence("print('\ud800')"), "no_program", "not_text"),
    ("a lone surrogate beside it", f"\udc00\n{RIGHT}\n\ud800", "graded", None),
    ("null bytes", fence("print(1)\0"), "syntax_error", "null bytes"),
    ("null bytes beside it", f"\0\n{RIGHT}", "graded", None),
    ("a sum that parsers choke on", fence("print(" + "1+" * 3_000 + "1)"), None, None),
    ("brackets that parsers choke on", fence("print(" + "(" * 30_000), None, None),
    ("reasoning without end", "<think>" * 30_000, "no_program", "unclosed_reasoning"),
    ("nothing", "", "no_program", "no_fenced_block"),
    ("line separators of Unicode", fence("print('\u2028\x85\x0b')"), "graded", None),
]


def test_no_completion_ends_the_batch(client: RewardClient) -> None:
    completions = [completion for _, completion, _, _ in DEGENERATE]
    mixed = [text for completion in completions for text in (completion, RIGHT)]
    batch = client.score(mixed, [DOUBLE] * len(mixed), detail="output")
    assert batch.rewards[1::2] == [1] * len(completions), "the honest ones among them are right"
    for (what, _, status, reason), result in zip(DEGENERATE, batch.results[::2], strict=True):
        assert result.reward is not None and result.fault is None, what
        if status is not None:
            assert result.status == status, what
            assert (reason or "") in (result.reason or ""), what


def test_each_task_is_sent_once(endpoint: LocalEndpoint, proxy: FaultyProxy) -> None:
    other = {"test_cases": [{"input": "", "output": '"nothing"'}]}
    same = {"test_cases": [dict(reversed(case.items())) for case in DOUBLE["test_cases"]]}
    with RewardClient(proxy.url, endpoint.api_key) as client:
        batch = client.score([RIGHT, WRONG, RIGHT, RIGHT], [DOUBLE, other, dict(DOUBLE), same])
    assert batch.rewards == [1, 0, 1, 1]
    assert batch.usage.duplicates == 2
    [request] = proxy.requests("POST")
    assert [sample["task"] for sample in request.json["samples"]] == ["0", "1", "0", "0"]
    assert len(request.json["tasks"]) == 2


@pytest.mark.parametrize("detail", ["rewards", "verdicts", "output"])
def test_details_are_told_as_wanted(client: RewardClient, detail: str) -> None:
    batch = client.score([RIGHT, NOTHING], [DOUBLE] * 2, detail=detail)
    assert batch.rewards == [1, 0]
    assert [len(result.verdicts) for result in batch.results] == [0 if detail == "rewards" else 3, 0]
    assert [verdict.stdout for verdict in batch.results[0].verdicts] == {
        "rewards": [],
        "verdicts": [None] * 3,
        "output": ["4\n", "10\n", "0\n"],
    }[detail]


def test_options_reach_the_service(client: RewardClient) -> None:
    several = f"{WRONG}\n{RIGHT}"
    assert client.score([several], [DOUBLE]).rewards == [0]
    assert client.score([several], [DOUBLE], extraction="last").rewards == [1]
    assert client.score([RIGHT], [DOUBLE], reasoning="opened").results[0].reason == "unclosed_reasoning"


def test_a_call_without_completions_asks_for_nothing(proxy: FaultyProxy) -> None:
    with RewardClient(proxy.url, "any-key") as client:
        assert client.score([], []).rewards == []
    assert proxy.seen == []


def test_what_is_wrong_is_named_by_its_place_in_the_call(client: RewardClient) -> None:
    bad = {"test_cases": [{"input": "", "output": "1"}, {"input": "", "output": "{"}]}
    unknown = {"test_cases": [{"input": "", "output": "1"}], "time_limit": 3}
    with pytest.raises(InvalidRequestError) as caught:
        client.score([RIGHT] * 5, [DOUBLE, bad, DOUBLE, unknown, bad], extraction="middle")
    problems = {problem.pointer: problem for problem in caught.value.problems}
    assert set(problems) == {"/options/extraction", "/tasks/1/test_cases/1/output", "/tasks/3/time_limit"}
    assert problems["/tasks/1/test_cases/1/output"].samples == (1, 4)
    assert problems["/tasks/3/time_limit"].samples == (3,)
    assert "/tasks/3/time_limit" in str(caught.value)
    assert caught.value.code == "invalid_request" and caught.value.request_id


@pytest.mark.parametrize(
    ("completion", "task", "pointer"),
    [
        (4, DOUBLE, "/completions/1"),
        (None, DOUBLE, "/completions/1"),
        (RIGHT, "double", "/tasks/1"),
        (RIGHT, {"test_cases": {1, 2}}, "/tasks/1"),
        (RIGHT, {"limits": {"time_ms": float("nan")}}, "/tasks/1"),
    ],
)
def test_what_is_no_json_is_refused_here(client: RewardClient, completion, task, pointer: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        client.score([RIGHT, completion], [DOUBLE, task])
    assert [problem.pointer for problem in caught.value.problems] == [pointer]


def test_lists_of_different_lengths_are_refused(client: RewardClient) -> None:
    with pytest.raises(ValueError, match="2 completions need as many tasks, not 1"):
        client.score([RIGHT, RIGHT], [DOUBLE])


def test_a_closed_client_says_so(endpoint: LocalEndpoint) -> None:
    client = RewardClient(endpoint.url, endpoint.api_key)
    assert client.score([RIGHT], [DOUBLE]).rewards == [1]
    assert client.close() == []
    assert client.close() == [], "once more does no harm"
    with pytest.raises(RunFinishedError, match="closed"):
        client.score([RIGHT], [DOUBLE])


def test_settings_come_from_the_environment(endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MisconfiguredError, match=r"CODE_REWARDS_URL.*CODE_REWARDS_API_KEY"):
        RewardClient()
    monkeypatch.setenv("CODE_REWARDS_URL", f"{endpoint.url}/")
    monkeypatch.setenv("CODE_REWARDS_API_KEY", endpoint.api_key)
    with RewardClient() as client:
        assert client.score([RIGHT], [DOUBLE]).rewards == [1]


@pytest.mark.parametrize(
    ("url", "api_key", "message"),
    [
        ("127.0.0.1:8787", "key", "must start with http"),
        ("http://", "key", "must start with http"),
        ("http://127.0.0.1:1", "two words", "without blanks"),
        ("http://127.0.0.1:1", "schlüssel", "ASCII"),
    ],
)
def test_settings_that_cant_work_are_refused_at_once(url: str, api_key: str, message: str) -> None:
    with pytest.raises(MisconfiguredError, match=message):
        RewardClient(url, api_key)
