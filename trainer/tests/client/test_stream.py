"""Reading a streamed answer."""

from __future__ import annotations

import json

import pytest

from code_rewards import Fault, Result, UnavailableError, Verdict
from code_rewards.stream import AnswerReader

VERDICT = {"verdict": "runtime_error", "exit_code": 3, "wall_ms": 4.5, "cpu_ms": 3, "peak_rss_kib": 9000, "new": 1}
LINES = [
    {"type": "progress", "done": 0, "total": 3},
    {"type": "result", "index": 2, "reward": 0, "status": "no_program", "reason": "empty_block", "total": 1},
    {"type": "a later version's", "what": "ever"},
    {"type": "result", "index": 1, "reward": None, "fault": {"code": "starved", "detail": "d", "retryable": True}},
    {"type": "result", "index": 0, "reward": 0.5, "status": "graded", "passed": 1, "total": 2, "verdicts": [VERDICT]},
    {
        "type": "summary",
        "rewards": [0.5, None, 0],
        "usage": {"wall_ms": 7, "workers": 2, "worker_seconds_since_previous_batch": None, "new": 1},
    },
]
TEXT = "".join(json.dumps(line) + "\n" for line in LINES).encode()
RESULTS = {
    0: Result(
        reward=0.5,
        status="graded",
        passed=1,
        total=2,
        verdicts=(Verdict("runtime_error", wall_ms=4.5, cpu_ms=3, peak_rss_kib=9000, exit_code=3),),
    ),
    1: Result(reward=None, status="fault", fault=Fault("starved", "d", retryable=True)),
    2: Result(reward=0, status="no_program", reason="empty_block", total=1),
}


@pytest.mark.parametrize("bytes_at_a_time", [1, 2, 7, 10_000])
def test_lines_come_in_any_pieces(bytes_at_a_time: int) -> None:
    reader = AnswerReader(3)
    for start in range(0, len(TEXT), bytes_at_a_time):
        reader.feed(TEXT[start : start + bytes_at_a_time])
    usage = reader.finish()
    assert reader.results == RESULTS and reader.done == 3
    assert (usage.wall_ms, usage.workers, usage.worker_seconds_since_previous_batch) == (7, 2, 0)


@pytest.mark.parametrize("length", range(0, len(TEXT), 37))
def test_every_beginning_of_an_answer_is_a_cut_one(length: int) -> None:
    reader = AnswerReader(3)
    reader.feed(TEXT[:length])
    with pytest.raises(UnavailableError, match="cut off"):
        reader.finish()


def test_other_line_breaks_do_not_end_a_line() -> None:
    line = json.dumps({"type": "result", "index": 0, "reward": 0, "reason": "a\u2028b\x85c\x0b"}, ensure_ascii=False)
    reader = AnswerReader(1)
    reader.feed(line.encode() + b"\r\n")
    assert reader.results[0].reason == "a\u2028b\x85c\x0b"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "result", "index": 0, "reward": None},
        {"type": "result", "index": 0, "reward": None, "status": "graded"},
        {"type": "result", "index": 0, "reward": 0, "status": "fault", "fault": {"code": "worker_lost"}},
    ],
)
def test_a_fault_is_never_a_number(line: dict) -> None:
    reader = AnswerReader(1)
    reader.feed(json.dumps(line).encode() + b"\n")
    result = reader.results[0]
    assert (result.reward, result.status) == (None, "fault") and result.fault is not None


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        b"\xff",
        b"[" * 200_000,
        b'{"type":"result","reward":1}',
        b'{"type":"result","index":3,"reward":1}',
        b'{"type":"result","index":-1,"reward":1}',
        b'{"type":"result","index":0,"reward":"1.5"}',
        b'{"type":"result","index":0,"reward":NaN}',
        b'{"type":"result","index":0,"reward":-0.1}',
        b'{"type":"result","index":0,"reward":1,"verdicts":[{}]}',
        b'{"type":"summary"}',
    ],
)
def test_what_is_no_answer_is_a_fault_of_the_way(line: bytes) -> None:
    reader = AnswerReader(3)
    with pytest.raises(UnavailableError, match="can't be read"):
        reader.feed(line + b"\n")
