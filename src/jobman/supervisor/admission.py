"""Attempts to get slots: look first, write only when that changes something (architecture, Admission attempt; M17)."""

from __future__ import annotations

import os

from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.state import Admission, JobPhase, Reason
from jobman.model.transitions import running
from jobman.model.transitions.submission import LEASE_NS
from jobman.policy.admission import Ruling, Verdict
from jobman.policy.observation import Attempt
from jobman.store.admissions import (
    Demand,
    enqueue,
    forget_fitting,
    note_fitting,
    rule,
    settle,
    with_indexes,
)
from jobman.store.commit import write_transition
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.model.state import Snapshot
    from jobman.model.transitions._change import Now
    from jobman.policy.admission import Request
    from jobman.store.admissions import Ruled
    from jobman.store.connection import Store

UNTRIED = Attempt(Verdict(Ruling.WAIT), enqueued=False)
"""Of a job without a place in the queue: whatever an attempt comes to, it writes, so nobody looks before."""


def look(store: Store, snapshot: Snapshot, spec: JobSpec, clock: Clock) -> Attempt:
    """Return what an attempt would come to now; reads one moment of the store, takes no lock."""
    with store.read():
        return _look(store, snapshot, spec, clock)


def _look(store: Store, snapshot: Snapshot, spec: JobSpec, clock: Clock) -> Attempt:
    verdict, _, _, placed = rule(store, _demand(snapshot, spec, clock), clock.boottime_ns())
    # One that was skipped as idle has a place that says so: the attempt has to write, as one without a place.
    return Attempt(verdict, placed and not verdict.returns)


def attempt(store: Store, snapshot: Snapshot, spec: JobSpec, *, clock: Clock, now: Now) -> Snapshot:
    """Decide again under the write lock and commit the answer: slots, or a place in the queue; return the snapshot.

    Raises:
        RevisionConflictError: somebody changed the job first; nothing was done.
    """
    with store.write():
        now_ns = clock.boottime_ns()
        ruled = rule(store, _demand(snapshot, spec, clock), now_ns)
        verdict, request = ruled.verdict, ruled.request
        if verdict.ruling == Ruling.ADMIT:
            after = _admit(store, snapshot, ruled, now)
            settle(store, request, verdict.passes, now_ns=now_ns)
            return after
        if verdict.mark is not None:
            note_fitting(store, verdict.mark, now_ns)
        if verdict.returns:
            forget_fitting(store, request.job_id)
        return snapshot if verdict.ruling == Ruling.IMPOSSIBLE else _wait(store, snapshot, request, now)


def _wait(store: Store, snapshot: Snapshot, request: Request, now: Now) -> Snapshot:
    enqueue(store, request)
    if snapshot.job.phase != JobPhase.STARTING:
        return snapshot
    transition = running.enqueue(snapshot, Reason.ADMISSION_CAPACITY, now)
    write_transition(store, transition)
    return transition.after


def _admit(store: Store, snapshot: Snapshot, ruled: Ruled, now: Now) -> Snapshot:
    request = ruled.request
    admission_id = new_id(now.wall_ns, os.urandom(RANDOM_BYTES))
    expires_ns = now.wall_ns + LEASE_NS
    plain = Admission(admission_id, request.job_id, request.slots, now.wall_ns, expires_ns, pool=request.pool)
    transition = running.admit(snapshot, with_indexes(store, plain, ruled.limits), now)
    write_transition(store, transition)
    return transition.after


def _demand(snapshot: Snapshot, spec: JobSpec, clock: Clock) -> Demand:
    job = snapshot.job
    first = not job.counters.runs and job.prerequisites_satisfied_at_ns is not None
    eligible_at_ns = job.prerequisites_satisfied_at_ns if first else clock.wall_ns()
    return Demand(job.id, spec.pool, spec.slots, eligible_at_ns or clock.wall_ns())
