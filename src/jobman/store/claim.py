"""The claim: from ``submitting`` to an owned job, in the one transaction that a fresh supervisor waits for (M3).

`jobman.model.transitions.submission.claim` says what a claim is; a test holds this statement to it, row by row. It is
written out here because the supervisor's start is on the path of every ``jobman run``: the model costs 10 ms to import,
which a supervisor spends after it has acknowledged (see ADR 0003). Hence no imports beyond ``os``.
"""

from __future__ import annotations

import os

from jobman.errors import ClaimError

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from jobman.store.connection import Store

    Identity = tuple[int, str, str, str]
    Lock = tuple[int, int]

LEASE_NS = 15_000_000_000
_JOB = (
    "UPDATE jobs SET phase = 'starting', revision = revision + 1, claim_hash = NULL, claim_deadline_ns = NULL,"
    " supervisor_id = ?, claimed_at_ns = ? WHERE id = ? AND phase = 'submitting'"
)
_SUPERVISOR = (
    "INSERT INTO supervisors (id, job_id, phase, revision, pid, creation_id, boot_id, pid_namespace, lock_device,"
    " lock_inode, claimed_at_ns, lease_expires_at_ns) VALUES (?, ?, 'claimed', 1, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVENT = (
    "INSERT INTO state_events (id, kind, entity_id, job_id, revision, type, at_ns)"
    " VALUES (?, ?, ?, ?, ?, 'supervisor_claimed', ?)"
)
_SUBSCRIBED = "SELECT 1 FROM notification_subscriptions WHERE job_id = ? AND event_type = 'job_started' LIMIT 1"


class Claimant:
    """Who claims: supervisor ID, process identity (PID, creation, boot, namespace), and lock file (device, inode)."""

    __slots__ = ("identity", "lock", "supervisor_id")

    def __init__(self, supervisor_id: str, identity: Identity, lock: Lock) -> None:
        self.supervisor_id = supervisor_id
        self.identity = identity
        self.lock = lock


def claim_job(store: Store, job_id: str, *, claimant: Claimant, credential_hash: bytes, wall_ns: int) -> None:
    """Make ``claimant`` the owner of the job: phase, lock and identity in one commit.

    Raises:
        ClaimError: no such job on offer, the offer has expired, or the credential is another one. Nothing is changed.
    """
    with store.write():
        rows = store.execute(
            "SELECT revision, submitted_at_ns, claim_hash, claim_deadline_ns FROM jobs"
            " WHERE id = ? AND phase = 'submitting'",
            (job_id,),
        )
        if not rows:
            raise ClaimError(job=job_id, detail="it is not on offer")
        revision, submitted_at_ns, expected_hash, deadline_ns = rows[0]
        at_ns = max(wall_ns, submitted_at_ns)
        if not _same_digest(expected_hash, credential_hash):
            raise ClaimError(job=job_id, detail="the credential is another one")
        if at_ns >= deadline_ns:
            raise ClaimError(job=job_id, detail="the offer has expired")
        _take(store, job_id, claimant, (at_ns, revision + 1))


def _take(store: Store, job_id: str, claimant: Claimant, stamp: tuple[int, int]) -> None:
    from jobman.model.ids import new_id

    at_ns, revision = stamp
    owner = claimant.supervisor_id
    store.execute(_JOB, (owner, at_ns, job_id))
    store.execute(_SUPERVISOR, (owner, job_id, *claimant.identity, *claimant.lock, at_ns, at_ns + LEASE_NS))
    event_id = new_id(at_ns, os.urandom(10))
    store.execute(_EVENT, (event_id, "job", job_id, job_id, revision, at_ns))
    store.execute(_EVENT, (new_id(at_ns, os.urandom(10)), "supervisor", owner, job_id, 1, at_ns))
    if store.execute(_SUBSCRIBED, (job_id,)):
        from jobman.store.outbox import queue_claim  # few jobs tell anybody that they have started

        queue_claim(store, job_id, event_id, at_ns)


def _same_digest(first: bytes, second: bytes) -> bool:
    # hmac.compare_digest would load OpenSSL (2 ms); comparing every byte of two digests takes the same time for all.
    difference = len(first) ^ len(second)
    for one, other in zip(first, second):  # noqa: B905  # the length is part of the comparison above
        difference |= one ^ other
    return difference == 0
