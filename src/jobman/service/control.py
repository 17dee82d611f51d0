"""Acting on jobs that somebody else owns: cancel, and wait."""

from __future__ import annotations

import time

from jobman import recovery
from jobman.errors import NoActiveRunError, RevisionConflictError, WaitTimeoutError
from jobman.model.state import JobOutcome, JobPhase
from jobman.model.transitions import stopping
from jobman.model.transitions._change import Now
from jobman.model.transitions.stopping import request_cancel
from jobman.process.wake import wake_jobs
from jobman.service.notify import Leftovers
from jobman.service.query import select_run
from jobman.store.commit import commit
from jobman.store.jobs import load_job, load_runs, load_snapshot, phases_of
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jobman.clock import Clock
    from jobman.model.events import Transition
    from jobman.model.state import Job, Snapshot
    from jobman.store.connection import Store

_ATTEMPTS = 50
_CONFIRMATION_NS = 2_000_000_000
_FIRST_PAUSE_NS = 2_000_000
_LONGEST_PAUSE_NS = 50_000_000
_INSPECT_EVERY_NS = 500_000_000
_NANOSECONDS = 1_000_000_000


def cancel(store: Store, job_id: str, clock: Clock, *, run_number: int | None = None) -> Job:
    """Make it durable that the job is to end as ``cancelled``, and wake its supervisor, which sends the signals (D27).

    Idempotent: a job that is stopping or completed stays as it is. Of a lost one, what is still alive is stopped (D25).

    Args:
        store: the store.
        job_id: the job.
        clock: dates the request.
        run_number: if given, only that run may be the active one.

    Raises:
        NoActiveRunError: ``run_number`` is not the active run.
        TransitionError: the job is still ``submitting``.
    """

    def request(snapshot: Snapshot, now: Now) -> Transition | None:
        if run_number is not None:
            _require_active(store, snapshot.job, run_number)
        return request_cancel(snapshot, now)

    job = _intend(store, job_id, clock, request)
    if job.outcome == JobOutcome.LOST:
        from jobman.service.survivors import stop_survivors  # rarely needed

        stop_survivors(store, job_id, clock)
    return job


def pause(store: Store, job_id: str, clock: Clock) -> Job:
    """Make it durable that the job is to stay where it is; a paused job stays as it is.

    Raises:
        TransitionError: the job is submitting, starting, stopping or completed.
    """

    def request(snapshot: Snapshot, now: Now) -> Transition | None:
        return None if snapshot.job.phase == JobPhase.PAUSED else stopping.pause(snapshot, now)

    return _intend(store, job_id, clock, request)


def resume(store: Store, job_id: str, clock: Clock) -> Job:
    """Make it durable that a paused job is to go on.

    Raises:
        TransitionError: the job is not paused.
    """
    return _intend(store, job_id, clock, stopping.resume)


def confirm_signal(store: Store, job: Job, clock: Clock) -> bool:
    """Wait until the supervisor has signalled the run of a job that was paused or resumed; ``False`` after 2 s.

    A job without a run, or one that has moved on, needs no signal.
    """
    deadline_ns = clock.monotonic_ns() + _CONFIRMATION_NS
    while True:
        snapshot = load_snapshot(store, job.id)
        if snapshot.run is None or snapshot.job.revision != job.revision or snapshot.run.signalled_at_ns is not None:
            return True
        if clock.monotonic_ns() >= deadline_ns:
            return False
        time.sleep(_FIRST_PAUSE_NS / _NANOSECONDS)


def _intend(store: Store, job_id: str, clock: Clock, request: Callable[[Snapshot, Now], Transition | None]) -> Job:
    """Commit what ``request`` makes of the job, and wake its supervisor; ``None`` leaves the job as it is."""
    for _ in range(_ATTEMPTS):
        snapshot = load_snapshot(store, job_id)
        transition = request(snapshot, Now(clock.wall_ns(), clock.monotonic_ns()))
        if transition is None:
            return snapshot.job
        try:
            commit(store, transition)
        except RevisionConflictError:
            continue  # the supervisor was quicker; look again
        wake_jobs(store.root, (job_id,))
        return transition.after.job
    raise RevisionConflictError(entity=f"job {job_id}")


def wait_for(store: Store, job_ids: Sequence[str], clock: Clock, *, timeout_ns: int | None = None) -> Iterator[Job]:
    """Yield each of the jobs as it completes; observes only, so ending the wait changes nothing (M6).

    Reconciles the jobs every half second: a dead owner, or a submission that nobody claims, would be waited for in
    vain.

    Raises:
        JobNotFoundError: a job has been removed.
        WaitTimeoutError: ``timeout_ns`` has elapsed; jobs that are completed by then have been yielded.
    """
    pending = dict.fromkeys(job_ids)
    deadline_ns = None if timeout_ns is None else clock.monotonic_ns() + timeout_ns
    pauses, leftovers = _Pauses(clock), Leftovers(store, clock)
    owners = recovery.OwnerWatch(store, clock)
    while True:
        if pauses.inspection_is_due():
            owners.check(tuple(pending))
            leftovers.send()
        # Only what has ended is read whole: the store changes often while hundreds are waited for.
        phases = phases_of(store, pending)
        for job_id in [job_id for job_id in pending if phases.get(job_id) in {JobPhase.COMPLETED, None}]:
            del pending[job_id]
            yield load_job(store, job_id)
        if not pending:
            return
        if deadline_ns is not None and clock.monotonic_ns() >= deadline_ns:
            raise WaitTimeoutError(pending=counted(len(pending), "job"))
        pauses.sleep(store.data_version, deadline_ns)


class _Pauses:
    """Short pauses first, for jobs that end at once; longer ones later, unless the store changes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause_ns = _FIRST_PAUSE_NS
        self._inspect_at_ns = 0

    def inspection_is_due(self) -> bool:
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._inspect_at_ns:
            return False
        self._inspect_at_ns = now_ns + _INSPECT_EVERY_NS
        return True

    def sleep(self, version: Callable[[], int], deadline_ns: int | None) -> None:
        """Sleep until the store has changed, a deadline has come, or an inspection is due."""
        seen = version()
        while True:
            now_ns = self._clock.monotonic_ns()
            left_ns = self._inspect_at_ns - now_ns
            if deadline_ns is not None:
                left_ns = min(left_ns, deadline_ns - now_ns)
            if left_ns <= 0 or version() != seen:
                return
            time.sleep(min(self._pause_ns, left_ns) / _NANOSECONDS)
            self._pause_ns = min(_LONGEST_PAUSE_NS, self._pause_ns + self._pause_ns // 2)


def _require_active(store: Store, job: Job, number: int) -> None:
    run = select_run(job.id, load_runs(store, [job.id]).get(job.id, ()), number)
    if run.id != job.active_run_id:
        raise NoActiveRunError(job=job.id, run=run.number)
