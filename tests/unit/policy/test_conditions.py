"""Whether wait conditions hold, and what the store should learn of them (contract, H.2; C4, M14)."""

from __future__ import annotations

import pytest

from jobman.model.waits import FileKind, WaitCondition, WaitKind, WaitMode, Waits
from jobman.policy.conditions import (
    EVALUATION_ERROR,
    WRITE_EVERY_NS,
    ConditionState,
    Evaluation,
    abort_deadline_ns,
    elapsed,
    failed,
    hold,
)

DELAY = WaitCondition(WaitKind.DELAY, delay_ns=5)
UNTIL = WaitCondition(WaitKind.UNTIL, until_ns=100)
YES, NO = Evaluation(satisfied=True), Evaluation(satisfied=False)
ERROR = Evaluation(satisfied=False, code=EVALUATION_ERROR)
FATAL = Evaluation(satisfied=False, code=EVALUATION_ERROR, fatal=True)


def states(*evaluations: Evaluation | None) -> tuple[ConditionState, ...]:
    """Return conditions that were looked at once, or never."""
    fresh = (ConditionState(place, "delay") for place in range(len(evaluations)))
    pairs = zip(fresh, evaluations, strict=True)
    return tuple(state if evaluation is None else state.after(evaluation, 10) for state, evaluation in pairs)


@pytest.mark.parametrize(
    ("found", "of_all", "of_any"),
    [
        ((YES,), True, True),
        ((NO,), False, False),
        ((None,), False, False),
        ((YES, NO), False, True),
        ((YES, None), False, True),
        ((YES, ERROR), False, True),
        ((YES, YES), True, True),
        ((NO, NO), False, False),
    ],
)
def test_all_must_hold_or_any_one(found: tuple[Evaluation | None, ...], *, of_all: bool, of_any: bool) -> None:
    conditions = (DELAY,) * len(found)
    assert hold(Waits(WaitMode.ALL, conditions), states(*found)) is of_all
    assert hold(Waits(WaitMode.ANY, conditions), states(*found)) is of_any


@pytest.mark.parametrize("mode", WaitMode)
def test_no_condition_holds_nobody_back(mode: WaitMode) -> None:
    assert hold(Waits(mode), ())


def test_what_held_before_does_not_hold_now() -> None:
    (state,) = states(YES)
    later = state.after(NO, 20)
    assert not later.satisfied
    assert not hold(Waits(conditions=(DELAY,)), (later,))
    assert later.satisfied_at_ns == 10, "the first time is kept"
    assert later.after(YES, 30).satisfied_at_ns == 10


def test_the_first_that_failed_for_good_is_named() -> None:
    assert failed(states(YES, ERROR, NO, None)) is None
    found = states(YES, FATAL, FATAL)
    assert failed(found) == found[1]


def test_every_look_is_counted_and_an_answer_clears_an_error() -> None:
    (state,) = states(ERROR)
    assert (state.attempts, state.evaluated_at_ns, state.code) == (1, 10, EVALUATION_ERROR)
    assert state.after(NO, 20) == ConditionState(0, "delay", 2, 20)


NOTHING_NEW = ConditionState(0, "delay", 1, 0)


@pytest.mark.parametrize(
    ("now", "written", "worth"),
    [
        pytest.param(ConditionState(0, "delay"), None, False, id="never looked at"),
        pytest.param(NOTHING_NEW, None, True, id="never written"),
        pytest.param(NOTHING_NEW.after(NO, WRITE_EVERY_NS - 1), NOTHING_NEW, False, id="not yet a second"),
        pytest.param(NOTHING_NEW.after(NO, WRITE_EVERY_NS), NOTHING_NEW, True, id="a second"),
        pytest.param(NOTHING_NEW.after(YES, 1), NOTHING_NEW, True, id="it holds"),
        pytest.param(NOTHING_NEW.after(ERROR, 1), NOTHING_NEW, True, id="an error"),
        pytest.param(NOTHING_NEW.after(FATAL, 1), NOTHING_NEW.after(ERROR, 1), True, id="an error that is fatal"),
        pytest.param(NOTHING_NEW.after(NO, 2), NOTHING_NEW.after(ERROR, 1), True, id="an error that is over"),
        pytest.param(NOTHING_NEW.after(ERROR, 2), NOTHING_NEW.after(ERROR, 1), False, id="the same error"),
        pytest.param(NOTHING_NEW.after(YES, 1).after(YES, 2), NOTHING_NEW.after(YES, 1), False, id="it holds still"),
    ],
)
def test_news_is_written_at_once_and_repetitions_once_a_second(
    now: ConditionState, written: ConditionState | None, *, worth: bool
) -> None:
    assert now.worth_writing(written) is worth


def test_the_earliest_deadline_counts_whatever_the_mode() -> None:
    path = WaitCondition(WaitKind.FILE_EXISTS, path="/x", file_kind=FileKind.ANY)
    assert abort_deadline_ns(Waits()) is None
    assert abort_deadline_ns(Waits(conditions=(DELAY, path))) is None
    for mode in WaitMode:
        waits = Waits(mode, (DELAY, path._replace(abort_at_ns=9), UNTIL._replace(abort_at_ns=7)))
        assert abort_deadline_ns(waits) == 7
    assert abort_deadline_ns(Waits(conditions=(DELAY._replace(abort_at_ns=0),))) == 0


def test_a_time_is_of_the_wall_clock_and_a_delay_runs_from_the_claim() -> None:
    assert not elapsed(UNTIL, wall_ns=99, since_claim_ns=1000)
    assert elapsed(UNTIL, wall_ns=100, since_claim_ns=0)
    assert not elapsed(DELAY, wall_ns=1000, since_claim_ns=4)
    assert elapsed(DELAY, wall_ns=0, since_claim_ns=5)
    assert elapsed(DELAY._replace(delay_ns=0), wall_ns=0, since_claim_ns=0)
    assert elapsed(UNTIL._replace(until_ns=0), wall_ns=0, since_claim_ns=0), "1970 is a time"
