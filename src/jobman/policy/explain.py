"""Why a job is where it is, in words for a person (D36)."""

from __future__ import annotations

from jobman.model.scalars import SECOND, format_duration
from jobman.model.state import JobOutcome, JobPhase, Reason, RunOutcome
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.state import Job, Run
    from jobman.policy.conditions import ConditionState
    from jobman.policy.waiting import DependencyState

_WORDS = {
    Reason.CANCELLATION: "cancelled",
    Reason.JOB_TIMEOUT: "job timeout",
    Reason.RUN_TIMEOUT: "run timeout",
    Reason.RUN_LIMIT: "run limit reached",
    Reason.RETRY_DEADLINE: "retry deadline reached",
}


class Background(NamedTuple):
    """What may explain a job, as far as it is known: latest run, edges, conditions, queue, run limit."""

    last_run: Run | None = None
    dependencies: tuple[DependencyState, ...] = ()
    conditions: tuple[ConditionState, ...] = ()
    queue: str = ""
    max_runs: int | None = None


def explain(job: Job, background: Background, now_ns: int) -> str:
    """Return a short reason, "" where the phase says it all.

    Args:
        job: the job.
        background: what is known around it.
        now_ns: the wall clock, for the time until a retry.
    """
    if job.phase == JobPhase.WAITING:
        return _waiting(background.dependencies) or _held_back(background.conditions)
    if job.phase == JobPhase.BACKOFF:
        return _backing_off(job, background, now_ns)
    if job.phase == JobPhase.QUEUED:
        return background.queue or "waiting for slots"
    if job.phase == JobPhase.STOPPING:
        return _stopping(job, background.last_run)
    return _completed(job, background.last_run) if job.phase == JobPhase.COMPLETED else ""


def _waiting(dependencies: tuple[DependencyState, ...]) -> str:
    unmet = [state for state in dependencies if state.outcome is None]
    if not unmet:
        return ""
    first = f"waiting for {unmet[0].label()} ({unmet[0].phase})"
    return first if len(unmet) == 1 else f"{first} and {len(unmet) - 1} more"


def _held_back(conditions: tuple[ConditionState, ...]) -> str:
    unmet = [state for state in conditions if state.satisfied_at_ns is None]
    if not unmet and len(conditions) == 1:
        return f"waiting for {_awaited(conditions[0].kind)} again"
    if not unmet:
        # Each has held once; which of them does not now is not recorded.
        return "waiting for all conditions to hold at the same moment" if conditions else ""
    code = f" ({unmet[0].code})" if unmet[0].code else ""
    return f"waiting for {_awaited(unmet[0].kind)}{code}"


def _awaited(kind: str) -> str:
    from jobman.model.waits import WaitKind  # few jobs have wait conditions: 0.5 ms

    return {
        WaitKind.UNTIL: "a time",
        WaitKind.DELAY: "a delay",
        WaitKind.FILE_EXISTS: "a path to exist",
        WaitKind.PROBE: "a probe to succeed",
    }[WaitKind(kind)]


def _backing_off(job: Job, background: Background, now_ns: int) -> str:
    left_ns = max(0, (job.next_run_at_ns or now_ns) - now_ns)
    # Whole seconds, rounded up: "in 0s" would be said of a job that still waits.
    left = format_duration(-(-left_ns // SECOND) * SECOND)
    last = background.last_run
    if last is None or last.outcome == RunOutcome.SUCCESS:
        return f"run {job.counters.runs + 1} in {left}"
    of = "" if background.max_runs is None else f"/{background.max_runs - 1}"
    return f"retry {job.counters.runs}{of} in {left} after {_end(last)}"


def _stopping(job: Job, run: Run | None) -> str:
    """Say why, and what stands in the way: something that survives SIGKILL (D33)."""
    why = f"stopping: {_words(job)}"
    return why if run is None or run.problem is None else f"{why}; {run.problem.text}"


def _completed(job: Job, last_run: Run | None) -> str:
    if job.outcome == JobOutcome.SUCCESS:
        return ""
    if job.problem is not None and job.outcome not in (JobOutcome.FAILURE, JobOutcome.CANCELLED):
        return job.problem.text
    if job.outcome == JobOutcome.FAILURE and last_run is not None and last_run.outcome != RunOutcome.SUCCESS:
        return _end(last_run)
    return _words(job)


def _end(run: Run) -> str:
    """Say how a run ended: its exit, or why there was none."""
    if run.outcome == RunOutcome.START_FAILED and run.problem is not None:
        return run.problem.text
    if run.outcome == RunOutcome.TIMED_OUT:
        return "run timeout"
    if run.exit is not None and run.exit.exit_code is not None:
        return f"exit {run.exit.exit_code}"
    if run.exit is not None and run.exit.signal is not None:
        return f"signal: {run.exit.signal}"
    return (run.outcome or run.phase).value


def _words(job: Job) -> str:
    reason = job.waiting_reason or ""
    try:
        return _WORDS.get(Reason(reason), "")
    except ValueError:
        return reason  # such as "supervisor was asked to end (SIGTERM)", which is words already
