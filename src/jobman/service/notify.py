"""Seeing to it, on behalf of a client, that what is to be told is sent (contract, L.4)."""

from __future__ import annotations

import os

from jobman.store.jobs import has_open_deliveries
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.notifiers import Notifier
    from jobman.store.connection import Store


def send_queued(store: Store) -> None:
    """Start a sender if this client queued something: it has found a job lost, or failed a submission."""
    if store.has_queued:
        store.has_queued = False
        _start(store)


def send_leftovers(store: Store) -> None:
    """Start a sender if anything is left to send and nobody does: the last sender may have been killed."""
    if not store.read_only and has_open_deliveries(store):
        _start(store)


def _start(store: Store) -> None:
    from jobman.process.senders import start_sender  # rarely needed

    try:
        start_sender(store.root)
    except OSError:
        pass  # whoever comes next tries again


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
    with open(process.input_fd, "wb") as given, open(process.output_fd, "rb") as answered:
        given.write(json.dumps(notifier_document(notifier)).encode())
        given.close()
        answer = answered.read()
    os.waitpid(process.pid, 0)
    if not answer:
        raise LaunchError(detail="the process that sends notifications ended without an answer")
    said = json.loads(answer)
    said["code"] = said["code"] or ""
    return Trial(**{name: said[name] for name in Trial._fields})
