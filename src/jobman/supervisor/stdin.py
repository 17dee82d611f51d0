"""What the runs of a job read: nothing, a file, or what clients send; opened anew for every run (contract, I.5)."""

from __future__ import annotations

import os
import stat

from jobman.errors import EndpointError
from jobman.model.spec import StdinPolicy
from jobman.model.state import Diagnostic, Problem
from jobman.store.live_input import publish_endpoint
from jobman.store.safety import DATABASE
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.clock import Clock
    from jobman.model.spec import JobSpec
    from jobman.store.connection import Store
    from jobman.supervisor.input import Broker


class StandardInput:
    """The input of one job; of a job without live input, everything that concerns clients does nothing."""

    def __init__(self, store: Store, job_id: str, spec: JobSpec) -> None:
        self._store = store
        self._job_id = job_id
        self._spec = spec
        self._path = ""
        self._make_broker: Callable[[], Broker] | None = None
        self._broker: Broker | None = None

    def offer(self, clock: Clock) -> None:
        """Make the endpoint of a job that takes live input; one that cannot be made now is tried again by each run."""
        if self._spec.stdin != StdinPolicy.LIVE:
            return
        from jobman.process.endpoint import endpoint_path  # sockets and selectors: for those who need them
        from jobman.supervisor.input import Broker

        self._path = path = endpoint_path(self._store.root, self._job_id, os.environ.get("TMPDIR", ""))
        self._make_broker = lambda: Broker(path, clock)
        try:
            broker = self._take_input()
            if broker is not None:
                broker.open()
        except (EndpointError, OSError):
            pass

    def publish(self) -> None:
        """Record where input is taken, as a part of the first transaction of the supervisor; may be repeated."""
        if self._path:
            publish_endpoint(self._store, self._job_id, self._path)

    def open(self, run_id: str) -> int | Problem | None:
        """Return what a run is to read, ``None`` for the null device, or why there is none; closing it is the caller's.

        Live input is taken for this run from now on.
        """
        path = self._spec.stdin_path
        try:
            if path is not None:
                return self._open_file(path.encode("utf-8", "surrogateescape"))
            broker = self._take_input()
            return None if broker is None else broker.begin(run_id)
        except EndpointError as error:
            return Problem(Diagnostic.STDIN_UNAVAILABLE, str(error))
        except OSError as error:
            what = "live input" if path is None else f"standard input {path!r}".replace("\\udc", "\\x")
            return Problem(Diagnostic.STDIN_UNAVAILABLE, f"{what}: {(error.strerror or str(error)).lower()}")

    def finish(self, run_id: str | None) -> None:
        """Let the target of a run see the end of its input, as a client has asked for it; may be repeated."""
        if self._broker is not None:
            self._broker.finish(run_id)

    def end(self) -> None:
        """Take no more input for the run that is ending."""
        if self._broker is not None:
            self._broker.end()

    def close(self) -> None:
        """Remove the endpoint."""
        if self._broker is not None:
            self._broker.close()

    def descriptors(self) -> list[int]:
        """Return what to poll for reading."""
        return [] if self._broker is None else [self._broker.fileno()]

    def is_of_clients(self, descriptor: int) -> bool:
        """Say whether ``descriptor`` becomes readable when `handle` has something to do."""
        return self._broker is not None and descriptor == self._broker.fileno()

    def due_ns(self) -> int | None:
        """Return the monotonic time at which `handle` has to be called although nothing is ready."""
        return None if self._broker is None else self._broker.due_ns()

    def handle(self) -> None:
        """Serve clients, without waiting for any."""
        if self._broker is not None:
            self._broker.handle()

    def _open_file(self, path: bytes) -> int:
        if os.path.realpath(path).startswith(f"{self._store.root}/{DATABASE}".encode()):
            # Closing it again would drop the locks that SQLite holds in this process.
            raise OSError(0, "belongs to the store")
        return _open_file(path)

    def _take_input(self) -> Broker | None:
        # It needs a descriptor, which may not be free when the job begins.
        if self._broker is None and self._make_broker is not None:
            self._broker = self._make_broker()
        return self._broker


def _open_file(path: bytes) -> int:
    # Not blocking: opening a named pipe would wait for its writer, and the whole supervisor with it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        os.set_blocking(descriptor, True)
        return descriptor
    os.close(descriptor)
    raise OSError(0, "is a directory" if stat.S_ISDIR(mode) else "is neither a file nor a device")
