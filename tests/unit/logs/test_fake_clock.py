"""The shipped fake of the three clocks."""

from __future__ import annotations

import pytest

from jobman.testing import FakeClock


def test_time_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock(wall_ns=100, monotonic_ns=10)
    clock.advance(5)
    assert (clock.wall_ns(), clock.monotonic_ns(), clock.boottime_ns()) == (105, 15, 15)


def test_the_monotonic_clock_does_not_see_a_suspended_machine() -> None:
    clock = FakeClock(wall_ns=100, monotonic_ns=10)
    clock.sleep(5)
    assert (clock.wall_ns(), clock.monotonic_ns(), clock.boottime_ns()) == (105, 10, 15)


def test_setting_the_wall_clock_moves_no_other() -> None:
    clock = FakeClock(wall_ns=100, monotonic_ns=10)
    clock.set_wall(1)
    assert (clock.wall_ns(), clock.monotonic_ns(), clock.boottime_ns()) == (1, 10, 10)


def test_no_clock_is_advanced_into_the_past() -> None:
    with pytest.raises(ValueError, match="set_wall"):
        FakeClock().advance(-1)
