"""Sending input to a job that takes it: at once and to the end, or piece by piece beside other work (contract, I.6)."""

from __future__ import annotations

import os
import select
import time

from jobman import live_input, recovery
from jobman.errors import (
    ConflictError,
    EndpointError,
    InputEndedError,
    NoLiveInputError,
    ShortInputError,
    StoreBusyError,
    StoreFailureError,
)
from jobman.live_input import CLOSED, DATA, END, MALFORMED, OK, REPLY_BYTES, Reply, Request
from jobman.model.spec import StdinPolicy
from jobman.model.state import JobPhase, RunPhase
from jobman.process import endpoint
from jobman.process.wake import wake_jobs
from jobman.store.jobs import load_snapshot
from jobman.store.live_input import load_live_input, request_eof
from jobman.store.specs import load_spec
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from jobman.clock import Clock
    from jobman.store.connection import Store

_LOOK_EVERY_S = 0.05
_CONNECT_EVERY_S = 0.01
_INSPECT_EVERY_NS = 1_000_000_000
_MARGIN_NS = 5_000_000_000
"""How much longer than the supervisor a client waits, so that it hears what became of its request."""
_AGAIN_NS = 1_000_000_000
_NANOSECONDS = 1_000_000_000
_STDIN_WORDS = {StdinPolicy.NULL: "empty", StdinPolicy.FILE: "a file"}


class Target(NamedTuple):
    """An active run that takes input, and where."""

    run_id: str
    endpoint: str


class Delivery:
    """One request on its way: sent as the socket takes it, then answered; only `wait` waits."""

    def __init__(self, target: Target, operation: int, payload: bytes = b"") -> None:
        self._path = target.endpoint
        self._unsent = memoryview(live_input.encode(Request(operation, target.run_id, payload)))
        self._answer = b""
        self._connection: socket.socket | None = None

    def advance(self) -> Reply | None:
        """Do what can be done now; return the reply once it is there.

        Raises:
            EndpointError: nobody listens, or whoever did has gone without an answer.
        """
        try:
            if self._connection is None:
                self._connection = endpoint.connect(self._path)
            if self._unsent:
                self._send(self._connection)
            return self._receive(self._connection)
        except BlockingIOError:
            return None
        except OSError as error:
            self.close()
            raise EndpointError(path=self._path, detail=(error.strerror or str(error)).lower()) from error

    def wait(self, seconds: float) -> None:
        """Wait until something can be done, at most ``seconds``."""
        if self._connection is None:
            time.sleep(min(seconds, _CONNECT_EVERY_S))  # too many wait to be accepted
            return
        _await_ready(self._connection, select.POLLIN | (select.POLLOUT if self._unsent else 0), seconds)

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()

    def _send(self, connection: socket.socket) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[connection.send(self._unsent) :]
        except BrokenPipeError:
            self._unsent = memoryview(b"")  # refused before it was whole: the answer says why

    def _receive(self, connection: socket.socket) -> Reply | None:
        block = connection.recv(REPLY_BYTES - len(self._answer))
        if not block:
            self.close()
            raise EndpointError(path=self._path, detail="the supervisor has hung up")
        self._answer += block
        if len(self._answer) < REPLY_BYTES:
            return None
        self.close()
        return live_input.decode_reply(self._answer)


def find_target(store: Store, job_id: str) -> Target | None:
    """Return the active run of a job, if its target runs and takes input."""
    run = load_snapshot(store, job_id).run
    offered = load_live_input(store, job_id)
    if run is None or offered is None or run.phase not in (RunPhase.RUNNING, RunPhase.PAUSED):
        return None
    return Target(run.id, offered.endpoint)


def send(store: Store, job_id: str, blocks: Iterable[bytes], clock: Clock, *, eof: bool) -> int:
    """Deliver blocks to the run of a job that is active, or to the next one; return how many bytes that were.

    Args:
        store: the store.
        job_id: the job.
        blocks: each at most `live_input.MAX_PAYLOAD` long, and asked for only when those before it are delivered.
        clock: bounds the wait for an answer.
        eof: let the target see the end of its input afterwards.

    Raises:
        ConflictError: the job has ended.
        EndpointError: nobody listens where the job should take input.
        InputEndedError: the run has ended, or its input was closed.
        NoLiveInputError: the job never takes input.
        ShortInputError: the target did not take all.
    """
    target = _await_target(store, job_id, clock)
    delivered = 0
    for block in blocks:
        if delivered:
            _require_active(store, job_id, target, delivered)
        reply = _deliver(store, job_id, Delivery(target, DATA, block), clock)
        delivered += reply.delivered
        _judge(reply, job_id, len(block), delivered)
    if eof:
        _end(store, job_id, target, clock=clock, delivered=delivered)
    return delivered


def _await_target(store: Store, job_id: str, clock: Clock) -> Target:
    stdin = load_spec(store, job_id).stdin
    inspect_at_ns = 0
    while True:
        now_ns = clock.monotonic_ns()
        if now_ns >= inspect_at_ns:
            inspect_at_ns = now_ns + _INSPECT_EVERY_NS
            recovery.reconcile(store, job_id, clock)
        if stdin != StdinPolicy.LIVE:
            raise NoLiveInputError(job=job_id, stdin=_STDIN_WORDS[stdin])
        if load_snapshot(store, job_id).job.phase == JobPhase.COMPLETED:
            raise ConflictError(detail=f"job {job_id} has ended and takes no input any more")
        target = find_target(store, job_id)
        if target is not None:
            return target
        time.sleep(_LOOK_EVERY_S)


def _require_active(store: Store, job_id: str, target: Target, delivered: int) -> None:
    if load_snapshot(store, job_id).job.active_run_id != target.run_id:
        raise InputEndedError(job=job_id, detail="the run that took the input has ended", delivered=delivered)


def _deliver(store: Store, job_id: str, delivery: Delivery, clock: Clock) -> Reply:
    try:
        return _answer(delivery, job_id, clock)
    except EndpointError:
        # A supervisor that was killed leaves a socket behind at which nobody listens, and a job that is lost.
        recovery.reconcile(store, job_id, clock)
        if load_snapshot(store, job_id).job.phase != JobPhase.COMPLETED:
            raise
        return Reply(live_input.NO_TARGET)
    finally:
        delivery.close()


def _answer(delivery: Delivery, job_id: str, clock: Clock) -> Reply:
    deadline_ns = clock.monotonic_ns() + live_input.PATIENCE_NS + _MARGIN_NS
    while (reply := delivery.advance()) is None:
        left_ns = deadline_ns - clock.monotonic_ns()
        if left_ns <= 0:
            raise EndpointError(path=f"job {job_id}", detail="its supervisor does not answer")
        delivery.wait(left_ns / _NANOSECONDS)
    return reply


def _judge(reply: Reply, job_id: str, sent: int, delivered: int) -> None:
    if reply.status == OK and reply.delivered < sent:
        raise ShortInputError(job=job_id, delivered=delivered)
    if reply.status == MALFORMED:
        raise EndpointError(path=f"job {job_id}", detail="its supervisor did not understand the request")
    if reply.status != OK:
        closed = reply.status == CLOSED
        detail = "the input of its run was closed" if closed else "the run that took the input has ended"
        raise InputEndedError(job=job_id, detail=detail, delivered=delivered)


def _end(store: Store, job_id: str, target: Target, *, clock: Clock, delivered: int) -> None:
    if not request_eof(store, job_id, target.run_id):
        _require_active(store, job_id, target, delivered)
        raise InputEndedError(job=job_id, detail="the input of its run was closed before", delivered=delivered)
    wake_jobs(store.root, (job_id,))
    try:
        # So that the target has seen it when we return. It is durable: whatever the answer, the supervisor will see it.
        _deliver(store, job_id, Delivery(target, END), clock)
    except EndpointError:
        pass


class Pump:
    """Copies a descriptor to the runs of a job, whichever is active, in the pauses of other work.

    What a run did not take goes to the next one; each gets the end of its input once the descriptor is at its own. A
    target that reads no more is no error (D2).
    """

    def __init__(self, store: Store, job_id: str, descriptor: int, clock: Clock) -> None:
        self._store = store
        self._job_id = job_id
        self._descriptor = descriptor
        self._clock = clock
        self._rest = b""
        self._at_end = False
        self._target: Target | None = None
        self._delivery: Delivery | None = None
        self._done_with = ""
        self._again_ns = 0

    def work(self, seconds: float) -> None:
        """Copy for so long, or sleep if there is nothing to copy."""
        until_ns = self._clock.monotonic_ns() + int(seconds * _NANOSECONDS)
        if self._delivery is None:
            self._target = find_target(self._store, self._job_id)
        while (left_ns := until_ns - self._clock.monotonic_ns()) > 0:
            if not self._step(left_ns / _NANOSECONDS):
                time.sleep(max(0, until_ns - self._clock.monotonic_ns()) / _NANOSECONDS)

    def _step(self, seconds: float) -> bool:
        """Do one thing, waiting at most ``seconds`` for it; return whether there was any to do."""
        if self._delivery is not None:
            self._delivery.wait(seconds)
            self._advance(self._delivery)
            return True
        target = self._target
        if target is None or target.run_id == self._done_with or self._clock.monotonic_ns() < self._again_ns:
            return False
        if self._rest:
            self._delivery = Delivery(target, DATA, self._rest)
            self._advance(self._delivery)
        elif not self._at_end:
            self._read(seconds)
        else:
            self._finish(target)
        return True

    def _advance(self, delivery: Delivery) -> None:
        try:
            reply = delivery.advance()
        except EndpointError:
            reply = Reply(live_input.NO_TARGET)
        if reply is None:
            return
        self._delivery = None
        self._rest = self._rest[reply.delivered :]
        if reply.status == CLOSED and self._target is not None:
            self._done_with = self._target.run_id  # somebody else has seen to it
        elif reply.status != OK:
            self._target = None
        elif self._rest:
            self._again_ns = self._clock.monotonic_ns() + _AGAIN_NS

    def _read(self, seconds: float) -> None:
        try:
            if not _await_ready(self._descriptor, select.POLLIN, seconds):
                return
            self._rest = os.read(self._descriptor, live_input.PIECE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._rest = b""  # a terminal that was closed, a descriptor for writing only
        self._at_end = not self._rest

    def _finish(self, target: Target) -> None:
        try:
            request_eof(self._store, self._job_id, target.run_id)
        except (StoreBusyError, StoreFailureError):
            self._again_ns = self._clock.monotonic_ns() + _AGAIN_NS
            return
        self._done_with = target.run_id
        wake_jobs(self._store.root, (self._job_id,))


def _await_ready(file: int | socket.socket, events: int, seconds: float) -> bool:
    """Wait at most ``seconds`` until one of ``events`` has come, or an error that the next call tells; say whether."""
    # Not select: it knows no descriptor from 1024 on, and a program that submits jobs may have many open.
    poller = select.poll()
    poller.register(file, events)
    return bool(poller.poll(int(seconds * 1000) + 1))
