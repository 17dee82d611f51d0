"""What a supervisor sees: the store, the clocks, its child, its signals, put into one `Observation`."""

from __future__ import annotations

import os

from jobman import process
from jobman.model.spec import StdinPolicy
from jobman.model.state import JobPhase
from jobman.policy.deadline import Budget
from jobman.policy.observation import ChildView, Observation
from jobman.policy.polling import DRAW_RANGE, next_look_ns
from jobman.store.admissions import held_jobs, is_first, next_ahead
from jobman.store.dependencies import has_news, load_dependencies
from jobman.store.jobs import count_active, load_snapshot, revision_of
from jobman.store.live_input import eof_run
from jobman.store.specs import load_spec
from jobman.supervisor.admission import UNTRIED
from jobman.supervisor.admission import look as look_for_slots
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.model.state import Snapshot
    from jobman.policy.observation import Attempt
    from jobman.policy.waiting import DependencyState
    from jobman.store.connection import Store
    from jobman.supervisor.conditions import ConditionWatch
    from jobman.supervisor.run import ActiveRun

_NO_BUDGET = Budget(0, 0)
_NO_RUN = process.RunTree(os.getpid(), leader_pid=-1, run_id="")
_NEVER_NS = 2**63
_UNREAD = -1
_COUNT_EVERY_NS = 1_000_000_000
_WITHOUT_A_PLACE = (JobPhase.WAITING, JobPhase.BACKOFF, JobPhase.RUNNING)
"""From here a job comes to the queue anew: no row of it is there (`admission.UNTRIED`)."""
_BEFORE_THE_GATE = (JobPhase.STARTING, JobPhase.WAITING, JobPhase.PAUSED)


class Observer:
    """Keeps the last known snapshot and renews it when the store has changed.

    Attributes:
        snapshot: what the store says, or, after a commit of our own, what that made of it.
        spec: what the job is to do.
        store_gone: the database that we opened is not there any more (D43).
        ahead: the snapshot holds an intent that the store could not take yet.
        backoff_due_ns: boot-time clock at which the next run is due.
        watch: the wait conditions, until the gate has opened.
        eof_run_id: the run whose end of input a client has asked for, of a job that takes live input.
    """

    def __init__(self, store: Store, job_id: str, *, clock: Clock, claimed_ns: int) -> None:
        self.snapshot: Snapshot = load_snapshot(store, job_id)
        self.spec: JobSpec = load_spec(store, job_id)
        self.store_gone = False
        self.ahead = False
        self.eof_run_id: str | None = None
        self.backoff_due_ns = 0
        self._store = store
        self._clock = clock
        self._claimed_ns = claimed_ns
        self._dependencies: tuple[DependencyState, ...] = ()
        self._version = self._seen = _UNREAD
        self._active = 0
        self._count_at_ns = 0
        self._count_is_old = True
        self._first_in_queue: bool | None = None
        self._untried = True
        self._next_look_ns = 0
        self._attempt: Attempt | None = None
        self._attempt_until_ns = 0
        self.watch: ConditionWatch | None = None

    def look(self, *, woken: bool) -> None:
        """Read the store again if it is time to, or if somebody said so."""
        now_ns = self._clock.monotonic_ns()
        if not woken and now_ns < self._next_look_ns:
            return
        # Whoever wakes us has committed something that concerns us: asking whether it does would read it twice.
        news = self._has_changed() if woken else self.peek()
        if not news or self.store_gone or self.ahead:
            return
        self._version = self._seen
        self.reload()

    def peek(self) -> bool:
        """Say whether there is something new to read that may change a decision; sets the next look."""
        if not self._has_changed():
            return False
        if not self.store_gone and self._version != _UNREAD and not self._concerns_us():
            self._version = self._seen
            return False
        return True

    def _has_changed(self) -> bool:
        """Say whether others have committed since the last read, at the price of one ``lstat`` and one pragma.

        Most looks of a waiting supervisor end here (D41).
        """
        self.store_gone = self.store_gone or self._store.is_replaced()
        self._next_look_ns = self._following_look_ns()
        if self.store_gone:
            return True
        # Asked for before the read: what is committed in between is read twice, and never missed.
        self._seen = self._store.data_version()
        changed = self._seen != self._version
        self._count_is_old = self._count_is_old or changed
        return changed

    def _count_active(self) -> None:
        """Learn once a second at most with how many supervisors the polling budget is shared.

        At the look after a change, not at the one that finds it: somebody may wait for what that leads to.
        """
        now_ns = self._clock.monotonic_ns()
        if self._count_is_old and now_ns >= self._count_at_ns:
            self._count_at_ns = now_ns + _COUNT_EVERY_NS
            self._active = count_active(self._store)
            self._count_is_old = False

    def _concerns_us(self) -> bool:
        """Say whether what others have committed may change a decision; most of it is about other jobs."""
        job = self.snapshot.job
        if job.phase in (JobPhase.QUEUED, JobPhase.STARTING):
            return True  # who holds slots, and who waits for them
        if revision_of(self._store, job.id) != job.revision or self._eof_run() != self.eof_run_id:
            return True
        return job.phase == JobPhase.WAITING and has_news(self._store, job.id)

    def reload(self) -> None:
        """Read the store now."""
        self.advance(load_snapshot(self._store, self.snapshot.job.id))
        self.eof_run_id = self._eof_run()
        self.reload_dependencies()

    def _eof_run(self) -> str | None:
        # Not a change of the job: it has no revision, and must not make the supervisor lose a commit of its own.
        return eof_run(self._store, self.snapshot.job.id) if self.spec.stdin == StdinPolicy.LIVE else None

    def distrust(self) -> None:
        """Read the store before the next decision: what was concluded from the last snapshot was not committed."""
        self._version = _UNREAD
        self._next_look_ns = 0

    def advance(self, snapshot: Snapshot) -> None:
        """Go on from a newer snapshot, such as what a commit of our own made of the last one."""
        before, phase = self.snapshot.job.phase, snapshot.job.phase
        self.snapshot = snapshot
        self._attempt = self._first_in_queue = None
        self._untried = phase == JobPhase.STARTING or (phase == JobPhase.QUEUED and before in _WITHOUT_A_PLACE)

    def attempted(self, snapshot: Snapshot) -> None:
        """Go on from what an attempt to get slots made of the last snapshot."""
        self.advance(snapshot)
        self._untried = False

    def reload_dependencies(self) -> None:
        """Read the edges of a job that waits for others."""
        job = self.snapshot.job
        if job.phase == JobPhase.WAITING:
            self._dependencies = tuple(load_dependencies(self._store, [job.id]).get(job.id, ()))

    def next_look_ns(self) -> int:
        """Return the monotonic time of the next look at the store, or at a wait condition if that comes first."""
        if self.watch is None or self.snapshot.job.phase != JobPhase.WAITING:
            return self._next_look_ns
        return min(self._next_look_ns, self._clock.monotonic_ns() + self.watch.due_in_ns())

    def descriptors(self) -> list[int]:
        """Return what running probes make readable when something happens."""
        return [] if self.watch is None else self.watch.descriptors()

    def waited_for(self) -> list[str]:
        """Return the jobs that this one waits for.

        Its dependencies; in the queue the one ahead, whose place a dead owner would keep for ever, and those that hold
        slots: the first in the queue would do, but it may hang.
        """
        phase = self.snapshot.job.phase
        if phase == JobPhase.WAITING:
            return [state.edge.job_id for state in self._dependencies if state.outcome is None]
        if phase != JobPhase.QUEUED:
            return []
        ahead = next_ahead(self._store, self.snapshot.job.id)
        holders = held_jobs(self._store)
        return holders if ahead is None else [ahead, *holders]

    def condition_is_due(self) -> bool:
        """Say whether a wait condition should be looked at now."""
        watching = self.watch is not None and self.snapshot.job.phase == JobPhase.WAITING
        return watching and self.watch is not None and self.watch.due_in_ns() == 0

    def observe(self, active: ActiveRun | None, *, asked_to_end: bool) -> Observation:
        """Put everything together for one decision."""
        job = self.snapshot.job
        run_budget = _NO_BUDGET
        if active is not None:
            paused_ns = job.total_paused_ns - active.paused_before_ns
            run_budget = Budget(self.spec.timeouts.run_ns, active.reserved_ns, paused_ns)
        self._leave_the_gate()
        waiting = self.watch if job.phase == JobPhase.WAITING else None
        # Not inside a transaction: nothing may fork, or wait for a file system, while it holds the writers' lock.
        if active is None and not self._store.in_transaction():
            self._look_at_children(waiting)
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
            wall_ns=self._clock.wall_ns(),
            conditions=() if waiting is None else waiting.states,
            unwritten=() if waiting is None else waiting.unwritten(),
            attempt=self._look_for_slots(),
        )

    def _look_at_children(self, waiting: ConditionWatch | None) -> None:
        """Look at probes, and reap what they, or earlier runs, have left to us: days may pass (field case 10)."""
        if waiting is not None:
            waiting.look()
        if self.spec.waits.conditions or self.snapshot.job.counters.runs:
            try:
                process.reap_adopted(_NO_RUN, helpers=() if waiting is None else waiting.pids())
            except OSError:
                pass  # a shortage of descriptors may last: nothing else has to wait until they can be reaped

    def _leave_the_gate(self) -> None:
        # Not inside a transaction: it may be rolled back, and the job be waiting again.
        if self.watch is None or self._store.in_transaction():
            return
        job = self.snapshot.job
        # Admitted jobs are "starting" again; a probe must be gone before the run looks for children to reap.
        if job.phase not in _BEFORE_THE_GATE or job.prerequisites_satisfied_at_ns is not None:
            self.watch.close()
            self.watch = None
        elif job.phase == JobPhase.PAUSED:
            # Nobody would take in their results or end them in time, and one that has ended would keep the loop awake.
            self.watch.close()

    def _look_for_slots(self) -> Attempt | None:
        """Return what an attempt would come to; asked again only when the store or time may have changed it."""
        job, _, _, admission = self.snapshot
        if self.store_gone or admission is not None or job.phase not in (JobPhase.QUEUED, JobPhase.STARTING):
            return None
        if self._untried:
            return UNTRIED
        now_ns = self._clock.monotonic_ns()
        if self._attempt is None or now_ns >= self._attempt_until_ns:
            self._attempt = look_for_slots(self._store, self.snapshot, self.spec, self._clock)
            retry_ns = self._attempt.verdict.retry_ns
            self._attempt_until_ns = _NEVER_NS if retry_ns is None else now_ns + retry_ns
        return self._attempt

    def _following_look_ns(self) -> int:
        # The first of a queue keeps the shortest interval, so that a lost wake-up costs no more than that.
        active = 0
        if not self.store_gone and not self._is_first_in_queue():
            self._count_active()
            active = self._active
        return next_look_ns(self._clock.monotonic_ns(), active, _draw)

    def _is_first_in_queue(self) -> bool:
        job = self.snapshot.job
        if job.phase != JobPhase.QUEUED:
            return False
        if self._first_in_queue is None:
            self._first_in_queue = is_first(self._store, job.id)
        return self._first_in_queue


def _draw() -> int:
    return int.from_bytes(os.urandom(2), "little") % DRAW_RANGE
