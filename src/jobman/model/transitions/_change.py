"""How a transition makes new snapshots: one revision up, one event, invariants checked."""

from __future__ import annotations

from jobman.errors import TransitionError
from jobman.model.events import EntityKind, Event, EventType, Transition
from jobman.model.invariants import check_snapshot
from jobman.model.state import SupervisorPhase
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from jobman.model.state import Admission, Job, JobPhase, Pause, Run, Snapshot, Supervisor


class Now(NamedTuple):
    """The instant of a transition: wall clock for what is stored, monotonic for what is measured."""

    wall_ns: int
    monotonic_ns: int


class Details(NamedTuple):
    """What an event says beside its type."""

    reason: str | None = None
    diagnostic_code: str | None = None
    next_run_at_ns: int | None = None


NO_DETAILS = Details()


def require(snapshot: Snapshot, transition: str, phases: Collection[JobPhase]) -> None:
    """Raise `TransitionError` unless the job is in one of ``phases``."""
    if snapshot.job.phase not in phases:
        raise refuse(snapshot, transition)


def refuse(snapshot: Snapshot, transition: str) -> TransitionError:
    """Return the error that says why ``transition`` is not possible now."""
    return TransitionError(transition=transition, entity=f"job {snapshot.job.id}", phase=snapshot.job.phase.value)


def change_job(
    job: Job, event: EventType, at_ns: int, details: Details = NO_DETAILS, **changes: Any
) -> tuple[Job, Event]:
    """Return the next revision of ``job`` and its event; a reason in ``details`` becomes the waiting reason."""
    at_ns = max(at_ns, job.latest_ns())
    if details.reason is not None:
        changes.setdefault("waiting_reason", details.reason)
    changed = job._replace(revision=job.revision + 1, **changes)
    return changed, Event(EntityKind.JOB, job.id, job.id, changed.revision, event, at_ns, *details)


def change_run(
    run: Run, event: EventType, at_ns: int, details: Details = NO_DETAILS, **changes: Any
) -> tuple[Run, Event]:
    """Return the next revision of ``run`` and its event."""
    at_ns = max(at_ns, run.latest_ns())
    changed = run._replace(revision=run.revision + 1, **changes)
    return changed, Event(EntityKind.RUN, run.id, run.job_id, changed.revision, event, at_ns, *details)


def change_supervisor(supervisor: Supervisor, event: EventType, at_ns: int, **changes: Any) -> tuple[Supervisor, Event]:
    """Return the next revision of ``supervisor`` and its event."""
    at_ns = max(at_ns, supervisor.latest_ns())
    changed = supervisor._replace(revision=supervisor.revision + 1, **changes)
    return changed, Event(EntityKind.SUPERVISOR, supervisor.id, supervisor.job_id, changed.revision, event, at_ns)


def release_owner(supervisor: Supervisor, at_ns: int) -> tuple[Supervisor, Event]:
    """Return the supervisor that owns its job no longer, and the event of its release."""
    phase = SupervisorPhase.RELEASED
    return change_supervisor(supervisor, EventType.SUPERVISOR_RELEASED, at_ns, phase=phase, released_at_ns=at_ns)


def release_slots(admission: Admission | None, at_ns: int) -> Admission | None:
    """Return an admission that holds its slots no longer, dated no earlier than it was given; ``None`` for none."""
    return None if admission is None else admission._replace(released_at_ns=max(at_ns, admission.acquired_at_ns))


def transition(before: Snapshot | None, after: Snapshot, *events: Event) -> Transition:
    """Check ``after`` and return the finished transition."""
    return Transition(before, check_snapshot(after), events)


def time_of(snapshot: Snapshot, now: Now) -> int:
    """Return the time to store: never before anything already stored, so that a clock set back refuses nothing."""
    parts = (snapshot.job, snapshot.run, snapshot.supervisor)
    return max(now.wall_ns, *(part.latest_ns() for part in parts if part is not None))


def close_pause(job: Job, now: Now) -> dict[str, Any]:
    """Return the changes that end an open pause and add it to the total (D20); nothing if there is none."""
    if job.pause is None:
        return {}
    return {"pause": None, "total_paused_ns": job.total_paused_ns + paused_for(job.pause, now)}


def paused_for(pause: Pause, now: Now) -> int:
    """Return how long ``pause`` has lasted, in nanoseconds of the monotonic clock, never negative (D26)."""
    return max(0, now.monotonic_ns - pause.monotonic_ns)
