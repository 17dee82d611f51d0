"""Which changes of a job somebody may be told of, and what is said (contract, L.1 and L.2)."""

from __future__ import annotations

from jobman.model.events import EntityKind, EventType, NotifyEvent
from jobman.model.scalars import format_timestamp
from jobman.model.state import JobOutcome, JobPhase, RunOutcome
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.events import Event, Transition
    from jobman.model.state import Job, Run, Snapshot

    Summary = dict[str, str | int]

_RUNS = {
    RunOutcome.SUCCESS: NotifyEvent.RUN_SUCCEEDED,
    RunOutcome.FAILURE: NotifyEvent.RUN_FAILED,
    RunOutcome.START_FAILED: NotifyEvent.RUN_FAILED,
    RunOutcome.TIMED_OUT: NotifyEvent.RUN_TIMED_OUT,
    RunOutcome.CANCELLED: NotifyEvent.RUN_CANCELLED,
    RunOutcome.LOST: NotifyEvent.RUN_LOST,
}
_JOBS = {
    JobOutcome.SUCCESS: NotifyEvent.JOB_SUCCEEDED,
    JobOutcome.FAILURE: NotifyEvent.JOB_FAILED,
    JobOutcome.TIMED_OUT: NotifyEvent.JOB_TIMED_OUT,
    JobOutcome.CANCELLED: NotifyEvent.JOB_CANCELLED,
    JobOutcome.ABORTED: NotifyEvent.JOB_ABORTED,
    JobOutcome.LOST: NotifyEvent.JOB_LOST,
    JobOutcome.SUBMISSION_FAILED: NotifyEvent.JOB_SUBMISSION_FAILED,
}


class Notice(NamedTuple):
    """One thing to tell: the place of its event among those of the transition, its name, and the run it is of."""

    place: int
    type: NotifyEvent
    run_id: str | None = None


def notices(transition: Transition) -> list[Notice]:
    """Return what there is to tell of a transition, whoever wants to know."""
    before, after = transition.before, transition.after
    found = []
    for place, event in enumerate(transition.events):
        if event.kind == EntityKind.JOB:
            kind = _of_job(event, before, after.job)
        elif event.kind == EntityKind.RUN:
            kind = _of_run(event, after.run)
        else:
            kind = None
        if kind is not None:
            found.append(Notice(place, kind, event.entity_id if event.kind == EntityKind.RUN else None))
    return found


def _of_job(event: Event, before: Snapshot | None, job: Job) -> NotifyEvent | None:
    if job.phase == JobPhase.COMPLETED:
        # Later events of a completed job, such as slots that its survivors gave back, end nothing.
        ends = before is not None and before.job.phase != JobPhase.COMPLETED and job.outcome is not None
        return _JOBS[job.outcome] if ends and job.outcome is not None else None
    if event.type == EventType.SUPERVISOR_CLAIMED:
        return NotifyEvent.JOB_STARTED
    return NotifyEvent.RETRY_SCHEDULED if event.type == EventType.RETRY_SCHEDULED else None


def _of_run(event: Event, run: Run | None) -> NotifyEvent | None:
    if event.type == EventType.PROCESS_STARTED:
        return NotifyEvent.RUN_STARTED
    return None if run is None or run.outcome is None else _RUNS[run.outcome]


def summary(notice: Notice, after: Snapshot) -> Summary:
    """Return what is said of an event, as it was when it happened; times as text, unknown members left out.

    No command, argument, directory, variable or output is ever among it.
    """
    job = after.job
    said: Summary = {"submitted_at": format_timestamp(job.submitted_at_ns)}
    if job.name:
        said["job_name"] = job.name
    if notice.type == NotifyEvent.JOB_STARTED:
        return said
    ends_job = job.phase == JobPhase.COMPLETED and notice.run_id is None
    if after.run is not None and (not ends_job or after.run.completed_at_ns == job.completed_at_ns):
        said |= _of_that_run(after.run)
    if notice.type == NotifyEvent.RETRY_SCHEDULED:
        said |= _stated({"next_run_at": _time(job.next_run_at_ns), "reason": job.waiting_reason})
    if ends_job:
        said |= _of_the_end(job)
    return said


def _of_that_run(run: Run) -> Summary:
    return _stated(
        {
            "run_started_at": _time(run.started_at_ns),
            "run_completed_at": _time(run.completed_at_ns),
            "run_number": run.number,
            "run_id": run.id,
            "run_outcome": run.outcome,
            "exit_code": run.exit.exit_code if run.exit else None,
            "diagnostic_code": run.problem.code if run.problem else None,
        }
    )


def _of_the_end(job: Job) -> Summary:
    return _stated(
        {
            "started_at": _time(job.started_at_ns),
            "completed_at": _time(job.completed_at_ns),
            "run_count": job.counters.runs,
            "success_count": job.counters.successes,
            "failure_count": job.counters.failures,
            "job_outcome": job.outcome,
            "diagnostic_code": job.problem.code if job.problem else None,
        }
    )


def _stated(members: dict[str, str | int | None]) -> Summary:
    return {name: value for name, value in members.items() if value is not None}


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_timestamp(time_ns)
