"""One attempt: look up the secrets, write the message, send it (contract, L.3 and K.6)."""

from __future__ import annotations

import os

from jobman.config.secrets import resolve_all
from jobman.errors import SecretUnavailableError
from jobman.notify.message import MAX_PAYLOAD, payload
from jobman.notify.outgoing import Outgoing
from jobman.policy.delivery import FailureCode, Result
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from jobman.model.notifiers import Notifier
    from jobman.notify.message import Message


class Occasion(NamedTuple):
    """How long an attempt may take, when it is, and what must not be held while it forks."""

    timeout_s: float
    wall_ns: int
    fork_gate: AbstractContextManager[object]


def attempt(notifier: Notifier, message: Message, occasion: Occasion) -> Result:
    """Send the message once; every failure is a result, and none says what a secret is."""
    try:
        secrets = resolve_all(notifier.secrets(), os.environb)
    except SecretUnavailableError as error:
        from_environment = any(secret.provider == "env" for secret in notifier.secrets())
        return Result(FailureCode.INVALID, str(error), elsewhere=from_environment)
    body = payload(message)
    if len(body) > MAX_PAYLOAD:
        return Result(FailureCode.INVALID, f"the message is larger than {MAX_PAYLOAD} bytes")
    named = {name.decode("ascii"): value for name, value in secrets.items()}
    try:
        return _send(notifier, Outgoing(message, body, named, *occasion))
    except Exception as error:  # noqa: BLE001  # its text might quote what was sent
        return Result(FailureCode.INTERNAL, f"internal error: {type(error).__name__}", retryable=True)


def _send(notifier: Notifier, outgoing: Outgoing) -> Result:
    # Each way to send is loaded by those who need it: the HTTP client alone takes 100 ms and 12 MB.
    if notifier.command is not None:
        from jobman.notify import command

        return command.send(notifier.command, outgoing)
    if notifier.http is not None:
        from jobman.notify import webhook

        return webhook.send(notifier.http, outgoing)
    if notifier.smtp is not None:
        from jobman.notify import smtp

        return smtp.send(notifier.smtp, outgoing)
    raise AssertionError(notifier.name)
