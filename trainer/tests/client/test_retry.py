"""When a request is sent again."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from code_rewards.answers import read_retry_after
from code_rewards.retry import Patience, RetryPolicy


def patience(**policy: float) -> Patience:
    return Patience(RetryPolicy(**policy), began_s=1_000)


def test_waits_are_drawn_from_a_doubling_range() -> None:
    whole = patience()
    assert [whole.next_wait_s(1_000, 1.0) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 20, 20]
    half = patience()
    assert [half.next_wait_s(1_000, 0.5) for _ in range(3)] == [0.25, 0.5, 1]
    assert patience().next_wait_s(1_000, 0.0) == 0


def test_after_a_success_the_next_failure_is_a_first_one() -> None:
    waiting = patience()
    for _ in range(5):
        waiting.next_wait_s(1_000, 1.0)
    waiting.succeed()
    assert waiting.next_wait_s(1_000, 1.0) == 0.5


def test_what_the_service_asks_for_comes_before_the_draw() -> None:
    assert patience().next_wait_s(1_000, 1.0, retry_after_s=30) == 30.5
    assert patience().next_wait_s(1_000, 0.0, retry_after_s=30) == 30
    assert patience().next_wait_s(1_000, 0.0, retry_after_s=86_400) == 120, "no answer stops a run for hours"


@pytest.mark.parametrize(
    ("policy", "lost_s", "now_s", "is_spent"),
    [
        ({}, 0, 1_899, False),
        ({}, 0, 1_900, True),
        ({"deadline_s": 100}, 0, 1_100, True),
        ({"fault_budget_s": 100}, 99, 1_500, False),
        ({"fault_budget_s": 100}, 100, 1_500, True),
        ({"fault_budget_s": 0}, 0, 1_000, True),
    ],
)
def test_patience_ends(policy: dict[str, float], lost_s: float, now_s: float, is_spent: bool) -> None:
    waiting = patience(**policy)
    waiting.lose(lost_s)
    assert (waiting.next_wait_s(now_s, 0.0) is None) is is_spent


def test_waiting_spends_the_budget_and_grading_does_not() -> None:
    waiting = patience(fault_budget_s=100)
    assert waiting.next_wait_s(1_000, 0.0, retry_after_s=60) == 60
    assert waiting.next_wait_s(1_800, 0.0, retry_after_s=39) == 39, "what went well in between costs nothing"
    assert waiting.next_wait_s(1_850, 0.0, retry_after_s=1) is None


def test_a_wait_that_ends_too_late_is_not_begun() -> None:
    waiting = patience(deadline_s=100)
    assert waiting.next_wait_s(1_090, 0.0, retry_after_s=9) == 9
    assert waiting.next_wait_s(1_090, 0.0, retry_after_s=10) is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7),
        (" 0 ", 0),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("1e9", None),
        ("9" * 400, 999999999),
    ],
)
def test_retry_after_has_seconds(header: str | None, seconds: float | None) -> None:
    assert read_retry_after(header) == seconds


def test_retry_after_may_be_a_date() -> None:
    assert read_retry_after(formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=2)
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
