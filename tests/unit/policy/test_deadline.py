"""How much time is left (H.5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.policy.deadline import Budget


@pytest.mark.parametrize(
    ("budget", "due_ns"),
    [
        pytest.param(Budget(10, 100), 110, id="limit after start"),
        pytest.param(Budget(10, 100, 7), 117, id="paused time is given back"),
        pytest.param(Budget(0, 100, 7), None, id="zero is no limit"),
    ],
)
def test_a_budget_is_due(budget: Budget, due_ns: int | None) -> None:
    assert budget.due_ns() == due_ns


def test_a_budget_is_spent_when_the_limit_is_reached() -> None:
    assert [Budget(10, 100).is_spent(now) for now in (0, 109, 110, 111)] == [False, False, True, True]


@given(st.integers(0, 2**63))
def test_no_limit_is_never_spent(now_ns: int) -> None:
    assert not Budget(0, 0).is_spent(now_ns)
