"""The one way by which a supervisor commits what becomes of its job, and what it keeps in mind when it cannot."""

from __future__ import annotations

from jobman.errors import StoreBusyError, StoreFailureError
from jobman.model.state import RunPhase
from jobman.model.transitions._change import Now
from jobman.store.commit import commit
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.events import Transition
    from jobman.model.state import Snapshot
    from jobman.store.connection import Store
    from jobman.supervisor.notes import Notes
    from jobman.supervisor.observe import Observer

_BUSY_FOR_TOO_LONG_NS = 2_000_000_000


class Commits:
    """Commits transitions and lets the observer go on from them."""

    def __init__(self, store: Store, observer: Observer, clock: Clock, notes: Notes) -> None:
        self._store = store
        self._notes = notes
        self._observer = observer
        self._clock = clock
        self._intents: list[Transition] = []
        self._refused_since_ns = 0

    @property
    def behind(self) -> bool:
        """Whether intents were acted upon that could not be written yet."""
        return bool(self._intents)

    def now(self) -> Now:
        """Return the moment of a transition."""
        return Now(self._clock.wall_ns(), self._clock.monotonic_ns())

    def commit(self, transition: Transition | None) -> None:
        """Commit a transition, if there is one, after the intents that could not be written before it.

        Raises:
            RevisionConflictError: somebody changed the job first.
            StoreBusyError: the store could not be written to in time.
            StoreFailureError: the store cannot be written to.
        """
        if transition is None:
            return
        # Without a store the supervisor goes on in memory until its target has ended (D43).
        if not self._observer.store_gone:
            self._write_intents()
            commit(self._store, transition)
        self._observer.advance(_present(transition.after))

    def intend(self, transition: Transition | None, *, with_target: bool) -> None:
        """Commit an intent, or, while the store cannot be written to and a target lives, keep it and commit it later.

        A full disk must not keep a timeout, or SIGTERM to us, from ending the target (D23; ADR 0008).
        """
        try:
            self.commit(transition)
        except StoreBusyError:
            now_ns = self._clock.monotonic_ns()
            self._refused_since_ns = self._refused_since_ns or now_ns
            if now_ns - self._refused_since_ns < _BUSY_FOR_TOO_LONG_NS:
                raise
            self._keep(transition, with_target=with_target)
        except StoreFailureError as error:
            self._notes.trouble("store", str(error))
            self._keep(transition, with_target=with_target)
        else:
            self._refused_since_ns = 0

    def forget_intents(self) -> None:
        """Drop what could not be written: somebody has changed the job meanwhile, and it is decided anew."""
        self._intents.clear()
        self._observer.ahead = False

    def _keep(self, transition: Transition | None, *, with_target: bool) -> None:
        if not with_target or transition is None:
            raise StoreFailureError(detail="the intent cannot be recorded")
        self._intents.append(transition)
        self._observer.ahead = True
        self._observer.advance(_present(transition.after))

    def _write_intents(self) -> None:
        while self._intents:
            commit(self._store, self._intents[0])
            del self._intents[0]
        self._observer.ahead = False


def _present(after: Snapshot) -> Snapshot:
    """Drop what a transition has ended: a completed run is history, a released admission holds nothing."""
    run, admission = after.run, after.admission
    if run is not None and run.phase == RunPhase.COMPLETED:
        run = None
    if admission is not None and admission.released_at_ns is not None:
        admission = None
    return after._replace(run=run, admission=admission)
