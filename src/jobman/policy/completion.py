"""Whether a job goes on after a run, and why (contract, H.3; M22)."""

from __future__ import annotations

from jobman.model.scalars import INT64_MAX
from jobman.model.state import (
    Diagnostic,
    JobOutcome,
    Problem,
    Reason,
    RunOutcome,
    StopReason,
)
from jobman.model.transitions.running import Finish, Retry
from jobman.policy.backoff import delay_ns
from jobman.policy.classify import is_retryable
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.spec import JobSpec
    from jobman.model.state import (
        Counters,
        RunExit,
    )


class EndedRun(NamedTuple):
    """What the policy looks at: counters that include this run, its end, and the job's intent if it has one."""

    counters: Counters
    outcome: RunOutcome
    exit: RunExit | None
    intent: StopReason | None
    problem: Problem | None
    completed_at_ns: int
    draw: int = 0
    """Any uniform draw of many bits: which delay applies, and so how far it may jitter, is decided here."""
    cancelled_because: str = Reason.CANCELLATION
    """What was recorded with a cancellation; it stays the reason when the job has ended."""


def after_run(spec: JobSpec, ended: EndedRun) -> Retry | Finish:
    """Decide in one order: cancelled, job timeout, success target, non-retryable, failure limit, run limit, retry."""
    return _intended(ended) or _exhausted(spec, ended) or _next(spec, ended)


def _intended(ended: EndedRun) -> Finish | None:
    if ended.intent == StopReason.CANCELLATION:
        return Finish(JobOutcome.CANCELLED, ended.cancelled_because, ended.problem)
    if ended.intent == StopReason.TIMEOUT:
        problem = Problem(Diagnostic.JOB_TIMEOUT, "the job used up its time")
        return Finish(JobOutcome.TIMED_OUT, Reason.JOB_TIMEOUT, problem)
    return None


def _exhausted(spec: JobSpec, ended: EndedRun) -> Finish | None:
    completion, counters = spec.completion, ended.counters
    if completion.success_target.reached_by(counters.successes):
        return Finish(JobOutcome.SUCCESS, Reason.SUCCESS_TARGET)
    failed = ended.outcome != RunOutcome.SUCCESS
    if failed and not is_retryable(ended.outcome, ended.exit, spec.classification):
        return Finish(JobOutcome.FAILURE, Reason.NON_RETRYABLE_FAILURE, ended.problem)
    if completion.failure_limit.reached_by(counters.failures):
        return Finish(JobOutcome.FAILURE, Reason.FAILURE_LIMIT, ended.problem)
    if completion.max_runs.reached_by(counters.runs):
        return Finish(JobOutcome.FAILURE, Reason.RUN_LIMIT, ended.problem)
    return None


def _next(spec: JobSpec, ended: EndedRun) -> Retry | Finish:
    succeeded = ended.outcome == RunOutcome.SUCCESS
    delay = spec.success_delay if succeeded else spec.failure_delay
    pause_ns = delay_ns(delay, ended.counters.runs, ended.draw % (delay.jitter_ns + 1))
    next_run_at_ns = min(INT64_MAX, ended.completed_at_ns + pause_ns)
    abort_at_ns = spec.completion.retry_abort_at_ns
    if abort_at_ns is not None and next_run_at_ns > abort_at_ns:
        return Finish(JobOutcome.ABORTED, Reason.RETRY_DEADLINE, ended.problem)
    return Retry(next_run_at_ns if pause_ns else None)
