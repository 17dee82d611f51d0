"""One attempt: look up the secrets, write the message, send it (contract, L.3 and K.6)."""

from __future__ import annotations

import os

from jobman.config.secrets import resolve_all
from jobman.errors import SecretUnavailableError
from jobman.notify.message import MAX_PAYLOAD, letter, message_id, payload
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
    try:
        return _send(notifier, message, body, secrets, occasion)
    except Exception as error:  # noqa: BLE001  # its text might quote what was sent
        return Result(FailureCode.INTERNAL, f"internal error: {type(error).__name__}", retryable=True)


def _send(
    notifier: Notifier, message: Message, body: bytes, secrets: dict[bytes, bytes], occasion: Occasion
) -> Result:
    # Each way to send is loaded by those who need it: the HTTP client alone takes 100 ms and 12 MB.
    if notifier.command is not None:
        from jobman.notify import command

        event = command.Event(message.id, message.type)
        return command.send(
            notifier.command,
            body,
            event=event,
            secrets=secrets,
            timeout_s=occasion.timeout_s,
            fork_gate=occasion.fork_gate,
        )
    named = {name.decode("ascii"): value for name, value in secrets.items()}
    if notifier.http is not None:
        from jobman.notify import webhook

        return webhook.send(
            notifier.http,
            body,
            event_id=message.id,
            secrets=named,
            timeout_s=occasion.timeout_s,
            wall_ns=occasion.wall_ns,
        )
    if notifier.smtp is not None:
        from jobman.notify import smtp

        target = notifier.smtp
        text = letter(message, target.sender, target.recipients, target.subject_prefix)
        sent_as = message_id(message)
        return smtp.send(target, text, message_id=sent_as, secrets=named, timeout_s=occasion.timeout_s)
    raise AssertionError(notifier.name)
