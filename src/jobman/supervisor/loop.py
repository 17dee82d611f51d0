"""The loop of a supervisor: observe, decide, commit, perform, until the job is completed.

Everything that can happen (output, the end of the child, signals, wake-ups, deadlines) only wakes the loop; what to do
about it is decided in one place, from one observation.
"""

from __future__ import annotations

# What is needed late is loaded early, because the package may be replaced while a target runs: ``resource`` is what
# ``os.wait4`` imports, ``losing`` what `recovery.reconcile` does.
import errno
import resource  # noqa: F401  # see above
import select

import jobman.recovery.losing  # see above
import jobman.store.outbox  # noqa: F401  # see above: any commit may be something to tell
from jobman import process, recovery
from jobman.clock import SystemClock
from jobman.errors import (
    InvariantError,
    JobNotFoundError,
    RevisionConflictError,
    StoreBusyError,
    StoreFailureError,
    StoreForeignError,
)
from jobman.policy.decide import decide
from jobman.policy.observation import Act, Decision
from jobman.store.jobs import has_open_deliveries
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS
from jobman.supervisor.deliveries import Deliveries
from jobman.supervisor.observe import Observer
from jobman.supervisor.perform import Performer
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.supervisor.ownership import Ownership
    from jobman.supervisor.run import ActiveRun

_PATIENCE_WITH_TARGET_NS = 50_000_000
_LONGEST_WITH_TARGET_NS = 1_000_000_000
_RETRY_FIRST_NS = 100_000_000
_RETRY_LAST_NS = 5_000_000_000
_INSPECT_EVERY_NS = 2_000_000_000
_INSPECT_AT_ONCE = 16
_BUSY_WORTH_A_NOTE_NS = 2_000_000_000
_SHORT_READ = 16 * 1024
_BREATH_NS = 1_000_000
_NANOSECONDS_PER_MILLISECOND = 1_000_000
_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN))
"""What a look at the process table may fail with on a machine that is full, and not for long."""
_WITHOUT_STORE = frozenset(
    (
        Act.REQUEST_CANCEL,
        Act.REQUEST_JOB_TIMEOUT,
        Act.REQUEST_RUN_TIMEOUT,
        Act.ASK,
        Act.INSIST,
        Act.RECORD_SIGNALLED,
        Act.RECORD_UNKILLABLE,
        Act.STOP_DRAINING,
    )
)
# Done although the store fails, or without it.
_NO_PROOF_OF_STORE = _WITHOUT_STORE | {Act.LAUNCH, Act.OPEN_GATE, Act.CLOSE_GATE, Act.SUSPEND, Act.CONTINUE}
_BOOKKEEPING = frozenset(
    (Act.AWAIT_PREREQUISITES, Act.RECORD_OBSERVATIONS, Act.RECORD_EVALUATIONS, Act.ENQUEUE, Act.ADMIT, Act.RESERVE_RUN)
)


def supervise(owner: Ownership) -> None:
    """Own the job until it is completed, or until the store it belongs to is gone and nothing runs any more."""
    clock = SystemClock()
    observer = Observer(owner.store, owner.job_id, clock=clock, claimed_ns=owner.claimed_ns)
    performer = Performer(owner, observer, clock)
    performer.watch_conditions()
    performer.stdin.offer(clock)
    try:
        Loop(owner, observer, performer, clock).run()
    finally:
        performer.stdin.close()


class Loop:
    """One supervisor's loop; ``step`` is one round of it, for tests."""

    def __init__(self, owner: Ownership, observer: Observer, performer: Performer, clock: Clock) -> None:
        self._owner = owner
        self._observer = observer
        self._performer = performer
        self._clock = clock
        self._woken = True
        self._store_retry_ns = 0
        self._store_pause_ns = _RETRY_FIRST_NS
        self._refusals = 0
        self._refused_since_ns = 0
        self._lost = False
        self._settled = False
        self._notes = performer.notes
        self._inspect_at_ns = 0
        self._inspected = 0
        # What a supervisor without children polls never changes.
        self._poller = select.poll()
        self._poller.register(owner.wake.fileno(), select.POLLIN)
        self._owners = recovery.OwnerWatch(owner.store, clock)
        self._deliveries = Deliveries(owner.store, observer.spec)
        # What a crash left is sent by whoever comes next.
        owner.store.has_queued = owner.store.has_queued or has_open_deliveries(owner.store)

    def run(self) -> None:
        """Go round until there is nothing left to do."""
        while self.step():
            pass

    def step(self) -> bool:
        """Observe, decide, and either perform or wait; return whether to go on."""
        try:
            self._deliveries.start_for_queued()
            decision = self._decide()
            self._note_a_lost_store()
            if decision.act == Act.LEAVE or (self._observer.store_gone and self._performer.active is None):
                return False
            if decision.act == Act.WAIT:
                self._wait(decision.wait_ns)
            else:
                self._perform(decision)
            self._notes.over("system")
        except RevisionConflictError:
            self._woken = True
            self._performer.forget_intents()
            # Read within the next round, which knows what to do if that fails, and at once: the store works.
            self._observer.distrust()
            self._store_retry_ns = 0
        except (JobNotFoundError, InvariantError) as error:
            if self._observer.store_gone:
                raise  # not the store's doing
            # The database was overwritten in its place, by an older copy or by anything else (D43).
            self._notes.note(f"store: {error}")
            self._observer.store_gone = True
        except StoreBusyError as error:
            # It queued for as long as a target may go undrained; after a look at the pipes it queues again.
            self._note_refusal(error)
            self._postpone(_BREATH_NS)
            self._handle(self._poll(0))
        except (StoreFailureError, StoreForeignError) as error:
            self._notes.trouble("store", str(error))
            self._postpone(self._store_pause_ns)
            self._store_pause_ns = min(_RETRY_LAST_NS, 2 * self._store_pause_ns)
            # Asked to end, with nothing to look after and nobody to tell: the next look finds the job lost.
            return self._performer.active is not None or not self._owner.asked_to_end
        except OSError as error:
            if error.errno not in _SHORTAGES:
                raise
            # Nothing was done: the processes are looked up again, and signalled, when there is room for it.
            self._notes.trouble("system", error.strerror or str(error))
            select.select((), (), (), _RETRY_FIRST_NS / 1e9)
        return True

    def _decide(self) -> Decision:
        if self._clock.monotonic_ns() < self._store_retry_ns:
            return self._decide_without_store()
        self._observer.look(woken=self._woken)
        self._woken = False
        self._performer.stdin.finish(self._observer.eof_run_id)
        self._inspect_owners()
        return self._decide_now()

    def _decide_without_store(self) -> Decision:
        """Go on with what needs no store: draining, deadlines, the tree; everything else waits for it (D23)."""
        decision = self._decide_now()
        if self._performer.active is not None and decision.act in _WITHOUT_STORE:
            return decision
        left_ns = max(0, self._store_retry_ns - self._clock.monotonic_ns())
        due_ns = decision.wait_ns if decision.act == Act.WAIT and decision.wait_ns is not None else left_ns
        return Decision(Act.WAIT, "the store is not available", min(left_ns, due_ns))

    def _decide_now(self) -> Decision:
        return decide(self._observer.observe(self._performer.active, asked_to_end=bool(self._owner.asked_to_end)))

    def _perform(self, decision: Decision) -> None:
        if not self._observer.store_gone and self._owner.store.is_replaced():
            # Committing to a database that nobody can open any more would look like success (D43).
            self._observer.store_gone = True
            return
        self._owner.store.patience_ns = self._patience_ns()
        if decision.act in _BOOKKEEPING:
            self._keep_books(decision)
        else:
            self._performer.perform(decision)
        self._store_pause_ns = _RETRY_FIRST_NS
        self._refusals = self._refused_since_ns = 0
        if decision.act not in _NO_PROOF_OF_STORE:
            self._notes.over("store")

    def _note_refusal(self, error: StoreBusyError) -> None:
        now_ns = self._clock.monotonic_ns()
        self._refused_since_ns = self._refused_since_ns or now_ns
        self._refusals += 1
        # For a moment now and then it is ordinary.
        if now_ns - self._refused_since_ns >= _BUSY_WORTH_A_NOTE_NS:
            self._notes.trouble("store", str(error))

    def _note_a_lost_store(self) -> None:
        if self._observer.store_gone and not self._lost:
            self._lost = True
            self._notes.note("the database was removed or replaced: what becomes of the job is not recorded any more")

    def _patience_ns(self) -> int:
        """Return how long to queue for the store: a target that may write must be drained, nothing else is in a hurry.

        Each refusal doubles the patience: hundreds that leave the queue and come back at once keep the processor
        from whoever holds the lock. A target that was silent meanwhile has its pipes for that long.
        """
        active = self._performer.active
        if active is None or not active.may_write():
            return SUPERVISOR_PATIENCE_NS
        return min(_LONGEST_WITH_TARGET_NS, _PATIENCE_WITH_TARGET_NS << min(self._refusals, 10))

    def _keep_books(self, decision: Decision) -> None:
        """Commit this decision and those that follow from it at once, as long as none has an effect outside the store.

        From "the last dependency has ended" to "admitted" is one transaction then, not four with a sync each.
        """
        try:
            with self._owner.store.write():
                self._performer.stdin.publish()
                while decision.act in _BOOKKEEPING:
                    self._performer.perform(decision)
                    decision = self._decide_now()
        except BaseException:
            self._performer.take_back()
            self._observer.distrust()
            raise

    def _postpone(self, pause_ns: int) -> None:
        self._store_retry_ns = self._clock.monotonic_ns() + pause_ns
        if self._owner.store.is_replaced():
            self._observer.store_gone = True
            self._store_retry_ns = 0

    def _inspect_owners(self) -> None:
        """Look after the owners of the jobs that this one waits for: a dead one would be waited for in vain (O.24)."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._inspect_at_ns or self._observer.store_gone:
            return
        self._inspect_at_ns = now_ns + _INSPECT_EVERY_NS
        jobs = self._observer.waited_for()
        # A few at a time, in turn: a job may wait for hundreds, and they have their own supervisors.
        self._inspected = (self._inspected + _INSPECT_AT_ONCE) % max(1, len(jobs))
        turn = (jobs + jobs)[self._inspected : self._inspected + min(_INSPECT_AT_ONCE, len(jobs))]
        if self._owners.check(turn):
            self._woken = True
            self._observer.reload()

    # --- Waiting ---------------------------------------------------------------------------------------------------

    def _wait(self, due_in_ns: int | None) -> None:
        """Sleep until something calls for another decision; output alone does not, nor a store that is as it was."""
        due_ns = None if due_in_ns is None else self._clock.monotonic_ns() + due_in_ns
        short_reads = 0
        while not self._woken:
            moved = self._handle(self._poll(self._until_ns(due_ns)))
            self._performer.renew_lease_if_due()
            if moved is None or (due_ns is not None and self._clock.monotonic_ns() >= due_ns) or not self._is_quiet():
                return
            # A target that writes line by line is read a millisecond later, a batch at a time.
            short_reads = short_reads + 1 if 0 < moved < _SHORT_READ else 0
            if short_reads > 1:
                select.select((), (), (), _BREATH_NS / 1e9)

    def _is_quiet(self) -> bool:
        """Say whether the time for a look has not come, or the look finds nothing that would change a decision."""
        now_ns = self._clock.monotonic_ns()
        if self._store_retry_ns > now_ns:
            return True
        if now_ns < self._observer.next_look_ns():
            return True
        # The last decision was made without the store, or a wait condition has to be looked at.
        if self._store_retry_ns or self._observer.condition_is_due():
            self._store_retry_ns = 0
            return False
        self._woken = self._observer.peek() or self._woken
        self._inspect_owners()
        if not self._woken:
            self._settle()
        return not self._woken

    def _settle(self) -> None:
        """Give back what the start has left free, once, when nothing has happened up to a look: it may take long."""
        if not self._settled:
            self._settled = True
            self._owner.store.release_memory()
            process.release_memory()

    def _until_ns(self, due_ns: int | None) -> int:
        retry_ns = self._store_retry_ns
        until_ns = retry_ns if retry_ns > self._clock.monotonic_ns() else self._observer.next_look_ns()
        return until_ns if due_ns is None else min(until_ns, due_ns)

    def _poll(self, until_ns: int) -> list[int]:
        active, stdin = self._performer.active, self._performer.stdin
        descriptors = self._observer.descriptors() + stdin.descriptors()
        due_ns = min(until_ns, stdin.due_ns() or until_ns)
        if active is not None:
            descriptors += active.descriptors()
            due_ns = min(due_ns, active.due_ns() or due_ns)
        poller = self._poller
        if descriptors:
            poller = select.poll()
            for descriptor in (self._owner.wake.fileno(), *descriptors):
                poller.register(descriptor, select.POLLIN)
        left_ns = max(0, due_ns - self._clock.monotonic_ns())
        # Rounded up: waking a fraction of a millisecond early would spin until the deadline.
        return [fd for fd, _ in poller.poll(-(-left_ns // _NANOSECONDS_PER_MILLISECOND))]

    def _handle(self, ready: list[int]) -> int | None:
        """Take in what is ready; return how many bytes were read, ``None`` if a decision is called for."""
        active, stdin = self._performer.active, self._performer.stdin
        moved, decisive = 0, False
        for descriptor in ready:
            if descriptor == self._owner.wake.fileno():
                self._owner.wake.drain()
                self._woken = True
            elif active is not None and active.is_output(descriptor):
                size = active.read(descriptor)
                self._refusals = 0
                moved += max(0, size)
                decisive = decisive or size == 0
            elif not stdin.is_of_clients(descriptor):
                decisive = True
        # With nothing ready as well: somebody may have waited for long enough.
        stdin.handle()
        _flush_if_due(active, self._clock)
        return None if decisive or self._woken else moved


def _flush_if_due(active: ActiveRun | None, clock: Clock) -> None:
    due_ns = None if active is None else active.due_ns()
    if active is not None and due_ns is not None and clock.monotonic_ns() >= due_ns:
        active.flush()
