"""From an owned job through its runs to its completion (contract, F.2)."""

from __future__ import annotations

from jobman.model.events import EntityKind, Event, EventType
from jobman.model.state import (
    Counters,
    JobOutcome,
    JobPhase,
    Reason,
    Run,
    RunOutcome,
    RunPhase,
    Snapshot,
)
from jobman.model.transitions._change import (
    Details,
    change_job,
    change_run,
    close_pause,
    refuse,
    release_owner,
    release_slots,
    require,
    time_of,
    transition,
)
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any

    from jobman.model.events import Transition
    from jobman.model.identity import ProcessIdentity
    from jobman.model.state import (
        Admission,
        Job,
        Problem,
        RunExit,
        RunLogs,
        RunUsage,
    )
    from jobman.model.transitions._change import Now

_COMPLETED_WITHOUT_RUN = {
    JobOutcome.CANCELLED: EventType.JOB_COMPLETED,
    JobOutcome.TIMED_OUT: EventType.TIMEOUT_REQUESTED,
    JobOutcome.ABORTED: EventType.JOB_ABORTED,
}
_ENQUEUED_FROM = {
    Reason.PREREQUISITES_SATISFIED: JobPhase.WAITING,
    Reason.ADMISSION_CAPACITY: JobPhase.STARTING,
    Reason.BACKOFF_ELAPSED: JobPhase.BACKOFF,
}


class RunEnd(NamedTuple):
    """How a run ended; ``exit`` is ``None`` when there was no process, or its end could not be seen."""

    outcome: RunOutcome
    exit: RunExit | None
    logs: RunLogs
    usage: RunUsage | None = None
    problem: Problem | None = None


class Retry(NamedTuple):
    """Another run is due: at once, or at ``next_run_at_ns``."""

    next_run_at_ns: int | None


class Finish(NamedTuple):
    """The job is over, and this is why."""

    outcome: JobOutcome
    reason: str
    problem: Problem | None = None


def await_prerequisites(snapshot: Snapshot, now: Now) -> Transition:
    """Move a freshly claimed job with dependencies or wait conditions to ``waiting``."""
    require(snapshot, "wait for prerequisites", (JobPhase.STARTING,))
    if snapshot.run is not None or snapshot.job.counters.runs or snapshot.admission is not None:
        raise refuse(snapshot, "wait for prerequisites")
    details = Details(Reason.PREREQUISITES)
    job, event = change_job(
        snapshot.job, EventType.JOB_WAITING, time_of(snapshot, now), details, phase=JobPhase.WAITING
    )
    return transition(snapshot, snapshot._replace(job=job), event)


def enqueue(snapshot: Snapshot, reason: Reason, now: Now) -> Transition:
    """Move a job that may run, as far as ``reason`` says, to the queue for slots."""
    require(snapshot, "enqueue", (_ENQUEUED_FROM[reason],))
    if snapshot.run is not None or snapshot.admission is not None:
        raise refuse(snapshot, "enqueue")
    at_ns = time_of(snapshot, now)
    changes: dict[str, Any] = {"phase": JobPhase.QUEUED}
    if reason == Reason.PREREQUISITES_SATISFIED:
        changes["prerequisites_satisfied_at_ns"] = at_ns
    if reason == Reason.BACKOFF_ELAPSED:
        changes["next_run_at_ns"] = None
    job, event = change_job(snapshot.job, EventType.JOB_QUEUED, at_ns, Details(reason), **changes)
    return transition(snapshot, snapshot._replace(job=job), event)


def admit(snapshot: Snapshot, admission: Admission, now: Now) -> Transition:
    """Give a job its slots; one that stood in the queue goes to ``starting``.

    A job that gets its slots without having queued stays in ``starting``: no event, only the admission.
    """
    require(snapshot, "admit", (JobPhase.QUEUED, JobPhase.STARTING))
    if snapshot.run is not None or snapshot.admission is not None:
        raise refuse(snapshot, "admit")
    if snapshot.job.phase == JobPhase.STARTING:
        return transition(snapshot, snapshot._replace(admission=admission))
    details = Details(Reason.ADMITTED)
    job, event = change_job(
        snapshot.job, EventType.JOB_STARTING, time_of(snapshot, now), details, phase=JobPhase.STARTING
    )
    return transition(snapshot, snapshot._replace(job=job, admission=admission), event)


def reserve_run(snapshot: Snapshot, run_id: str, now: Now) -> Transition:
    """Create the next run and bind the admission to it; from here a failed start has a place to be recorded (M24)."""
    require(snapshot, "reserve a run", (JobPhase.STARTING,))
    if snapshot.run is not None or snapshot.admission is None:
        raise refuse(snapshot, "reserve a run")
    at_ns = time_of(snapshot, now)
    number = snapshot.job.counters.runs + 1
    run = Run(run_id, snapshot.job.id, number, RunPhase.STARTING, 1, at_ns)
    reserved = Event(EntityKind.RUN, run_id, snapshot.job.id, 1, EventType.RUN_RESERVED, at_ns)
    job, event = change_job(snapshot.job, EventType.RUN_RESERVED, at_ns, active_run_id=run_id)
    admission = snapshot.admission._replace(run_id=run_id)
    return transition(snapshot, snapshot._replace(job=job, run=run, admission=admission), event, reserved)


def start_run(snapshot: Snapshot, identity: ProcessIdentity, resolved_executable: str, now: Now) -> Transition:
    """Publish that the target runs under ``identity``."""
    require(snapshot, "start the run", (JobPhase.STARTING,))
    if snapshot.run is None or snapshot.run.phase != RunPhase.STARTING:
        raise refuse(snapshot, "start the run")
    at_ns = time_of(snapshot, now)
    run, run_event = change_run(
        snapshot.run,
        EventType.PROCESS_STARTED,
        at_ns,
        phase=RunPhase.RUNNING,
        identity=identity,
        resolved_executable=resolved_executable,
        started_at_ns=at_ns,
    )
    job, job_event = change_job(
        snapshot.job, EventType.PROCESS_STARTED, at_ns, phase=JobPhase.RUNNING, started_at_ns=at_ns
    )
    return transition(snapshot, snapshot._replace(job=job, run=run), job_event, run_event)


def end_run(snapshot: Snapshot, end: RunEnd, following: Retry | Finish, now: Now) -> Transition:
    """Complete the active run, release its slots, and either schedule the next run or complete the job.

    Legal in every phase that can have a run, ``paused`` included: a stopped target can be killed by others (D4).
    """
    active = (JobPhase.STARTING, JobPhase.RUNNING, JobPhase.PAUSED, JobPhase.STOPPING)
    require(snapshot, "end the run", active)
    if snapshot.run is None or snapshot.supervisor is None:
        raise refuse(snapshot, "end the run")
    at_ns = time_of(snapshot, now)
    run, run_event = _complete_run(snapshot.run, end, at_ns)
    changes = close_pause(snapshot.job, now)
    changes["counters"] = count(snapshot.job.counters, end.outcome)
    changes["active_run_id"] = None
    admission = release_slots(snapshot.admission, at_ns)
    if isinstance(following, Retry):
        code = end.problem.code if end.problem else None
        details = Details(Reason.NEXT_RUN, code, following.next_run_at_ns)
        job, job_event = _schedule(snapshot.job, details, at_ns, **changes)
        return transition(snapshot, snapshot._replace(job=job, run=run, admission=admission), job_event, run_event)
    job, job_event = _finish(snapshot.job, following, EventType.JOB_COMPLETED, at_ns, **changes)
    supervisor, released = release_owner(snapshot.supervisor, at_ns)
    after = Snapshot(job, run, supervisor, admission)
    return transition(snapshot, after, job_event, run_event, released)


def finish_without_run(snapshot: Snapshot, finish: Finish, now: Now) -> Transition:
    """Complete a job that has no active run: cancelled, timed out or aborted before the first or next run.

    Only an intent to cancel, committed before, ends it as ``cancelled``.
    """
    phases = (JobPhase.WAITING, JobPhase.QUEUED, JobPhase.STARTING, JobPhase.BACKOFF, JobPhase.STOPPING)
    require(snapshot, "finish", phases)
    if snapshot.run is not None or snapshot.supervisor is None:
        raise refuse(snapshot, "finish")
    cancelling = snapshot.job.phase == JobPhase.STOPPING
    event_type = _COMPLETED_WITHOUT_RUN.get(finish.outcome)
    if event_type is None or cancelling != (finish.outcome == JobOutcome.CANCELLED):
        raise refuse(snapshot, f"finish as {finish.outcome}")
    at_ns = time_of(snapshot, now)
    job, event = _finish(snapshot.job, finish, event_type, at_ns)
    supervisor, released = release_owner(snapshot.supervisor, at_ns)
    after = Snapshot(job, None, supervisor, release_slots(snapshot.admission, at_ns))
    return transition(snapshot, after, event, released)


def count(counters: Counters, outcome: RunOutcome) -> Counters:
    """Return ``counters`` with one more completed run (F.4: everything but success is a failure)."""
    success = outcome == RunOutcome.SUCCESS
    return Counters(counters.runs + 1, counters.successes + success, counters.failures + (not success))


def _complete_run(run: Run, end: RunEnd, at_ns: int) -> tuple[Run, Event]:
    observed = end.exit
    if observed is not None:
        # The clock may have been set, either way, between the observation and now.
        observed_at_ns = min(max(observed.observed_at_ns, run.latest_ns()), at_ns)
        observed = observed._replace(observed_at_ns=observed_at_ns)
    return change_run(
        run,
        EventType.RUN_COMPLETED,
        at_ns,
        Details(diagnostic_code=end.problem.code if end.problem else None),
        phase=RunPhase.COMPLETED,
        outcome=end.outcome,
        completed_at_ns=at_ns,
        exit=observed,
        logs=end.logs,
        usage=end.usage,
        problem=end.problem,
    )


def _schedule(job: Job, details: Details, at_ns: int, **changes: Any) -> tuple[Job, Event]:
    phase = JobPhase.QUEUED if details.next_run_at_ns is None else JobPhase.BACKOFF
    changes |= {"phase": phase, "next_run_at_ns": details.next_run_at_ns}
    return change_job(job, EventType.RETRY_SCHEDULED, at_ns, details, **changes)


def _finish(job: Job, finish: Finish, event: EventType, at_ns: int, **changes: Any) -> tuple[Job, Event]:
    details = Details(finish.reason, finish.problem.code if finish.problem else None)
    changes |= {
        "phase": JobPhase.COMPLETED,
        "outcome": finish.outcome,
        "completed_at_ns": at_ns,
        "next_run_at_ns": None,
        "problem": finish.problem,
    }
    return change_job(job, event, at_ns, details, **changes)
