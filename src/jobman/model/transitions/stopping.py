"""Intents: cancel, time out, pause, resume. Each is durable before anything is done about it (M28)."""

from __future__ import annotations

from jobman.model.events import EventType
from jobman.model.state import JobPhase, Pause, Reason, RunPhase, StopReason
from jobman.model.transitions._change import (
    NO_DETAILS,
    Details,
    change_job,
    change_run,
    close_pause,
    refuse,
    require,
    time_of,
    transition,
)
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from jobman.model.events import Event, Transition
    from jobman.model.state import Run, Snapshot
    from jobman.model.transitions._change import Now

_STOPPABLE = (
    JobPhase.WAITING,
    JobPhase.QUEUED,
    JobPhase.STARTING,
    JobPhase.RUNNING,
    JobPhase.BACKOFF,
    JobPhase.PAUSED,
)
_INTENT_EVENTS = {
    StopReason.CANCELLATION: EventType.CANCELLATION_REQUESTED,
    StopReason.TIMEOUT: EventType.TIMEOUT_REQUESTED,
}
_PAUSABLE = (JobPhase.WAITING, JobPhase.QUEUED, JobPhase.BACKOFF, JobPhase.RUNNING)


def request_cancel(snapshot: Snapshot, now: Now, reason: str = Reason.CANCELLATION) -> Transition | None:
    """Commit somebody to end the job as ``cancelled``; ``None`` when that, or a completion, is already on its way.

    A job that is stopping because of a run timeout accepts it: no retry follows (D10). One that is stopping because of
    the job timeout keeps that intent.

    Raises:
        TransitionError: the job is still ``submitting``.
    """
    job = snapshot.job
    if job.phase == JobPhase.COMPLETED or job.intent is not None:
        return None
    require(snapshot, "cancel", (*_STOPPABLE, JobPhase.STOPPING))
    return _intend(snapshot, StopReason.CANCELLATION, Details(reason), now)


def request_job_timeout(snapshot: Snapshot, now: Now) -> Transition:
    """Stop the active run because the job has used up its time; no retry follows."""
    require(snapshot, "time out", (*_STOPPABLE, JobPhase.STOPPING))
    if snapshot.job.intent is not None or snapshot.run is None:
        raise refuse(snapshot, "time out")
    return _intend(snapshot, StopReason.TIMEOUT, Details(Reason.JOB_TIMEOUT), now)


def request_run_timeout(snapshot: Snapshot, now: Now) -> Transition:
    """Stop the active run because it has used up its time; the job may go on to another."""
    require(snapshot, "time out the run", (JobPhase.STARTING, JobPhase.RUNNING))
    if snapshot.run is None or snapshot.run.phase not in (RunPhase.STARTING, RunPhase.RUNNING):
        raise refuse(snapshot, "time out the run")
    at_ns = time_of(snapshot, now)
    details = Details(Reason.RUN_TIMEOUT)
    run, run_event = _stop_run(snapshot.run, EventType.TIMEOUT_REQUESTED, at_ns, StopReason.TIMEOUT)
    job, job_event = change_job(snapshot.job, EventType.TIMEOUT_REQUESTED, at_ns, details, phase=JobPhase.STOPPING)
    return transition(snapshot, snapshot._replace(job=job, run=run), job_event, run_event)


def pause(snapshot: Snapshot, now: Now) -> Transition:
    """Suspend the job where it is.

    Raises:
        TransitionError: not in ``waiting``, ``queued``, ``backoff`` or ``running`` (O.67: ``starting`` is a conflict).
    """
    require(snapshot, "pause", _PAUSABLE)
    at_ns = time_of(snapshot, now)
    opened = Pause(snapshot.job.phase, at_ns, now.monotonic_ns)
    job, event = change_job(snapshot.job, EventType.JOB_PAUSED, at_ns, phase=JobPhase.PAUSED, pause=opened)
    if snapshot.run is None:
        return transition(snapshot, snapshot._replace(job=job), event)
    run, run_event = change_run(snapshot.run, EventType.JOB_PAUSED, at_ns, phase=RunPhase.PAUSED, signalled_at_ns=None)
    return transition(snapshot, snapshot._replace(job=job, run=run), event, run_event)


def resume(snapshot: Snapshot, now: Now) -> Transition:
    """Return a paused job to the phase it was paused from.

    Raises:
        TransitionError: the job is not paused.
    """
    if snapshot.job.pause is None:
        raise refuse(snapshot, "resume")
    at_ns = time_of(snapshot, now)
    changes = close_pause(snapshot.job, now)
    phase = snapshot.job.pause.paused_from
    job, event = change_job(snapshot.job, EventType.JOB_RESUMED, at_ns, phase=phase, **changes)
    if snapshot.run is None:
        return transition(snapshot, snapshot._replace(job=job), event)
    run, run_event = change_run(
        snapshot.run, EventType.JOB_RESUMED, at_ns, phase=RunPhase.RUNNING, signalled_at_ns=None
    )
    return transition(snapshot, snapshot._replace(job=job, run=run), event, run_event)


def _intend(snapshot: Snapshot, intent: StopReason, details: Details, now: Now) -> Transition:
    at_ns = time_of(snapshot, now)
    event = _INTENT_EVENTS[intent]
    changes: dict[str, Any] = close_pause(snapshot.job, now)
    changes |= {
        "phase": JobPhase.STOPPING,
        "intent": intent,
        "cancellation_requested_at_ns": at_ns,
        "next_run_at_ns": None,
    }
    job, job_event = change_job(snapshot.job, event, at_ns, details, **changes)
    if snapshot.run is None or snapshot.run.phase == RunPhase.STOPPING:
        return transition(snapshot, snapshot._replace(job=job), job_event)
    run, run_event = _stop_run(snapshot.run, event, at_ns, intent)
    return transition(snapshot, snapshot._replace(job=job, run=run), job_event, run_event)


def _stop_run(run: Run, event: EventType, at_ns: int, reason: StopReason) -> tuple[Run, Event]:
    changes = {
        "phase": RunPhase.STOPPING,
        "stop_reason": reason,
        "stop_requested_at_ns": at_ns,
        # Whatever was signalled before was another intent.
        "signalled_at_ns": None,
    }
    return change_run(run, event, at_ns, NO_DETAILS, **changes)
