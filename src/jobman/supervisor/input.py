"""Live input: takes requests from clients and writes them into the pipe that the target reads (contract, I.6).

Belongs to the one loop of a supervisor and never blocks: the loop polls one descriptor, that of a selector which knows
the listening socket, the connections whose requests are still arriving, and the pipe while something waits for room in
it. Any number of clients may come at once; each request is delivered whole, in the order in which the requests became
complete (D29). A request has 30 s from its arrival, also behind others that a full pipe holds up (D21).

Only jobs with live input load this module.
"""

from __future__ import annotations

import os
import selectors
from collections import deque

from jobman import live_input
from jobman.live_input import CLOSED, DATA, NO_TARGET, OK, OTHER_RUN, Arrival, Reply
from jobman.process import endpoint
from jobman.process.spawn import pipe_above_standard
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

    from jobman.clock import Clock
    from jobman.live_input import Request

MOST_CLIENTS = 64
"""More wait to be accepted: each may hold a request of 1 MiB."""
_AT_ONCE = 1024 * 1024
_NO_PIPE = -1
_BREATH_NS = 100_000_000


class _Client:
    """One connection, from its arrival to its reply."""

    def __init__(self, connection: socket.socket, deadline_ns: int) -> None:
        self.connection = connection
        self.deadline_ns = deadline_ns
        self.arrival = Arrival()
        self.request: Request | None = None
        self.delivered = 0

    def answer(self, status: int) -> None:
        """Send the reply, if somebody is still there to read it, and hang up."""
        try:
            # Nine bytes into an empty socket: it never blocks.
            self.connection.send(live_input.encode_reply(Reply(status, self.delivered)))
        except OSError:
            pass
        self.connection.close()


class Broker:
    """Takes input for whichever run is active.

    Attributes:
        path: where clients connect.
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        self._accepting = False
        self._accept_again_ns: int | None = None
        self._arriving: set[_Client] = set()
        # Whole requests in order; of the first a part may be delivered.
        self._waiting: deque[_Client] = deque()
        self._run_id = ""
        self._pipe = _NO_PIPE
        self._watched = _NO_PIPE
        self._ending = False

    def open(self) -> None:
        """Make the endpoint, unless that was done before.

        Raises:
            EndpointError: its directory is not ours alone, or the system refuses.
        """
        if self._listener is None:
            self._listener = endpoint.listen(self.path)
            self._accept_clients()

    def close(self) -> None:
        """Answer whoever waits and remove the endpoint."""
        self.end()
        for client in self._arriving:
            client.connection.close()
        self._arriving.clear()
        if self._listener is not None:
            endpoint.remove(self.path)
            self._listener.close()
            self._listener = None
        self._selector.close()

    # --- What the supervisor tells it ------------------------------------------------------------------------------

    def begin(self, run_id: str) -> int:
        """Take input for a run from now on; return the end of the pipe for its target, which becomes the caller's.

        Raises:
            EndpointError: the endpoint cannot be made.
            OSError: no descriptor is free.
        """
        self.open()
        self.end()
        reader, self._pipe = pipe_above_standard()
        os.set_blocking(self._pipe, False)
        self._run_id = run_id
        self._ending = False
        return reader

    def end(self) -> None:
        """Take no more input for the run: what waits for it is answered with what was delivered."""
        while self._waiting:
            client = self._waiting.popleft()
            client.answer(OK if client.delivered else NO_TARGET)
        self._close_pipe()
        self._run_id = ""

    def finish(self, run_id: str | None) -> None:
        """Let the target of a run see the end of its input once it has what has arrived by now; may be repeated."""
        if run_id == self._run_id and not self._ending and self._pipe != _NO_PIPE:
            self._ending = True
            self._deliver()

    # --- What the loop asks ----------------------------------------------------------------------------------------

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        return self._selector.fileno()

    def due_ns(self) -> int | None:
        """Return the monotonic time at which the next request has waited for too long."""
        due = [client.deadline_ns for client in (*self._arriving, *self._waiting)]
        return min((*due, *(() if self._accept_again_ns is None else (self._accept_again_ns,))), default=None)

    def handle(self) -> None:
        """Do what can be done now, without waiting for anybody."""
        for key, _ in self._selector.select(0):
            if key.data is not None:
                self._read(key.data)
            elif key.fileobj is self._listener:
                self._accept()
        self._deliver()
        self.expire()

    def expire(self) -> None:
        """Answer requests whose time is over with what was delivered; drop those that never became whole."""
        now_ns = self._clock.monotonic_ns()
        if self._accept_again_ns is not None and self._accept_again_ns <= now_ns:
            self._accept_again_ns = None
            self._accept_clients()
        for client in [client for client in self._arriving if client.deadline_ns <= now_ns]:
            self._forget(client)
            client.connection.close()
        late = [client for client in self._waiting if client.deadline_ns <= now_ns]
        for client in late:
            self._waiting.remove(client)
            client.answer(OK)
        if late:
            self._deliver()

    # --- Arriving --------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while self._listener is not None and self._accepting:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                # No descriptor is free: whoever waits would be announced for ever.
                self._accept_again_ns = self._clock.monotonic_ns() + _BREATH_NS
                self._accept_clients()
                return
            if not endpoint.is_ours(connection):
                connection.close()
                continue
            connection.setblocking(False)
            client = _Client(connection, self._clock.monotonic_ns() + live_input.PATIENCE_NS)
            self._arriving.add(client)
            self._selector.register(connection, selectors.EVENT_READ, client)
            self._accept_clients()

    def _accept_clients(self) -> None:
        """Listen for more clients, or not, depending on how many there are."""
        wanted = self._accept_again_ns is None and len(self._arriving) + len(self._waiting) < MOST_CLIENTS
        if self._listener is None or wanted == self._accepting:
            return
        self._accepting = wanted
        if wanted:
            self._selector.register(self._listener, selectors.EVENT_READ)
        else:
            self._selector.unregister(self._listener)

    def _read(self, client: _Client) -> None:
        try:
            block = client.connection.recv(min(client.arrival.wanted, live_input.PIECE_BYTES))
        except BlockingIOError:
            return
        except OSError:
            block = b""
        if not block:
            # It has gone before it said what it wants.
            self._forget(client)
            client.connection.close()
            return
        found = client.arrival.take(block)
        if isinstance(found, Reply):
            self._forget(client)
            client.answer(found.status)
        elif found is not None:
            self._forget(client)
            self._admit(client, found)

    def _forget(self, client: _Client) -> None:
        self._arriving.discard(client)
        self._selector.unregister(client.connection)
        self._accept_clients()

    def _admit(self, client: _Client, request: Request) -> None:
        client.request = request
        refusal = self._refusal(request)
        if refusal is None:
            self._waiting.append(client)
        else:
            client.answer(refusal)

    def _refusal(self, request: Request) -> int | None:
        if request.run_id != self._run_id:
            return OTHER_RUN if self._run_id else NO_TARGET
        # Whoever asks for the end after somebody else did is told so only once it has come.
        done = self._ending and (request.operation == DATA or self._pipe == _NO_PIPE)
        return CLOSED if done else None

    # --- Delivering ------------------------------------------------------------------------------------------------

    def _deliver(self) -> None:
        moved = 0
        while self._waiting and (moved < _AT_ONCE or self._pipe == _NO_PIPE):
            client = self._waiting[0]
            before = client.delivered
            if not self._serve(client):
                break
            moved += client.delivered - before
            self._waiting.popleft()
        if self._ending and not self._waiting:
            self._close_pipe()
        self._accept_clients()
        self._watch_pipe()

    def _serve(self, client: _Client) -> bool:
        """Deliver what the pipe takes of a request; return whether it is done with and answered."""
        request = client.request
        if request is None:
            raise AssertionError(client)
        if self._ending and self._pipe == _NO_PIPE and not client.delivered:
            client.answer(CLOSED)
            return True
        if request.operation != DATA:
            self._ending = True
            self._close_pipe()
        rest = memoryview(request.payload)[client.delivered :]
        while rest and self._pipe != _NO_PIPE:
            try:
                written = os.write(self._pipe, rest)
            except BlockingIOError:
                return False
            except OSError:
                # The target has closed its input; nothing can be delivered to this run any more.
                self._close_pipe()
                break
            client.delivered += written
            rest = rest[written:]
        client.answer(OK)
        return True

    def _watch_pipe(self) -> None:
        """Have the selector tell when there is room in the pipe, as long as something waits for it."""
        wanted = self._pipe if self._waiting else _NO_PIPE
        if wanted == self._watched:
            return
        if self._watched != _NO_PIPE:
            self._selector.unregister(self._watched)
        if wanted != _NO_PIPE:
            self._selector.register(wanted, selectors.EVENT_WRITE)
        self._watched = wanted

    def _close_pipe(self) -> None:
        if self._pipe == _NO_PIPE:
            return
        if self._watched != _NO_PIPE:
            self._selector.unregister(self._watched)
            self._watched = _NO_PIPE
        os.close(self._pipe)
        self._pipe = _NO_PIPE
