"""What people see while a batch is graded."""

from __future__ import annotations

import io
import sys

import pytest

from code_rewards import RewardClient
from endpoint import LocalEndpoint
from programs import DOUBLE, NOTHING, RIGHT


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool, is_gone: bool = False) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.is_gone = is_gone

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        if self.is_gone:
            raise OSError("the terminal has gone")
        return super().write(text)


@pytest.mark.parametrize(
    ("is_terminal", "wanted", "is_shown"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
def test_a_bar_is_shown_on_a_terminal_or_on_demand(
    endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch, is_terminal: bool, wanted: bool | None, is_shown: bool
) -> None:
    screen = Screen(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with RewardClient(endpoint.url, endpoint.api_key, progress=wanted) as client:
        assert client.score([RIGHT, NOTHING], [DOUBLE] * 2).rewards == [1, 0]
    shown = screen.getvalue()
    assert ("2/2" in shown) is is_shown
    assert shown == "" or shown.endswith("\r\x1b[K"), "it is erased at the end"


def test_other_ranks_show_none(endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(is_terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("RANK", "1")
    with RewardClient(endpoint.url, endpoint.api_key) as client:
        assert client.score([RIGHT], [DOUBLE]).rewards == [1]
    assert screen.getvalue() == ""


@pytest.mark.parametrize("screen", [None, Screen(is_terminal=True, is_gone=True)])
def test_a_terminal_that_is_not_there_costs_no_batch(
    endpoint: LocalEndpoint, monkeypatch: pytest.MonkeyPatch, screen: Screen | None
) -> None:
    monkeypatch.setattr(sys, "stderr", screen)
    with RewardClient(endpoint.url, endpoint.api_key) as client:
        assert client.score([RIGHT], [DOUBLE]).rewards == [1]
