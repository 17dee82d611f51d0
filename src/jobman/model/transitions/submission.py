"""From a submission to an owned job, or to a failed submission (contract, F.2 and G)."""

from __future__ import annotations

from jobman.errors import TransitionError
from jobman.model.events import EntityKind, Event, EventType
from jobman.model.state import (
    Claim,
    Diagnostic,
    Job,
    JobOutcome,
    JobPhase,
    Problem,
    Snapshot,
    Supervisor,
    SupervisorPhase,
)
from jobman.model.transitions._change import Details, change_job, require, time_of, transition
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.events import Transition
    from jobman.model.identity import ProcessIdentity
    from jobman.model.state import LockFile
    from jobman.model.transitions._change import Now

CLAIM_WINDOW_NS = 30_000_000_000
"""How long a job waits for its supervisor. The original has 10 s; a loaded machine may need more, and the client sees
an early death on the pipe at once."""
LEASE_NS = 15_000_000_000


class Claimant(NamedTuple):
    """Who claims a job, and with what proof."""

    supervisor_id: str
    identity: ProcessIdentity
    lock: LockFile
    credential_hash: bytes


def submit(job_id: str, name: str, *, credential_hash: bytes, now: Now) -> Transition:
    """Return the insertion of a job in ``submitting``, on offer until the claim window closes."""
    claim = Claim(credential_hash, now.wall_ns + CLAIM_WINDOW_NS)
    job = Job(job_id, name, JobPhase.SUBMITTING, 1, now.wall_ns, claim=claim)
    event = Event(EntityKind.JOB, job_id, job_id, 1, EventType.JOB_SUBMITTED, now.wall_ns)
    return transition(None, Snapshot(job), event)


def claim(snapshot: Snapshot, claimant: Claimant, now: Now) -> Transition:
    """Make ``claimant`` the owner of a job in ``submitting``.

    Raises:
        TransitionError: the job is not on offer, the offer has expired, or it was made for another credential.
    """
    require(snapshot, "claim", (JobPhase.SUBMITTING,))
    offer = snapshot.job.claim
    at_ns = time_of(snapshot, now)
    if offer is None or at_ns >= offer.deadline_ns or claimant.credential_hash != offer.credential_hash:
        raise TransitionError(transition="claim", entity=f"job {snapshot.job.id}", phase="not offered to this claimant")
    job, event = change_job(
        snapshot.job,
        EventType.SUPERVISOR_CLAIMED,
        at_ns,
        phase=JobPhase.STARTING,
        claim=None,
        supervisor_id=claimant.supervisor_id,
        claimed_at_ns=at_ns,
    )
    supervisor = Supervisor(
        claimant.supervisor_id,
        job.id,
        SupervisorPhase.CLAIMED,
        1,
        claimant.identity,
        claimant.lock,
        at_ns,
        at_ns + LEASE_NS,
    )
    claimed = Event(EntityKind.SUPERVISOR, supervisor.id, job.id, 1, EventType.SUPERVISOR_CLAIMED, at_ns)
    return transition(snapshot, Snapshot(job, supervisor=supervisor), event, claimed)


def expire_submission(snapshot: Snapshot, now: Now) -> Transition:
    """Fail a submission that nobody claimed in time.

    Raises:
        TransitionError: the job is not ``submitting``, or its deadline has not passed.
    """
    require(snapshot, "expire the submission", (JobPhase.SUBMITTING,))
    offer = snapshot.job.claim
    if offer is not None and now.wall_ns < offer.deadline_ns:
        raise TransitionError(
            transition="expire the submission", entity=f"job {snapshot.job.id}", phase="still on offer"
        )
    return _fail(snapshot, "no supervisor claimed the job in time", now)


def withdraw_submission(snapshot: Snapshot, detail: str, now: Now) -> Transition:
    """Fail a submission whose only possible claimant is known to be dead.

    Only the submitting client may do this: it alone knew the credential, handed it to one child, and has reaped that
    child.

    Raises:
        TransitionError: the job is not ``submitting``.
    """
    require(snapshot, "withdraw the submission", (JobPhase.SUBMITTING,))
    return _fail(snapshot, detail, now)


def _fail(snapshot: Snapshot, detail: str, now: Now) -> Transition:
    at_ns = time_of(snapshot, now)
    code = Diagnostic.SUPERVISOR_CLAIM_EXPIRED
    job, event = change_job(
        snapshot.job,
        EventType.SUBMISSION_FAILED,
        at_ns,
        Details(diagnostic_code=code),
        phase=JobPhase.COMPLETED,
        outcome=JobOutcome.SUBMISSION_FAILED,
        completed_at_ns=at_ns,
        claim=None,
        waiting_reason=code.value,
        problem=Problem(code, detail),
    )
    return transition(snapshot, Snapshot(job), event)
