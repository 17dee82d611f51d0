"""What becomes of a job whose owner is provably gone (contract, H.6; D42)."""

from __future__ import annotations

from jobman.model.events import EventType
from jobman.model.state import (
    Diagnostic,
    JobOutcome,
    JobPhase,
    Problem,
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
    time_of,
    transition,
)
from jobman.model.transitions.running import count
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.events import Event, Transition
    from jobman.model.state import Run, RunLogs
    from jobman.model.transitions._change import Now


_CODE = Diagnostic.SUPERVISOR_LEASE_EXPIRED


class Loss(NamedTuple):
    """What the reconciler found: how the owner died, the scanned logs of the run, and whether the slots are free.

    ``release_slots`` is true only when no process of the run is alive (D42).
    """

    detail: str
    logs: RunLogs
    release_slots: bool


def release_survivors(snapshot: Snapshot, now: Now) -> Transition:
    """Give back the slots of a lost job once no process of its run is alive (D42)."""
    if snapshot.job.outcome != JobOutcome.LOST or snapshot.admission is None:
        raise refuse(snapshot, "release the slots")
    return transition(snapshot, snapshot._replace(admission=release_slots(snapshot.admission, now.wall_ns)))


def lose(snapshot: Snapshot, loss: Loss, now: Now) -> Transition:
    """Complete an owned job, and its active run, as ``lost``.

    The caller has proved the owner's death; see the liveness decision in the architecture.

    Raises:
        TransitionError: the job has no owner or is already completed.
    """
    job, supervisor = snapshot.job, snapshot.supervisor
    if supervisor is None or job.phase in (JobPhase.SUBMITTING, JobPhase.COMPLETED):
        raise refuse(snapshot, "declare the job lost")
    at_ns = time_of(snapshot, now)
    problem = Problem(_CODE, loss.detail)
    changes = close_pause(job, now)
    run, run_events = snapshot.run, []
    if run is not None:
        run, run_event = _lose_run(run, loss, at_ns)
        run_events.append(run_event)
        changes["counters"] = count(job.counters, RunOutcome.LOST)
    lost, job_event = change_job(
        job,
        EventType.JOB_COMPLETED if run is not None else EventType.OWNERSHIP_LOST,
        at_ns,
        Details(_CODE.value, _CODE),
        phase=JobPhase.COMPLETED,
        outcome=JobOutcome.LOST,
        completed_at_ns=at_ns,
        active_run_id=None,
        next_run_at_ns=None,
        problem=problem,
        **changes,
    )
    owner, released = release_owner(supervisor, at_ns)
    admission = release_slots(snapshot.admission, at_ns) if loss.release_slots else snapshot.admission
    return transition(snapshot, Snapshot(lost, run, owner, admission), job_event, *run_events, released)


def _lose_run(run: Run, loss: Loss, at_ns: int) -> tuple[Run, Event]:
    return change_run(
        run,
        EventType.OWNERSHIP_LOST,
        at_ns,
        Details(diagnostic_code=_CODE),
        phase=RunPhase.COMPLETED,
        outcome=RunOutcome.LOST,
        completed_at_ns=at_ns,
        exit=None,
        logs=loss.logs,
        problem=Problem(_CODE, loss.detail),
    )
