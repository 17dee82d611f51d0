"""Polling is a budget of the whole store (architecture, Polling; M40, D41)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.policy.polling import DRAW_RANGE, interval_ns

MIDDLE = DRAW_RANGE // 2


@pytest.mark.parametrize(
    ("supervisors", "milliseconds"),
    [(0, 100), (1, 100), (20, 100), (21, 105), (100, 500), (499, 2_495), (500, 2_500), (501, 2_500), (10**9, 2_500)],
)
def test_the_interval_grows_with_the_supervisors(supervisors: int, milliseconds: int) -> None:
    assert interval_ns(supervisors, MIDDLE) == milliseconds * 1_000_000


@given(st.integers(0, 10_000), st.integers(0, DRAW_RANGE - 1))
def test_draws_spread_it_by_ten_percent(supervisors: int, draw: int) -> None:
    middle = interval_ns(supervisors, MIDDLE)
    assert middle * 9 // 10 <= interval_ns(supervisors, draw) < middle * 11 // 10


def test_the_draws_use_the_whole_range() -> None:
    assert interval_ns(1, 0) == 90_000_000
    assert interval_ns(1, DRAW_RANGE - 1) > 109_990_000
