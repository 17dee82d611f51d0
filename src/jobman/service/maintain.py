"""Cleaning: removing the logs of completed runs, and completed jobs (contract, A.12 and J.7; D1, D11, D13, D19).

A preview makes the same plan and the same checks as a removal, so that it comes to the same totals or to the same
error. One cleaning at a time removes; what it has begun and not finished is finished by the next one.
"""

from __future__ import annotations

import os

from jobman import recovery
from jobman.errors import NotCompletedError, StoreFailureError
from jobman.logs.cleanup import CleaningLock, JobLogs, sync_removals
from jobman.model.state import JobOutcome, JobPhase, Pruning
from jobman.policy.retention import beyond_retention, completed_before, is_older
from jobman.process.liveness import lock_path
from jobman.store.jobs import load_job
from jobman.store.pruning import (
    finish_prunings,
    prunable_runs,
    record_pruned,
    removable_jobs,
    remove_jobs,
    unfinished_prunings,
)
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.clock import Clock
    from jobman.policy.retention import PrunableRun, Retention
    from jobman.store.connection import Store

_AT_ONCE = 100


class Scope(NamedTuple):
    """What is to be cleaned: one job, or all; what is at least so old; or what a retention does not keep.

    ``with_jobs`` also removes jobs that nobody needs any more.
    """

    job_id: str | None = None
    age_ns: int = 0
    retention: Retention | None = None
    with_jobs: bool = True


class Totals(NamedTuple):
    """How much is, or would be, removed; ``bytes`` are those of ``files``, the indexes included."""

    runs: int
    files: int
    bytes: int
    jobs: int


class _Plan(NamedTuple):
    """The runs that lose their logs, the oldest first; the jobs that go; and by job what may lie in its directory."""

    runs: list[PrunableRun]
    job_ids: list[str]
    numbers: dict[str, list[int]]


def preview(store: Store, scope: Scope, clock: Clock) -> Totals:
    """Return what `clean` would remove, and remove nothing. Raises what it would raise."""
    _require_completed(store, scope)
    with CleaningLock(store.root, shared=True):
        plan = _plan(store, scope, clock.wall_ns())
        files = size = 0
        for run in plan.runs:
            with JobLogs(store.root, run.job_id) as logs:
                found = logs.measure(run.number)
            files, size = files + found.files, size + found.bytes
        for job_id in plan.job_ids:
            with JobLogs(store.root, job_id) as logs:
                logs.expect_only(plan.numbers.get(job_id, ()))
    return Totals(len(plan.runs), files, size, len(plan.job_ids))


def clean(store: Store, scope: Scope, clock: Clock) -> Totals:
    """Remove what ``scope`` says and return how much that was; the first failure ends it, and what is done stays done.

    Raises:
        ActiveCaptureError: a run is marked as being recorded.
        NotCompletedError: the job that is named has not ended.
        StoreBusyError: others have been writing for too long.
        StoreFailureError: the store cannot be written to.
        UnsafeLogError: something lies among the logs that is not ours; it was not touched.
        OSError: the file system refuses.
    """
    if store.read_only:
        raise StoreFailureError(detail=f"{store.root} {store.obstacle}")  # before the first file is touched
    _require_completed(store, scope)
    with CleaningLock(store.root, shared=False):
        _finish(store, unfinished_prunings(store))
        if _gives_up(store, scope):
            from jobman.service.survivors import give_up  # rarely needed

            give_up(store, scope.job_id or "", clock)
        plan = _plan(store, scope, clock.wall_ns())
        files = size = 0
        for run in plan.runs:
            removed = _prune(store, run, clock)
            files, size = files + removed.files, size + removed.bytes
        _settle(store, [run.id for run in plan.runs])
        return Totals(len(plan.runs), files, size, _remove_jobs(store, plan.job_ids))


def _require_completed(store: Store, scope: Scope) -> None:
    if scope.job_id is not None:
        job = load_job(store, scope.job_id)
        if job.phase != JobPhase.COMPLETED:
            raise NotCompletedError(job=job.id, phase=job.phase.value)


def _gives_up(store: Store, scope: Scope) -> bool:
    """Whether a lost job is named that holds slots, and whose processes nobody can judge from here.

    Nothing else would ever free them while the machine is up: only the user knows that its container is gone.
    """
    if scope.job_id is None or scope.age_ns or load_job(store, scope.job_id).outcome != JobOutcome.LOST:
        return False
    from jobman.service.survivors import are_unknown  # rarely needed

    return are_unknown(store, scope.job_id)


def _plan(store: Store, scope: Scope, now_ns: int) -> _Plan:
    """Make the plan in three queries, however many jobs there are (C6)."""
    present = prunable_runs(store, scope.job_id)
    if scope.retention is None:
        runs = completed_before(present, scope.age_ns, now_ns)
        job_age_ns: int | None = scope.age_ns
    else:
        runs = beyond_retention(present, scope.retention, now_ns)
        job_age_ns = scope.retention.metadata_age_ns
    if not scope.with_jobs or job_age_ns is None:
        return _Plan(runs, [], {})
    chosen = {run.id for run in runs}
    keeping = {run.job_id for run in present if run.id not in chosen}
    found = removable_jobs(store, scope.job_id, holding=_gives_up(store, scope))
    job_ids = [id_ for id_, at_ns in found if id_ not in keeping and is_older(at_ns, job_age_ns, now_ns)]
    numbers: dict[str, list[int]] = {}
    leftovers = [(job_id, number) for _, job_id, number in unfinished_prunings(store)]
    for job_id, number in [*leftovers, *((run.job_id, run.number) for run in runs)]:
        numbers.setdefault(job_id, []).append(number)
    return _Plan(runs, job_ids, numbers)


def _prune(store: Store, run: PrunableRun, clock: Clock) -> Pruning:
    with JobLogs(store.root, run.job_id) as logs:
        held = logs.claim(run.number)
        logs.empty(run.number)
        pruning = Pruning(clock.wall_ns(), *held)
        record_pruned(store, run, pruning)
        logs.finish(run.number)
    return pruning


def _finish(store: Store, unfinished: Sequence[tuple[str, str, int]]) -> None:
    """Go on with removals whose tombstone was written when they were interrupted."""
    for _, job_id, number in unfinished:
        with JobLogs(store.root, job_id) as logs:
            logs.finish(number)
    _settle(store, [run_id for run_id, _, _ in unfinished])


def _settle(store: Store, run_ids: Sequence[str]) -> None:
    if run_ids:
        sync_removals(store.root)
    for some in _batches(run_ids):
        finish_prunings(store, some)


def _remove_jobs(store: Store, job_ids: Sequence[str]) -> int:
    for job_id in job_ids:
        with JobLogs(store.root, job_id) as logs:
            if not logs.remove_if_empty():
                logs.expect_only(())
    removed = 0
    for some in _batches(job_ids):
        with store.write():
            gone = remove_jobs(store, some)
            # In the transaction: what a crash leaves of them belongs to a job that is still there to be removed.
            for job_id in gone:
                _remove_traces(store.root, job_id)
        removed += len(gone)
    return removed


def _remove_traces(root: str, job_id: str) -> None:
    """Remove what a job left in ``run/``; a supervisor that is about to leave takes its lock and FIFO itself."""
    stem = f"{root}/run/{job_id}"
    for suffix in ("log",) if recovery.is_locked(lock_path(root, job_id)) else ("wake", "log", "lock"):
        try:
            os.unlink(f"{stem}.{suffix}")
        except OSError:
            pass


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))
