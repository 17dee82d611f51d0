"""Reconciling what nobody owns any more: used by clients, by supervisors and by deliveries alike (contract, H.6).

This module takes the cheap look that every command takes at the job it names: one read of the job, one test of a lock.
Only when that look says that something is wrong is `jobman.recovery.losing` loaded, which proves it and acts.
"""

from __future__ import annotations

import os

from jobman.model.state import JobPhase
from jobman.policy.liveness import Verdict
from jobman.process.liveness import HELD, LOCK_SUFFIX, lock_path, probe
from jobman.process.own import own_boot_id
from jobman.store.jobs import is_completed, load_ownership, load_snapshot, load_supervisor
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.clock import Clock
    from jobman.model.state import LockFile, Snapshot, Supervisor
    from jobman.store.connection import Store


def reconcile(store: Store, job_id: str, clock: Clock) -> bool:
    """Complete a job that nobody owns any more; return whether it was changed.

    An unclaimed submission fails once its deadline has passed; an owned job is lost on proof of its owner's death.

    Raises:
        JobNotFoundError: there is no such job.
    """
    if store.read_only:
        return False
    snapshot = load_snapshot(store, job_id)
    if not _needs_attention(store, snapshot, clock):
        return False
    from jobman.recovery import losing  # rarely needed, and heavy: see above

    return losing.settle(store, snapshot, clock)


def reconcile_all(store: Store, clock: Clock, *, at_most: int | None = None) -> int:
    """Reconcile every job that is not completed, and lost ones that hold slots; return how many were changed.

    With ``at_most`` no more than that: each is a transaction. After a restart under thousands of jobs a look is to be
    short all the same; the next one goes on. Jobs that are looked at and left as they are do not count.
    """
    if store.read_only:
        return 0
    changed = 0
    for job_id in suspects(store, clock):
        changed += reconcile(store, job_id, clock)
        if changed == at_most:
            break
    _sweep(store)
    return changed


def suspects(store: Store, clock: Clock) -> list[str]:
    """Return the jobs that deserve a closer look: one query, one look at each lock.

    Those whose supervisor does not hold its lock, or whose offer has expired, and completed ones that hold slots.
    """
    boot_id, now_ns = own_boot_id(), clock.wall_ns()
    found = []
    for owned in load_ownership(store):
        job_id, deadline_ns, boot, device, inode = owned
        expired = deadline_ns is not None and now_ns >= deadline_ns
        known = device is not None and inode is not None and boot == boot_id
        held = known and _is_held(lock_path(store.root, job_id), device or 0, inode or 0)
        if expired or (deadline_ns is None and not held):
            found.append(job_id)
    return found


def _sweep(store: Store) -> None:
    """Remove what a supervisor left that was killed after its job was completed: files that nobody holds."""
    try:
        names = [name for name in os.listdir(f"{store.root}/run") if name.endswith(LOCK_SUFFIX)]
    except OSError:
        return
    for name in names:
        job_id, path = name.removesuffix(LOCK_SUFFIX), f"{store.root}/run/{name}"
        if not is_locked(path) and is_completed(store, job_id):
            from jobman.recovery import losing  # rarely needed, and heavy: see above

            losing.remove_endpoint(store, job_id)
            losing.remove_traces(store.root, job_id)


class OwnerWatch:
    """Repeated looks at the owners of some jobs: two system calls for one that lives, once its lock is known.

    Which file carries a supervisor's lock never changes, so the store is asked for it once.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._locks: dict[str, LockFile] = {}

    def check(self, job_ids: Sequence[str]) -> bool:
        """Reconcile those of the jobs that look abandoned; return whether any was changed."""
        changed = [self._check(job_id) for job_id in job_ids]
        return any(changed)

    def _check(self, job_id: str) -> bool:
        lock = self._locks.get(job_id)
        if lock is not None and _is_held(lock_path(self._store.root, job_id), *lock):
            return False
        if reconcile(self._store, job_id, self._clock):
            return True
        supervisor = load_supervisor(self._store, job_id)
        if supervisor is not None and supervisor.identity.boot_id == own_boot_id():
            self._locks[job_id] = supervisor.lock
        return False


def owner_state(store: Store, supervisor: Supervisor) -> Verdict:
    """Return whether the owner of a job lives, without taking anything."""
    if _holds_its_lock(store, supervisor):
        return Verdict.LIVE
    from jobman.recovery import losing  # rarely needed, and heavy: see above

    return losing.judge_owner(store, supervisor)


def _needs_attention(store: Store, snapshot: Snapshot, clock: Clock) -> bool:
    job = snapshot.job
    if job.phase == JobPhase.COMPLETED:
        # Only a lost job can have ended without giving its slots back: something of its run was alive (D42).
        return snapshot.admission is not None
    if job.phase == JobPhase.SUBMITTING:
        return job.claim is not None and clock.wall_ns() >= job.claim.deadline_ns
    return snapshot.supervisor is not None and not _holds_its_lock(store, snapshot.supervisor)


def _holds_its_lock(store: Store, supervisor: Supervisor) -> bool:
    held = _is_held(lock_path(store.root, supervisor.job_id), *supervisor.lock)
    return held and supervisor.identity.boot_id == own_boot_id()


def is_locked(path: str) -> bool:
    """Say whether somebody holds the lock of a file, whichever it is."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return _is_held(path, status.st_dev, status.st_ino)


def _is_held(path: str, device: int, inode: int) -> bool:
    try:
        return probe(path, device, inode) == HELD
    except OSError:
        return False


def diagnostics_path(root: str, job_id: str) -> str:
    """Return the path of what the supervisor of a job has noted about its own troubles, "" if it had none (D24)."""
    path = f"{root}/run/{job_id}.log"
    try:
        return path if os.lstat(path).st_size else ""
    except OSError:
        return ""
