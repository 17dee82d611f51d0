"""Seeing to it that somebody sends what this supervisor queues, without ever waiting for it (D6)."""

from __future__ import annotations

from jobman.process.senders import ANY, FIRST, start_sender
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.spec import JobSpec
    from jobman.process.senders import Started
    from jobman.store.connection import Store


class Deliveries:
    """Starts a sender after a commit that queued something, if none is there yet."""

    def __init__(self, store: Store, spec: JobSpec) -> None:
        self._store = store
        # A sender that others have started does not have the variables that secrets of ours lie in.
        self._needs_own = any(secret.provider == "env" for notifier in spec.notifiers for secret in notifier.secrets())
        self._own: Started | None = None

    def start_for_queued(self) -> None:
        """Start a sender for what was queued since the last call; not while the store is being written."""
        if not self._store.has_queued or self._store.in_transaction():
            return
        try:
            self._start()
        except OSError:
            return  # too many processes, perhaps: the next commit tries again
        self._store.has_queued = False

    def _start(self) -> None:
        if self._own is not None and self._own.lives():
            # Unless it has just left its place, it will find what is queued.
            self._own = start_sender(self._store.root, (self._own.place,)) or self._own
        else:
            self._own = start_sender(self._store.root, ANY if self._needs_own else FIRST)
