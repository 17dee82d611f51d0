"""The loop of a sender: claim what is due, hand it to threads, record what came of it, until nothing is left.

One thread, this one, speaks to the store; one thread for each message speaks to the outside, where everything may take
as long as it likes. Attempts that outlive their time are recorded without waiting for their thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import queue
import sys
import threading

from jobman.clock import SystemClock
from jobman.delivery.sending import Occasion, attempt
from jobman.errors import InvalidSpecError, JobmanError, JobNotFoundError, StoreBusyError, StoreFailureError
from jobman.notify.message import Message
from jobman.policy.delivery import DeliveryStatus, FailureCode, Result, Verdict, after_attempt
from jobman.process.senders import ANY, FIRST, OTHERS, start_sender, take_place
from jobman.process.spawn import close_inherited_descriptors
from jobman.store import deliveries
from jobman.store.connection import open_store
from jobman.store.specs import load_spec
from jobman.store.transaction import SUPERVISOR_PATIENCE_NS
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.notifiers import Notifier
    from jobman.store.connection import Store
    from jobman.store.deliveries import Claimed

_AT_ONCE = 8
_KEPT_JOBS = 64
_SECOND_NS = 1_000_000_000
_RENEW_EVERY_NS = 10 * _SECOND_NS
_LOOK_EVERY_NS = 100_000_000
_HELP_EVERY_NS = _SECOND_NS
# How much later than its time an attempt may still answer; what waits for a resolver cannot be interrupted.
_OVERTIME_NS = 5 * _SECOND_NS
_MAX_LOG = 65_536


class Underway(NamedTuple):
    """An attempt that a thread makes, and the monotonic time after which nobody waits for it."""

    claimed: Claimed
    notifier: Notifier
    until_ns: int


class Sender:
    """Sends what is due in one store, from one place."""

    def __init__(self, store: Store, place: int, clock: Clock) -> None:
        self._store = store
        self._place = place
        self._clock = clock
        self._token = os.urandom(16).hex()
        self._results: queue.Queue[tuple[Claimed, Result]] = queue.Queue()
        self._underway: dict[tuple[str, str], Underway] = {}
        self._notifiers: dict[str, dict[str, Notifier]] = {}
        self._elsewhere: set[str] = set()
        # Nothing may fork while the store is written: the child would hold the writers' lock for a moment.
        self._gate = threading.Lock()
        self._renew_at_ns = 0
        self._help_at_ns = 0
        self._job_id = os.environ.get("JOBMAN_SUPERVISOR", "")
        self._idle_since_ns = clock.boottime_ns()

    def work(self) -> None:
        """Go on until nothing is left that this process could do.

        Raises:
            JobmanError: the store cannot be used any more.
        """
        with self._gate:
            deliveries.release_place(self._store, self._place, self._clock.wall_ns())
            self._take_over()
        while True:
            try:
                with self._gate:
                    self._record_overdue()
                    deliveries.give_up(self._store, self._clock.wall_ns())
                    crowded = self._claim()
                    self._renew()
                if crowded:
                    self._call_for_help()
                if not self._underway and not self._has_reason_to_stay():
                    # While this one lived nobody else looked at what others left that were killed.
                    with self._gate:
                        if not self._take_over():
                            return
            except StoreBusyError:
                pass  # it is tried again after a look at the results
            self._wait()

    # --- Taking ----------------------------------------------------------------------------------------------------

    def _take_over(self) -> bool:
        """Free what dead senders hold, whose place can be locked; say whether there was anything."""
        freed = False
        for place in ANY:
            try:
                taken = None if place == self._place else take_place(self._store.root, (place,))
            except OSError:
                continue  # no descriptor is left, or no lock: the leases run out anyway
            if taken is not None:
                try:
                    freed |= deliveries.release_place(self._store, place, self._clock.wall_ns())
                finally:
                    os.close(taken[1])
        return freed

    def _claim(self) -> bool:
        """Claim as much as there are threads for; say whether there is more than that."""
        free = _AT_ONCE - len(self._underway)
        token, now_ns = (self._token, self._place), self._clock.wall_ns()
        without = deliveries.all_jobs(self._elsewhere)
        claimed = deliveries.claim_due(self._store, token, now_ns, limit=free, without=without) if free > 0 else []
        for one in claimed:
            self._idle_since_ns = self._clock.boottime_ns()
            self._start(one, now_ns)
        if len(self._underway) < _AT_ONCE:
            return False
        return deliveries.has_due(self._store, now_ns, without)

    def _start(self, claimed: Claimed, now_ns: int) -> None:
        notifier = self._notifier(claimed)
        if notifier is None:
            self._record(claimed, None, Result(FailureCode.INVALID, "the notifier has no definition"))
            return
        left_ns = min(notifier.timeout_ns, claimed.deadline_ns - now_ns)
        if left_ns <= 0:
            deliveries.hand_back(self._store, claimed)
            return
        until_ns = self._clock.monotonic_ns() + left_ns + _OVERTIME_NS
        occasion = Occasion(left_ns / _SECOND_NS, now_ns, self._gate)
        try:
            threading.Thread(target=self._attempt, args=(claimed, notifier, occasion), daemon=True).start()
        except RuntimeError:  # the system has no room for another thread; it may have later
            self._record(claimed, notifier, Result(FailureCode.INTERNAL, "no thread can be started", retryable=True))
            return
        self._underway[claimed.event_id, claimed.notifier] = Underway(claimed, notifier, until_ns)

    def _attempt(self, claimed: Claimed, notifier: Notifier, occasion: Occasion) -> None:
        said = json.loads(claimed.summary_json)
        message = Message(
            claimed.event_id, claimed.event_type, claimed.job_id, claimed.occurred_at_ns, said, claimed.run_id
        )
        self._results.put((claimed, attempt(notifier, message, occasion)))

    def _notifier(self, claimed: Claimed) -> Notifier | None:
        job_id = claimed.job_id
        if job_id not in self._notifiers:
            if len(self._notifiers) >= _KEPT_JOBS:
                self._notifiers.clear()
            try:
                spec = load_spec(self._store, job_id)
            except (JobNotFoundError, InvalidSpecError):
                return None
            self._notifiers[job_id] = {notifier.name: notifier for notifier in spec.notifiers}
        return self._notifiers[job_id].get(claimed.notifier)

    # --- Recording -------------------------------------------------------------------------------------------------

    def _finish(self, claimed: Claimed, result: Result) -> None:
        """Take in what a thread reports, unless nobody waits for it any more."""
        underway = self._underway.get((claimed.event_id, claimed.notifier))
        if underway is None or underway.claimed != claimed:
            return
        try:
            with self._gate:
                self._settle(underway, result)
        except StoreBusyError:
            self._results.put((claimed, result))  # others have been writing all the time: again later
            return
        del self._underway[claimed.event_id, claimed.notifier]

    def _settle(self, underway: Underway, result: Result) -> None:
        claimed = underway.claimed
        # A variable that is missing here may be set where the job was submitted.
        if result.elsewhere and claimed.job_id != self._job_id:
            self._elsewhere.add(claimed.job_id)
            deliveries.hand_back(self._store, claimed)
            return
        self._record(claimed, underway.notifier, result)

    def _record(self, claimed: Claimed, notifier: Notifier | None, result: Result) -> None:
        now_ns = self._clock.wall_ns()
        if notifier is None:
            verdict = Verdict(DeliveryStatus.FAILED, code=result.code)
        else:
            verdict = after_attempt(
                result, claimed.attempt, notifier.retry, now_ns=now_ns, deadline_ns=claimed.deadline_ns
            )
        deliveries.complete(self._store, claimed, result=result, verdict=verdict, now_ns=now_ns)

    def _record_overdue(self) -> None:
        now_ns = self._clock.monotonic_ns()
        for key, underway in list(self._underway.items()):
            if now_ns >= underway.until_ns:
                self._settle(underway, Result(FailureCode.TIMEOUT, "no answer in time", retryable=True))
                del self._underway[key]

    def _renew(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if self._underway and now_ns >= self._renew_at_ns:
            self._renew_at_ns = now_ns + _RENEW_EVERY_NS
            deliveries.renew_claims(self._store, self._token, self._clock.wall_ns())

    # --- Waiting ---------------------------------------------------------------------------------------------------

    def _has_reason_to_stay(self) -> bool:
        """Say whether something is due later; one sender waits for all, and each for the job whose variables it has."""
        due_ns = self._next_due_ns()
        waits = self._place in FIRST or deliveries.has_pending(self._store, self._job_id)
        if due_ns is None or not (waits or due_ns <= self._clock.wall_ns()):
            return False
        budget_ns, deadline_ns = deliveries.longest_budget(self._store)
        if self._clock.boottime_ns() - self._idle_since_ns > budget_ns:
            # Nothing came due for longer than anything may take: the wall clock was set back.
            with self._gate:
                deliveries.give_up(self._store, self._clock.wall_ns(), latest_deadline_ns=deadline_ns)
        return True

    def is_needed(self) -> bool:
        """Say whether something is pending that this process could send."""
        return self._next_due_ns() is not None

    def _next_due_ns(self) -> int | None:
        return deliveries.next_due_ns(self._store, deliveries.all_jobs(self._elsewhere))

    def _wait(self) -> None:
        """Sleep until a thread reports, or the store may have something new or due."""
        if self._store.is_replaced():
            raise StoreFailureError(detail="it was removed")
        with contextlib.suppress(queue.Empty):
            self._finish(*self._results.get(timeout=_LOOK_EVERY_NS / _SECOND_NS))
            while True:
                self._finish(*self._results.get_nowait())

    def _call_for_help(self) -> None:
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._help_at_ns:
            return
        self._help_at_ns = now_ns + _HELP_EVERY_NS
        with contextlib.suppress(OSError):
            start_sender(self._store.root, OTHERS)


def main(mode: str) -> None:
    """Be a sender in the place ``mode``, whose lock is our standard input, or try one notifier; never return."""
    status = 1
    try:
        os.chdir("/")  # the submitter's directory must not be kept busy
        if mode == "test":
            from jobman.delivery.trial import main as try_one

            try_one()
        else:
            close_inherited_descriptors()
            _serve(os.environ["JOBMAN_STATE_DIR"], int(mode))
        status = 0
    except JobmanError:
        pass  # the store is gone, or cannot be used: whoever comes next finds what is left
    except BaseException as error:  # noqa: BLE001  # nobody is there to read a traceback, whose text might quote secrets
        _log(os.environ.get("JOBMAN_STATE_DIR", ""), error)
    # No interpreter shutdown: a thread may be stuck, and what it would say is of no interest any more.
    sys.stdout.flush()
    os._exit(status)


def _serve(root: str, place: int) -> None:
    """Occupy the place until nothing is left; then look once more, for what was committed while we were leaving."""
    store = open_store(root)
    store.patience_ns = SUPERVISOR_PATIENCE_NS
    lock: int | None = 0
    fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB)
    while lock is not None:
        sender = Sender(store, place, SystemClock())
        sender.work()
        _leave(lock)
        taken = take_place(root, FIRST) if sender.is_needed() else None
        place, lock = taken or (place, None)


def _leave(lock: int) -> None:
    fcntl.flock(lock, fcntl.LOCK_UN)
    if lock > 2:
        os.close(lock)


def _log(root: str, error: BaseException) -> None:
    """Note a defect by its kind and place, without the values that its text might show."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(f"{root}/run/deliver.log", flags, 0o600)
        if os.fstat(descriptor).st_size > _MAX_LOG:
            os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{type(error).__name__}{place}\n".encode())
        os.close(descriptor)
