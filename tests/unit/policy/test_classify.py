"""What the end of a run means (F.4, H.3)."""

from __future__ import annotations

import pytest

from jobman.model.spec import Classification, ExitCodeRange
from jobman.model.state import RunExit, RunOutcome, StopReason
from jobman.policy.classify import is_retryable, is_success, recorded_exit, run_outcome
from tests.moves import SITUATIONS

CANCEL, TIMEOUT = StopReason.CANCELLATION, StopReason.TIMEOUT
ZERO, THREE = RunExit(5, exit_code=0), RunExit(5, exit_code=3)
KILLED, UNSEEN = RunExit(5, signal="killed"), RunExit(5, platform_reason="process_wait_failed")


@pytest.mark.parametrize(
    ("intent", "stop", "start_failed", "exit_", "outcome"),
    [
        pytest.param(CANCEL, CANCEL, False, ZERO, RunOutcome.CANCELLED, id="cancellation precedes a success"),
        pytest.param(CANCEL, TIMEOUT, False, ZERO, RunOutcome.CANCELLED, id="cancellation precedes a run timeout, D10"),
        pytest.param(CANCEL, CANCEL, True, None, RunOutcome.CANCELLED, id="cancellation precedes a failed start"),
        pytest.param(TIMEOUT, TIMEOUT, False, ZERO, RunOutcome.TIMED_OUT, id="job timeout precedes a success"),
        pytest.param(TIMEOUT, None, True, None, RunOutcome.TIMED_OUT, id="job timeout precedes a failed start"),
        pytest.param(None, TIMEOUT, False, ZERO, RunOutcome.TIMED_OUT, id="run timeout precedes a success"),
        pytest.param(None, TIMEOUT, True, None, RunOutcome.TIMED_OUT, id="run timeout precedes a failed start"),
        pytest.param(None, None, True, None, RunOutcome.START_FAILED, id="failed start"),
        pytest.param(None, None, False, None, RunOutcome.START_FAILED, id="no process, no exit"),
        pytest.param(None, None, False, ZERO, RunOutcome.SUCCESS, id="success"),
        pytest.param(None, None, False, THREE, RunOutcome.FAILURE, id="another code"),
        pytest.param(None, None, False, KILLED, RunOutcome.FAILURE, id="a signal is a failure"),
        pytest.param(None, None, False, UNSEEN, RunOutcome.FAILURE, id="an end that nobody saw is a failure"),
    ],
)
def test_the_outcome_is_judged_in_the_order_of_f_4(  # noqa: PLR0917  # one row of the table
    intent: StopReason | None,
    stop: StopReason | None,
    start_failed: bool,  # noqa: FBT001  # one row of the table
    exit_: RunExit | None,
    outcome: RunOutcome,
) -> None:
    job, run = SITUATIONS["running"].job._replace(intent=intent), SITUATIONS["running"].run
    assert run is not None
    found = run_outcome(
        job, run._replace(stop_reason=stop), start_failed=start_failed, exit_=exit_, rules=Classification()
    )
    assert found == outcome


@pytest.mark.parametrize(
    ("codes", "exit_", "success"),
    [
        pytest.param((0,), ZERO, True, id="zero by default"),
        pytest.param(None, ZERO, True, id="no list means zero"),
        pytest.param(None, THREE, False, id="no list means only zero"),
        pytest.param((), ZERO, False, id="an empty list means none"),
        pytest.param((3, 4), THREE, True, id="a code in the list"),
        pytest.param((3, 4), ZERO, False, id="zero is nothing special (O.48)"),
        pytest.param((0,), KILLED, False, id="a signal is never a success"),
        pytest.param((0,), UNSEEN, False, id="an end that nobody saw is never a success"),
    ],
)
def test_success_is_a_code_in_the_list(codes: tuple[int, ...] | None, exit_: RunExit, success: bool) -> None:  # noqa: FBT001
    assert is_success(exit_, Classification(success_codes=codes)) is success


FAILED, TIMED_OUT, NO_START = RunOutcome.FAILURE, RunOutcome.TIMED_OUT, RunOutcome.START_FAILED
LISTED = Classification(retryable_codes=(ExitCodeRange(3, 5), ExitCodeRange(9, 9)))


@pytest.mark.parametrize(
    ("rules", "outcome", "exit_", "retryable"),
    [
        pytest.param(Classification(), FAILED, THREE, True, id="any failing code without a list"),
        pytest.param(Classification(()), FAILED, ZERO, False, id="zero that is no success"),
        pytest.param(LISTED, FAILED, THREE, True, id="first code of a range"),
        pytest.param(LISTED, FAILED, RunExit(5, 5), True, id="last code of a range"),
        pytest.param(LISTED, FAILED, RunExit(5, 9), True, id="second range"),
        pytest.param(LISTED, FAILED, RunExit(5, 6), False, id="between the ranges"),
        pytest.param(Classification(retryable_codes=()), FAILED, THREE, False, id="an empty list means none (O.37)"),
        pytest.param(Classification(), FAILED, KILLED, False, id="signal"),
        pytest.param(Classification(), FAILED, UNSEEN, False, id="unseen end"),
        pytest.param(Classification(), FAILED, None, False, id="no exit"),
        pytest.param(Classification(), RunOutcome.CANCELLED, THREE, False, id="cancelled"),
        pytest.param(Classification(), RunOutcome.LOST, None, False, id="lost"),
        pytest.param(Classification(), TIMED_OUT, KILLED, False, id="timeout without the flag"),
        pytest.param(Classification(retry_timeout=True), TIMED_OUT, KILLED, True, id="timeout with the flag"),
        pytest.param(Classification(retry_start_failure=True), TIMED_OUT, None, False, id="timeout, the other flag"),
        pytest.param(Classification(), NO_START, None, False, id="failed start without the flag"),
        pytest.param(Classification(retry_start_failure=True), NO_START, None, True, id="failed start with the flag"),
        pytest.param(Classification(retry_timeout=True), NO_START, None, False, id="failed start, the other flag"),
    ],
)
def test_what_may_be_tried_again(
    rules: Classification,
    outcome: RunOutcome,
    exit_: RunExit | None,
    retryable: bool,  # noqa: FBT001  # one row of the table
) -> None:
    assert is_retryable(outcome, exit_, rules) is retryable


@pytest.mark.parametrize("outcome", [RunOutcome.CANCELLED, RunOutcome.TIMED_OUT, RunOutcome.START_FAILED])
def test_a_run_that_was_stopped_keeps_no_exit_code(outcome: RunOutcome) -> None:
    """O.47: a fact replaces it."""
    assert recorded_exit(outcome, THREE) == RunExit(5, platform_reason="process_terminated")
    assert recorded_exit(outcome, KILLED) == KILLED
    assert recorded_exit(outcome, None) is None


@pytest.mark.parametrize("outcome", [RunOutcome.SUCCESS, RunOutcome.FAILURE])
def test_a_run_that_ended_by_itself_keeps_its_exit(outcome: RunOutcome) -> None:
    assert recorded_exit(outcome, THREE) == THREE
