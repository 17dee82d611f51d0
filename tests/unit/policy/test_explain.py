"""Why a job is where it is, in words (D36)."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.model.spec import Dependency
from jobman.model.state import (
    Counters,
    Diagnostic,
    Job,
    JobOutcome,
    JobPhase,
    Problem,
    Reason,
    Run,
    RunExit,
    RunOutcome,
)
from jobman.policy.conditions import ConditionState
from jobman.policy.decide import ASKED_TO_END
from jobman.policy.explain import Background, explain
from jobman.policy.waiting import DependencyState
from tests.moves import EPOCH_NS, SECOND_NS, SITUATIONS, derived_id

NOW_NS = EPOCH_NS + 100 * SECOND_NS
NO_FILE = Problem(Diagnostic.EXECUTABLE_NOT_FOUND, "trian: no such command")
_RUN = SITUATIONS["running"].run
assert _RUN is not None


def _job(situation: str = "completed", **changes: Any) -> Job:
    return SITUATIONS[situation].job._replace(**changes)


def _over(outcome: JobOutcome, reason: str, problem: Problem | None = None) -> Job:
    return _job(outcome=outcome, waiting_reason=reason, problem=problem)


def _run(outcome: RunOutcome, exit_: RunExit | None = None, problem: Problem | None = None) -> Run:
    assert _RUN is not None
    return _RUN._replace(outcome=outcome, exit=exit_, problem=problem)


def _edge(name: str, phase: JobPhase, outcome: JobOutcome | None = None) -> DependencyState:
    return DependencyState(Dependency(derived_id(name, "job", 1), "success"), name, phase, 1, outcome)


EXIT_2, KILLED = RunExit(NOW_NS, 2), RunExit(NOW_NS, signal="killed")
FAILED = _over(JobOutcome.FAILURE, Reason.FAILURE_LIMIT)
BACKOFF = _job("backoff", counters=Counters(1, 0, 1), next_run_at_ns=NOW_NS + 12 * SECOND_NS)


@pytest.mark.parametrize(
    ("job", "run", "words"),
    [
        pytest.param(_job("submitting"), None, "", id="submitting"),
        pytest.param(_job("starting, claimed"), None, "", id="starting"),
        pytest.param(_job("running"), _RUN, "", id="running"),
        pytest.param(_job("paused, running"), _RUN, "", id="paused"),
        pytest.param(_job("queued"), None, "waiting for slots", id="queued"),
        pytest.param(BACKOFF, _run(RunOutcome.FAILURE, EXIT_2), "retry 1 in 12s after exit 2", id="backoff"),
        pytest.param(BACKOFF, None, "run 2 in 12s", id="backoff, run unknown"),
        pytest.param(
            BACKOFF._replace(next_run_at_ns=NOW_NS + 1),
            _run(RunOutcome.FAILURE, KILLED),
            "retry 1 in 1s after signal: killed",
            id="backoff, the last nanosecond",
        ),
        pytest.param(BACKOFF._replace(next_run_at_ns=NOW_NS - 5), None, "run 2 in 0s", id="backoff, overdue"),
        pytest.param(_job("stopping, cancelled"), _RUN, "stopping: cancelled", id="stopping, cancelled"),
        pytest.param(
            _job("stopping, cancelled"),
            _RUN._replace(problem=Problem(Diagnostic.TARGET_CANNOT_BE_KILLED, "tar (pid 7) survives SIGKILL")),
            "stopping: cancelled; tar (pid 7) survives SIGKILL",
            id="stopping in vain",
        ),
        pytest.param(_job("stopping, run timeout"), _RUN, "stopping: run timeout", id="stopping, run timeout"),
        pytest.param(_job("stopping, job timeout"), _RUN, "stopping: job timeout", id="stopping, job timeout"),
        pytest.param(
            _job("stopping, cancelled", waiting_reason=ASKED_TO_END),
            _RUN,
            f"stopping: {ASKED_TO_END}",
            id="session end",
        ),
        pytest.param(_over(JobOutcome.SUCCESS, Reason.SUCCESS_TARGET), _run(RunOutcome.SUCCESS), "", id="success"),
        pytest.param(FAILED, _run(RunOutcome.FAILURE, EXIT_2), "exit 2", id="failure by code"),
        pytest.param(FAILED, _run(RunOutcome.FAILURE, KILLED), "signal: killed", id="failure by signal"),
        pytest.param(FAILED, _run(RunOutcome.TIMED_OUT, KILLED), "run timeout", id="failure by run timeout"),
        pytest.param(
            _over(JobOutcome.FAILURE, Reason.NON_RETRYABLE_FAILURE, NO_FILE),
            _run(RunOutcome.START_FAILED, None, NO_FILE),
            "trian: no such command",
            id="failed start (D24)",
        ),
        pytest.param(FAILED, _run(RunOutcome.START_FAILED), "start_failed", id="failed start, reason unknown"),
        pytest.param(
            _over(JobOutcome.FAILURE, Reason.RUN_LIMIT),
            _run(RunOutcome.SUCCESS, RunExit(NOW_NS, 0)),
            "run limit reached",
            id="failure although the last run succeeded",
        ),
        pytest.param(_over(JobOutcome.CANCELLED, Reason.CANCELLATION), None, "cancelled", id="cancelled"),
        pytest.param(
            _over(JobOutcome.CANCELLED, Reason.CANCELLATION, Problem(Diagnostic.DESCENDANTS_LEFT, "left")),
            None,
            "cancelled",
            id="cancelled, although something was left",
        ),
        pytest.param(_over(JobOutcome.CANCELLED, ASKED_TO_END), None, ASKED_TO_END, id="cancelled by session end"),
        pytest.param(
            _over(JobOutcome.ABORTED, Reason.RETRY_DEADLINE),
            _run(RunOutcome.FAILURE, EXIT_2),
            "retry deadline reached",
            id="aborted by retry deadline",
        ),
        pytest.param(
            _over(JobOutcome.ABORTED, "dependency_unsatisfied", Problem(Diagnostic.DEPENDENCY_UNSATISFIED, "because")),
            None,
            "because",
            id="aborted by dependency",
        ),
        pytest.param(
            _over(
                JobOutcome.TIMED_OUT, Reason.JOB_TIMEOUT, Problem(Diagnostic.JOB_TIMEOUT, "the job used up its time")
            ),
            _run(RunOutcome.TIMED_OUT, KILLED),
            "the job used up its time",
            id="timed out",
        ),
        pytest.param(
            _over(JobOutcome.LOST, "x", Problem(Diagnostic.SUPERVISOR_LEASE_EXPIRED, "its supervisor has ended")),
            None,
            "its supervisor has ended",
            id="lost",
        ),
    ],
)
def test_the_reason_in_words(job: Job, run: Run | None, words: str) -> None:
    assert explain(job, Background(run), NOW_NS) == words


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        pytest.param((), "", id="none"),
        pytest.param((_edge("prepare_data", JobPhase.RUNNING),), "waiting for prepare_data (running)", id="one"),
        pytest.param(
            (
                _edge("done", JobPhase.COMPLETED, JobOutcome.SUCCESS),
                _edge("a", JobPhase.QUEUED),
                _edge("b", JobPhase.RUNNING),
                _edge("c", JobPhase.RUNNING),
            ),
            "waiting for a (queued) and 2 more",
            id="several",
        ),
        pytest.param((_edge("done", JobPhase.COMPLETED, JobOutcome.SUCCESS),), "", id="all have ended"),
    ],
)
def test_a_waiting_job_names_what_it_waits_for(edges: tuple[DependencyState, ...], words: str) -> None:
    assert explain(_job("waiting"), Background(dependencies=edges), NOW_NS) == words


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        pytest.param((ConditionState(0, "until", 1),), "waiting for a time", id="time"),
        pytest.param((ConditionState(0, "delay", 1),), "waiting for a delay", id="delay"),
        pytest.param((ConditionState(0, "file_exists", 1),), "waiting for a path to exist", id="path"),
        pytest.param(
            (
                ConditionState(0, "delay", 1, satisfied_at_ns=NOW_NS),
                ConditionState(1, "probe", 1, code="probe_timeout"),
            ),
            "waiting for a probe to succeed (probe_timeout)",
            id="the first that never held, with its code",
        ),
        pytest.param(
            (ConditionState(0, "file_exists", 1, satisfied_at_ns=NOW_NS),),
            "waiting for a path to exist again",
            id="it has held, and does not now",
        ),
        pytest.param(
            tuple(ConditionState(place, "file_exists", 1, satisfied_at_ns=NOW_NS) for place in range(2)),
            "waiting for all conditions to hold at the same moment",
            id="each has held, and not all do now",
        ),
        pytest.param((), "", id="none has been looked at"),
    ],
)
def test_a_job_held_back_by_conditions_names_the_first(conditions: tuple[ConditionState, ...], words: str) -> None:
    assert explain(_job("waiting"), Background(conditions=conditions), NOW_NS) == words


def test_dependencies_are_named_before_conditions() -> None:
    background = Background(dependencies=(_edge("a", JobPhase.RUNNING),), conditions=(ConditionState(0, "delay", 1),))
    assert explain(_job("waiting"), background, NOW_NS) == "waiting for a (running)"


def test_a_queued_job_gives_its_place() -> None:
    words = "#2 for pool analysis (2/2 slots busy)"
    assert explain(_job("queued"), Background(queue=words), NOW_NS) == words


def test_a_retry_names_the_limit_of_retries() -> None:
    """D36: ``retry 2/3 in 12s``."""
    job = BACKOFF._replace(counters=Counters(2, 0, 2))
    background = Background(_run(RunOutcome.FAILURE, EXIT_2), max_runs=4)
    assert explain(job, background, NOW_NS) == "retry 2/3 in 12s after exit 2"


def test_a_repetition_after_a_success_is_no_retry() -> None:
    job = BACKOFF._replace(counters=Counters(1, 1, 0))
    background = Background(_run(RunOutcome.SUCCESS, RunExit(NOW_NS, 0)), max_runs=4)
    assert explain(job, background, NOW_NS) == "run 2 in 12s"
