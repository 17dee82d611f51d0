"""What a supervisor sees: the store, the clocks, its child, its signals, put into one `Observation`."""

from __future__ import annotations

import os

from jobman.model.state import JobPhase
from jobman.policy.deadline import Budget
from jobman.policy.decide import ChildView, Observation
from jobman.policy.polling import DRAW_RANGE, interval_ns
from jobman.store.dependencies import load_dependencies
from jobman.store.jobs import count_active, load_snapshot
from jobman.store.specs import load_spec
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.model.state import Snapshot
    from jobman.policy.waiting import DependencyState
    from jobman.store.connection import Store
    from jobman.supervisor.run import ActiveRun

_NO_BUDGET = Budget(0, 0)


class Observer:
    """Keeps the last known snapshot and renews it when the store has changed.

    Attributes:
        snapshot: what the store says, or, after a commit of our own, what that made of it.
        store_gone: the database that we opened is not there any more (D43).
    """

    def __init__(self, store: Store, job_id: str, clock: Clock, claimed_ns: int) -> None:
        self.snapshot: Snapshot = load_snapshot(store, job_id)
        self.spec: JobSpec = load_spec(store, job_id)
        self.store_gone = False
        self.backoff_due_ns = 0
        self._store = store
        self._clock = clock
        self._claimed_ns = claimed_ns
        self._dependencies: tuple[DependencyState, ...] = ()
        self._version = -1
        self._next_look_ns = 0

    def look(self, *, woken: bool) -> None:
        """Read the store again if it is time to, or if somebody said so."""
        now_ns = self._clock.monotonic_ns()
        if not woken and now_ns < self._next_look_ns:
            return
        self._next_look_ns = now_ns + self._interval_ns()
        if self.store_gone or self._store.is_replaced():
            self.store_gone = True
            return
        version = self._store.data_version()
        if version != self._version:
            self.reload()
            self._version = version

    def reload(self) -> None:
        """Read the store now."""
        self.snapshot = load_snapshot(self._store, self.snapshot.job.id)
        self.reload_dependencies()

    def reload_dependencies(self) -> None:
        """Read the edges of a job that waits for others."""
        job = self.snapshot.job
        if job.phase == JobPhase.WAITING:
            self._dependencies = tuple(load_dependencies(self._store, [job.id]).get(job.id, ()))

    def next_look_ns(self) -> int:
        """Return the monotonic time of the next look at the store."""
        return self._next_look_ns

    def unmet_dependencies(self) -> list[str]:
        """Return the jobs that this one still waits for."""
        if self.snapshot.job.phase != JobPhase.WAITING:
            return []
        return [state.edge.job_id for state in self._dependencies if state.outcome is None]

    def observe(self, active: ActiveRun | None, *, asked_to_end: bool) -> Observation:
        """Put everything together for one decision."""
        job = self.snapshot.job
        run_budget = _NO_BUDGET
        if active is not None:
            paused_ns = job.total_paused_ns - active.paused_before_ns
            run_budget = Budget(self.spec.timeouts.run_ns, active.reserved_ns, paused_ns)
        return Observation(
            now_ns=self._clock.monotonic_ns(),
            snapshot=self.snapshot,
            spec=self.spec,
            child=ChildView() if active is None else active.view(),
            job_budget=Budget(self.spec.timeouts.job_ns, self._claimed_ns, job.total_paused_ns),
            run_budget=run_budget,
            backoff_left_ns=self.backoff_due_ns - self._clock.boottime_ns(),
            dependencies=self._dependencies,
            asked_to_end=asked_to_end,
        )

    def _interval_ns(self) -> int:
        draw = int.from_bytes(os.urandom(2), "little") % DRAW_RANGE
        active = 0 if self.store_gone else count_active(self._store)
        return interval_ns(active, draw)
