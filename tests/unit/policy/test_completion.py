"""Whether a job goes on after a run: the rows are named after the precedence of H.3 (M22, F.7)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.model.scalars import INT64_MAX
from jobman.model.spec import Classification, Completion, Delay, JobSpec, Limit
from jobman.model.state import Counters, Diagnostic, JobOutcome, Problem, Reason, RunExit, RunOutcome, StopReason
from jobman.model.transitions.running import Finish, Retry
from jobman.policy.completion import EndedRun, after_run
from tests.stores import plain_spec

NOW_NS = 1_000
MANY = Limit(9)
SUCCESS, FAILURE, TIMED_OUT = RunOutcome.SUCCESS, RunOutcome.FAILURE, RunOutcome.TIMED_OUT
PROBLEM = Problem(Diagnostic.TARGET_START_FAILED, "no such file")
ENDLESS = Completion(Limit(None), Limit(None), Limit(None))


def _spec(completion: Completion = ENDLESS, **changes: Any) -> JobSpec:
    return plain_spec(completion=completion, **changes)


def _ended(outcome: RunOutcome = FAILURE, code: int | None = 1, **changes: Any) -> EndedRun:
    exit_ = None if code is None else RunExit(5, code)
    success = outcome == SUCCESS
    counters = Counters(1, int(success), int(not success))
    return EndedRun(counters, outcome, exit_, None, None, NOW_NS)._replace(**changes)


_OK = _ended(SUCCESS, 0)
_ALL_REACHED = Completion(Limit(1), Limit(1), Limit(1), 0)


@pytest.mark.parametrize(
    ("spec", "ended", "outcome", "reason"),
    [
        pytest.param(
            _spec(_ALL_REACHED),
            _OK._replace(intent=StopReason.CANCELLATION, outcome=RunOutcome.CANCELLED),
            JobOutcome.CANCELLED,
            Reason.CANCELLATION,
            id="cancellation precedes everything",
        ),
        pytest.param(
            _spec(_ALL_REACHED),
            _OK._replace(intent=StopReason.TIMEOUT, outcome=TIMED_OUT),
            JobOutcome.TIMED_OUT,
            Reason.JOB_TIMEOUT,
            id="job timeout precedes success target",
        ),
        pytest.param(
            _spec(_ALL_REACHED),
            _ended(counters=Counters(3, 1, 2)),
            JobOutcome.SUCCESS,
            Reason.SUCCESS_TARGET,
            id="success target precedes non-retryable failure and limits",
        ),
        pytest.param(
            _spec(Completion(Limit(1), MANY, Limit(1), 0), classification=Classification(retryable_codes=())),
            _ended(),
            JobOutcome.FAILURE,
            Reason.NON_RETRYABLE_FAILURE,
            id="non-retryable failure precedes failure limit",
        ),
        pytest.param(
            _spec(Completion(Limit(1), MANY, Limit(1), 0)),
            _ended(),
            JobOutcome.FAILURE,
            Reason.FAILURE_LIMIT,
            id="failure limit precedes run limit",
        ),
        pytest.param(
            _spec(Completion(Limit(1), MANY, MANY, 0)),
            _ended(),
            JobOutcome.FAILURE,
            Reason.RUN_LIMIT,
            id="run limit precedes retry deadline",
        ),
        pytest.param(
            _spec(Completion(Limit(1), MANY, MANY)),
            _OK,
            JobOutcome.FAILURE,
            Reason.RUN_LIMIT,
            id="run limit without the success target is a failure, even of successes",
        ),
        pytest.param(
            _spec(ENDLESS._replace(retry_abort_at_ns=NOW_NS - 1)),
            _ended(),
            JobOutcome.ABORTED,
            Reason.RETRY_DEADLINE,
            id="retry deadline has passed",
        ),
        pytest.param(
            _spec(ENDLESS._replace(retry_abort_at_ns=NOW_NS + 9), failure_delay=Delay(10)),
            _ended(),
            JobOutcome.ABORTED,
            Reason.RETRY_DEADLINE,
            id="retry deadline would pass during the delay",
        ),
        pytest.param(
            _spec(), _ended(TIMED_OUT), JobOutcome.FAILURE, Reason.NON_RETRYABLE_FAILURE, id="run timeout without retry"
        ),
        pytest.param(
            _spec(),
            _ended(RunOutcome.START_FAILED, None),
            JobOutcome.FAILURE,
            Reason.NON_RETRYABLE_FAILURE,
            id="failed start without retry",
        ),
        pytest.param(plain_spec(), _OK, JobOutcome.SUCCESS, Reason.SUCCESS_TARGET, id="one run is enough by default"),
        pytest.param(plain_spec(), _ended(), JobOutcome.FAILURE, Reason.FAILURE_LIMIT, id="one failure is, too"),
    ],
)
def test_a_job_is_over(spec: JobSpec, ended: EndedRun, outcome: JobOutcome, reason: Reason) -> None:
    decided = after_run(spec, ended)
    assert isinstance(decided, Finish)
    assert (decided.outcome, decided.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("spec", "ended", "next_run_at_ns"),
    [
        pytest.param(_spec(), _ended(), None, id="no delay: at once"),
        pytest.param(_spec(), _OK, None, id="a success that is not enough"),
        pytest.param(_spec(failure_delay=Delay(10), success_delay=Delay(20)), _ended(), NOW_NS + 10, id="failing"),
        pytest.param(_spec(failure_delay=Delay(10), success_delay=Delay(20)), _OK, NOW_NS + 20, id="succeeding"),
        pytest.param(
            _spec(ENDLESS._replace(retry_abort_at_ns=NOW_NS + 10), failure_delay=Delay(10)),
            _ended(),
            NOW_NS + 10,
            id="exactly at the retry deadline",
        ),
        pytest.param(_spec(failure_delay=Delay(INT64_MAX)), _ended(), INT64_MAX, id="never beyond 64 bits"),
        pytest.param(
            _spec(failure_delay=Delay(10, jitter_ns=4), success_delay=Delay(10, jitter_ns=1_000)),
            _ended(draw=999),
            NOW_NS + 10 + 999 % 5 - 2,
            id="jitter is that of the delay that applies",
        ),
        pytest.param(
            _spec(classification=Classification(retry_timeout=True)), _ended(TIMED_OUT), None, id="timeout with retry"
        ),
        pytest.param(
            _spec(classification=Classification(retry_start_failure=True)),
            _ended(RunOutcome.START_FAILED, None),
            None,
            id="failed start with retry",
        ),
    ],
)
def test_another_run_is_due(spec: JobSpec, ended: EndedRun, next_run_at_ns: int | None) -> None:
    assert after_run(spec, ended) == Retry(next_run_at_ns)


def test_a_failure_takes_the_problem_of_its_run_along() -> None:
    """D24: the reason is stored with the job."""
    decided = after_run(_spec(), _ended(RunOutcome.START_FAILED, None, problem=PROBLEM))
    assert decided == Finish(JobOutcome.FAILURE, Reason.NON_RETRYABLE_FAILURE, PROBLEM)


def test_a_job_timeout_says_so() -> None:
    decided = after_run(_spec(), _ended(TIMED_OUT, None, intent=StopReason.TIMEOUT))
    assert isinstance(decided, Finish)
    assert decided.problem is not None
    assert decided.problem.code == Diagnostic.JOB_TIMEOUT


@given(runs=st.integers(1, 20), limit=st.integers(1, 20))
def test_the_run_limit_is_the_number_of_runs(runs: int, limit: int) -> None:
    ended = _ended(counters=Counters(runs, 0, runs))
    over = isinstance(after_run(_spec(Completion(Limit(limit), MANY, Limit(None))), ended), Finish)
    assert over == (runs >= limit)
