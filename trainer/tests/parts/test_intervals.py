"""How sure a mean is."""

from __future__ import annotations

import pytest

from code_rewards.intervals import difference_of, interval_of


@pytest.mark.parametrize(
    ("rewards", "low", "high"),
    [
        # Wilson's intervals, as R's binom.wilson has them.
        ([1] * 8 + [0] * 8, 0.2799, 0.7201),
        ([0] * 16, 0.0, 0.1936),
        ([1] * 16, 0.8064, 1.0),
        ([0.5] * 10, 0.2366, 0.7634),
    ],
)
def test_interval(rewards: list[float], low: float, high: float) -> None:
    found = interval_of(rewards)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))
    assert found.samples == len(rewards)


def test_samples_without_a_reward_are_left_out() -> None:
    assert interval_of([1, None, 1]) == interval_of([1, 1])
    assert interval_of([None]) is None


def test_a_change_that_may_be_chance_has_zero_in_its_interval() -> None:
    low, high, same = interval_of([0] * 16), interval_of([1] * 16), interval_of([0] * 15 + [1])
    assert low and high and same
    assert difference_of(low, high).low > 0.5
    assert difference_of(high, low).high < -0.5
    assert difference_of(low, same).low < 0 < difference_of(low, same).high
