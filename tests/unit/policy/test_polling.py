"""Polling is a budget of the whole store (architecture, Polling; M40, D41; ADR 9)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.policy import polling
from jobman.policy.polling import DRAW_RANGE, interval_ns

MILLISECOND = 1_000_000
supervisors = st.integers(0, 10_000)
draws = st.integers(0, DRAW_RANGE - 1)
moments = st.integers(0, 2**62)


def next_look_ns(now_ns: int, count: int, draw: int) -> int:
    """Return the next look of one who draws ``draw``."""
    return polling.next_look_ns(now_ns, count, lambda: draw)


@pytest.mark.parametrize(
    ("count", "milliseconds"),
    [(0, 100), (1, 100), (6, 100), (7, 105), (50, 750), (166, 2_490), (167, 2_500), (10**9, 2_500)],
)
def test_the_interval_grows_with_the_supervisors(count: int, milliseconds: int) -> None:
    assert interval_ns(count) == milliseconds * MILLISECOND


@given(moments, st.integers(0, 50), draws)
def test_few_supervisors_look_at_the_next_tick(now_ns: int, count: int, draw: int) -> None:
    """A lost wake-up costs an interval at most."""
    assert 0 < next_look_ns(now_ns, count, draw) - now_ns <= interval_ns(count)


@given(moments, st.integers(51, 10_000), draws)
def test_many_look_after_an_interval_give_or_take_a_tenth_and_half_a_tick(now_ns: int, count: int, draw: int) -> None:
    interval, half_a_tick = interval_ns(count), 375 * MILLISECOND
    away = next_look_ns(now_ns, count, draw) - now_ns
    assert interval * 9 // 10 - half_a_tick <= away <= interval * 11 // 10 + half_a_tick


@given(moments, supervisors, draws, draws)
def test_supervisors_share_their_ticks(now_ns: int, count: int, one: int, other: int) -> None:
    """Whatever the moment and the draw, two looks are whole ticks apart."""
    tick = min(interval_ns(count), 750 * MILLISECOND)
    assert next_look_ns(now_ns, count, one) % tick == 0
    assert (next_look_ns(now_ns, count, one) - next_look_ns(now_ns + tick // 3, count, other)) % tick == 0


def test_few_supervisors_draw_nothing() -> None:
    """D41: a look of one that waits alone costs two system calls, not three."""

    def draw() -> int:
        raise AssertionError("the draw is thrown away")

    assert polling.next_look_ns(0, 50, draw) == 750 * MILLISECOND


def test_one_that_looks_at_a_tick_keeps_its_interval() -> None:
    now_ns = 7_500 * MILLISECOND + 3 * MILLISECOND
    assert {next_look_ns(now_ns, 1, draw) for draw in range(0, DRAW_RANGE, 64)} == {7_600 * MILLISECOND}
    assert {next_look_ns(now_ns, 50, draw) for draw in range(0, DRAW_RANGE, 64)} == {8_250 * MILLISECOND}


def test_draws_spread_those_that_were_started_together() -> None:
    started_ns = 7_625 * MILLISECOND
    looks = Counter(next_look_ns(started_ns, 500, draw) for draw in range(DRAW_RANGE))
    assert set(looks) == {9_750 * MILLISECOND, 10_500 * MILLISECOND}
    assert min(looks.values()) > DRAW_RANGE // 3
