"""What follows an attempt: the order of reasons, the pauses, the budget (contract, L.4; D5)."""

from __future__ import annotations

import pytest

from jobman.model.notifiers import RetryPolicy
from jobman.policy.delivery import (
    DeliveryStatus,
    FailureCode,
    Result,
    Verdict,
    after_attempt,
    outlasts_budget,
    retry_delay_ns,
)
from tests.notifiers import HOOK

SECOND = 1_000_000_000
RETRY = RetryPolicy(3, SECOND, 10 * SECOND)
NOW, DEADLINE = 100 * SECOND, 160 * SECOND
REFUSED = Result(FailureCode.REJECTED, retryable=True)


@pytest.mark.parametrize(
    ("result", "attempt", "now_ns", "verdict"),
    [
        pytest.param(Result(), 3, DEADLINE, Verdict(DeliveryStatus.SUCCEEDED), id="what has arrived has arrived"),
        pytest.param(
            REFUSED._replace(retryable=False),
            1,
            NOW,
            Verdict(DeliveryStatus.FAILED, code=FailureCode.REJECTED),
            id="a permanent failure precedes the attempts that are left",
        ),
        pytest.param(
            REFUSED, 3, NOW, Verdict(DeliveryStatus.FAILED, code=FailureCode.REJECTED), id="attempts precede the budget"
        ),
        pytest.param(REFUSED, 1, NOW, Verdict(DeliveryStatus.PENDING, NOW + SECOND), id="first retry"),
        pytest.param(REFUSED, 2, NOW, Verdict(DeliveryStatus.PENDING, NOW + 2 * SECOND), id="second retry"),
        pytest.param(
            REFUSED,
            1,
            DEADLINE - SECOND,
            Verdict(DeliveryStatus.FAILED, code=FailureCode.BUDGET_EXHAUSTED),
            id="nothing begins at the deadline",
        ),
        pytest.param(
            REFUSED._replace(retry_after_ns=5 * SECOND),
            1,
            NOW,
            Verdict(DeliveryStatus.PENDING, NOW + 5 * SECOND),
            id="a pause that is asked for",
        ),
        pytest.param(
            REFUSED._replace(retry_after_ns=3600 * SECOND),
            1,
            NOW,
            Verdict(DeliveryStatus.PENDING, NOW + 10 * SECOND),
            id="a pause that is asked for is capped",
        ),
    ],
)
def test_what_follows_an_attempt(result: Result, attempt: int, now_ns: int, verdict: Verdict) -> None:
    assert after_attempt(result, attempt, RETRY, now_ns=now_ns, deadline_ns=DEADLINE) == verdict


def test_pauses_double_up_to_the_cap_and_never_overflow() -> None:
    assert [retry_delay_ns(RETRY, attempt) // SECOND for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert retry_delay_ns(RetryPolicy(100, SECOND, 0), 100) == 2**63 - 1


@pytest.mark.parametrize(("seconds", "outlasts"), [(3, True), (4, False)])
def test_a_policy_outlasts_its_budget_when_its_last_attempt_can_never_take_place(
    seconds: int, *, outlasts: bool
) -> None:
    assert outlasts_budget(HOOK._replace(retry=RETRY, budget_ns=seconds * SECOND)) is outlasts
