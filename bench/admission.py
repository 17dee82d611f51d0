"""What an attempt to get slots costs while a thousand others wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.bed import Bed, Row, interleave, milliseconds
from jobman.clock import SystemClock
from jobman.model.identity import ProcessIdentity
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.spec import JobSpec
from jobman.model.state import LockFile, Reason
from jobman.model.transitions import running, submission
from jobman.model.transitions._change import Now
from jobman.policy.admission import Request
from jobman.policy.limits import StatedLimits
from jobman.store.admissions import enqueue
from jobman.store.commit import commit, commit_submission
from jobman.store.connection import open_store
from jobman.store.jobs import load_snapshot
from jobman.store.limits import apply_stated
from jobman.supervisor.admission import attempt, look

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jobman.store.connection import Store

_QUEUED = 1_000
_SPEC = JobSpec("true", (), "/", pool="bench")
_CLOCK = SystemClock()


def attempts(bed: Bed) -> list[Row]:
    """Measure the attempt that admits the first of many, and the one that finds the last still has to wait."""
    count = bed.pick(_QUEUED, 20)
    queue = Queue(bed.state, count)
    written_ns, admitted_ns, waited_ns = interleave(bed.pick(40, 2), *queue.measures())
    queue.close()
    measured = f"{milliseconds(admitted_ns)} to be admitted, {milliseconds(waited_ns)} to wait"
    yardstick = f"a committed write of one row {milliseconds(written_ns)}"
    what = f"attempt to get slots, {count} queued"
    value = max(admitted_ns, waited_ns) / written_ns
    return [Row("admission_attempt", what, measured, yardstick, value, 3.0)]


class Queue:
    """Jobs that wait for slots in a store, and what can be measured of it."""

    def __init__(self, state: str, count: int) -> None:
        self._store = open_store(state)
        self._job_ids = _queue(self._store, count)

    def measures(self) -> tuple[Callable[[], int], ...]:
        """Return measurements of a committed write of one row, of an attempt that is admitted, of one that waits."""
        store = self._store
        return _writes(store), _admits(store, iter(self._job_ids)), _waits(store, self._job_ids[-1])

    def close(self) -> None:
        """Close the store."""
        self._store.close()


def _queue(store: Store, count: int) -> list[str]:
    """Let jobs wait for the one slot of a pool; return their IDs, the first in the queue first."""
    limits = StatedLimits(states_store_wide=False, store_wide=None, pools={"bench": 1, "yardstick": 1})
    apply_stated(store, limits)
    with store.write():
        return [queued(store, place) for place in range(count)]


def queued(store: Store, place: int) -> str:
    """Store a job that waits for slots, in the transaction that is open; return its ID."""
    now = _now()
    job_id = new_id(now.wall_ns, place.to_bytes(RANDOM_BYTES))
    owner = new_id(now.wall_ns, (_QUEUED + place).to_bytes(RANDOM_BYTES))
    submitted = submission.submit(job_id, "", credential_hash=bytes(32), now=now)
    commit_submission(store, submitted, _SPEC)
    claimant = submission.Claimant(owner, ProcessIdentity(1, "1", "boot", "namespace"), LockFile(1, 1), bytes(32))
    claimed = submission.claim(submitted.after, claimant, now)
    commit(store, claimed)
    commit(store, running.enqueue(claimed.after, Reason.ADMISSION_CAPACITY, now))
    enqueue(store, Request(job_id, _SPEC.pool, _SPEC.slots, place))
    return job_id


def _writes(store: Store) -> Callable[[], int]:
    capacity = 1

    def write() -> int:
        nonlocal capacity
        capacity = 3 - capacity
        began_ns = _CLOCK.monotonic_ns()
        with store.write():
            store.execute("UPDATE concurrency_limits SET capacity = ? WHERE scope = 'yardstick'", (capacity,))
        return _CLOCK.monotonic_ns() - began_ns

    return write


def _admits(store: Store, job_ids: Iterator[str]) -> Callable[[], int]:
    def admit() -> int:
        snapshot = load_snapshot(store, next(job_ids))
        began_ns = _CLOCK.monotonic_ns()
        after = attempt(store, snapshot, _SPEC, clock=_CLOCK, now=_now())
        elapsed_ns = _CLOCK.monotonic_ns() - began_ns
        if after.admission is None:
            raise SystemExit("the first in the queue was not admitted")
        with store.write():
            store.execute("UPDATE admissions SET released_at_ns = acquired_at_ns WHERE released_at_ns IS NULL")
        return elapsed_ns

    return admit


def _waits(store: Store, job_id: str) -> Callable[[], int]:
    def wait() -> int:
        snapshot = load_snapshot(store, job_id)
        began_ns = _CLOCK.monotonic_ns()
        look(store, snapshot, _SPEC, _CLOCK)
        return _CLOCK.monotonic_ns() - began_ns

    return wait


def _now() -> Now:
    return Now(_CLOCK.wall_ns(), _CLOCK.monotonic_ns())
