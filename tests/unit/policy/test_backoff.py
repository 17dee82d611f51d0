"""How long to wait before another run (H.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.model.scalars import INT64_MAX
from jobman.model.spec import Backoff, Delay
from jobman.policy.backoff import delay_ns

NUMBERS = st.integers(1, 5) | st.integers(1, 2**63)
NANOSECONDS = st.integers(0, 100) | st.integers(0, INT64_MAX)
DELAYS = st.builds(
    Delay,
    NANOSECONDS,
    st.sampled_from(list(Backoff)),
    st.integers(1, 4) | st.integers(1, 2**31),
    st.none() | NANOSECONDS,
    NANOSECONDS,
)


@pytest.mark.parametrize(
    ("delay", "pauses"),
    [
        pytest.param(Delay(10), [10, 10, 10, 10], id="constant"),
        pytest.param(Delay(10, Backoff.LINEAR), [10, 20, 30, 40], id="linear"),
        pytest.param(Delay(10, Backoff.EXPONENTIAL), [10, 20, 40, 80], id="exponential"),
        pytest.param(Delay(10, Backoff.EXPONENTIAL, 3), [10, 30, 90, 270], id="exponential, base 3"),
        pytest.param(Delay(10, Backoff.EXPONENTIAL, 1), [10, 10, 10, 10], id="exponential, base 1"),
        pytest.param(Delay(10, Backoff.LINEAR, 2, 25), [10, 20, 25, 25], id="capped"),
        pytest.param(Delay(10, max_delay_ns=0), [0, 0, 0, 0], id="a cap of zero"),
        pytest.param(Delay(0, Backoff.EXPONENTIAL), [0, 0, 0, 0], id="none"),
    ],
)
def test_the_first_pauses(delay: Delay, pauses: list[int]) -> None:
    assert [delay_ns(delay, number) for number in range(1, 5)] == pauses


@given(DELAYS, NUMBERS, st.data())
def test_a_pause_lies_between_zero_and_the_cap_and_fits_into_64_bits(
    delay: Delay, number: int, data: st.DataObject
) -> None:
    pause = delay_ns(delay, number, data.draw(st.integers(0, delay.jitter_ns)))
    assert 0 <= pause <= (INT64_MAX if delay.max_delay_ns is None else delay.max_delay_ns)


@given(DELAYS, NUMBERS)
def test_pauses_never_shrink(delay: Delay, number: int) -> None:
    plain = delay._replace(jitter_ns=0)
    assert delay_ns(plain, number) <= delay_ns(plain, number + 1)


@pytest.mark.parametrize("backoff", [Backoff.LINEAR, Backoff.EXPONENTIAL])
def test_arithmetic_saturates(backoff: Backoff) -> None:
    assert delay_ns(Delay(2, backoff), 2**63) == INT64_MAX
    assert delay_ns(Delay(1, backoff, 2**31), 2**63) == INT64_MAX


def test_the_largest_exact_power_is_not_cut() -> None:
    assert delay_ns(Delay(1, Backoff.EXPONENTIAL, 2), 63) == 2**62
    assert delay_ns(Delay(1, Backoff.EXPONENTIAL, 2), 64) == INT64_MAX


@given(st.integers(0, 1_000), st.integers(1_000, 2_000))
def test_jitter_spreads_evenly_around_the_delay(half: int, base: int) -> None:
    """Over every possible draw the mean is the delay itself, and no draw is left out."""
    delay = Delay(base, jitter_ns=2 * half)
    pauses = [delay_ns(delay, 1, draw) for draw in range(2 * half + 1)]
    assert pauses == list(range(base - half, base + half + 1))
    assert sum(pauses) == base * len(pauses)


def test_jitter_never_makes_a_pause_negative_or_longer_than_the_cap() -> None:
    delay = Delay(10, max_delay_ns=12, jitter_ns=100)
    assert [delay_ns(delay, 1, draw) for draw in (0, 39, 40, 50, 52, 53, 100)] == [0, 0, 0, 10, 12, 12, 12]
