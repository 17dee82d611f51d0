"""Seeing to it, on behalf of a client, that what is to be told is sent (contract, L.4)."""

from __future__ import annotations

import os

from jobman.store.jobs import has_open_deliveries
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.model.notifiers import Notifier
    from jobman.process.senders import Started
    from jobman.process.spawn import Detached
    from jobman.store.connection import Store

_FIRST_PAUSE_NS = 1_000_000_000


def send_queued(store: Store) -> None:
    """Start a sender if this client queued something: it has found a job lost, or failed a submission."""
    if store.has_queued:
        store.has_queued = False
        _start(store)


class Leftovers:
    """Sees to it that somebody sends while a client waits: the last sender may have been killed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._pause_ns = _FIRST_PAUSE_NS
        self._next_ns = 0
        self._started: set[int] = set()

    def send(self) -> None:
        """Start a sender if anything is left to send and the first place is free.

        What is left may be nothing that this sender can take (somebody else is at it, or it needs variables of another
        environment), so each start doubles the pause until the next one.
        """
        _reap(self._started)
        now_ns = self._clock.monotonic_ns()
        if self._store.read_only or now_ns < self._next_ns or not has_open_deliveries(self._store):
            return
        started = _start(self._store)
        if started is not None:
            self._started.add(started.pid)
            self._next_ns = now_ns + self._pause_ns
            self._pause_ns *= 2


def _reap(children: set[int]) -> None:
    for pid in tuple(children):
        try:
            ended = os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            ended = True
        if ended:
            children.discard(pid)


def _start(store: Store) -> Started | None:
    from jobman.process.senders import start_sender  # rarely needed

    try:
        return start_sender(store.root)
    except OSError:
        return None  # whoever comes next tries again


class Trial(NamedTuple):
    """What came of a test event; ``code`` "" is success."""

    code: str
    text: str
    response_status_code: int | None
    command_exit_code: int | None
    message_id: str | None
    output: str


def try_notifier(notifier: Notifier, root: str) -> Trial:
    """Tell a notifier of a test event, in a process of its own: secrets are looked up nowhere else.

    Raises:
        LaunchError: the process cannot be started, or ends without an answer.
    """
    import json

    from jobman.errors import LaunchError
    from jobman.model.notifiers_json import notifier_document
    from jobman.process.senders import sender_command, sender_environment
    from jobman.process.spawn import spawn_detached

    try:
        process = spawn_detached(sender_command("test"), sender_environment(root))
    except OSError as error:
        raise LaunchError(detail=(error.strerror or str(error)).lower()) from error
    try:
        answer = _ask(process, json.dumps(notifier_document(notifier)).encode())
    finally:
        os.waitpid(process.pid, 0)
    if not answer:
        raise LaunchError(detail="the process that sends notifications ended without an answer")
    said = json.loads(answer)
    said["code"] = said["code"] or ""
    return Trial(**{name: said[name] for name in Trial._fields})


def _ask(process: Detached, question: bytes) -> bytes:
    """Return the answer of a process, empty if it dies before it has read or said anything."""
    with open(process.input_fd, "wb") as given, open(process.output_fd, "rb") as answered:
        try:
            given.write(question)
            given.close()
        except BrokenPipeError:
            pass  # of the process, not of our output: this must not pass for a reader who has seen enough
        return answered.read()
