"""Configured notifiers as values of a job's specification (contract, A.2, K.4 and L).

Works on what the sources have stated and the rules of a configuration have checked; loaded only for a job that tells
somebody of itself.
"""

from __future__ import annotations

from jobman.config.select import look_up
from jobman.errors import UsageError
from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    DEFAULT_OUTPUT_LIMIT,
    CommandTarget,
    HttpTarget,
    Notifier,
    NotifierKind,
    RetryPolicy,
    SmtpTarget,
    Subscription,
    TlsMode,
)
from jobman.model.scalars import format_duration, parse_duration
from jobman.model.secrets import SecretVariable
from jobman.policy.delivery import outlasts_budget, shortest_span_ns
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Block = Mapping[str, Any]

_FLAG = "--notify"
_ON = "--notify-on"


class Told(NamedTuple):
    """Who is told of what."""

    subscriptions: tuple[Subscription, ...]
    notifiers: tuple[Notifier, ...]


def told(stated: Block, names: Sequence[str], events: Sequence[str]) -> Told:
    """Return who is told of what.

    Args:
        stated: what the sources state.
        names: the notifiers that were chosen.
        events: of what they tell; empty: each of what it is configured for.

    Raises:
        UsageError: a notifier or an event is not known or is named twice, or nothing says of what to tell.
    """
    if events and not names:
        raise UsageError(detail=f"{_ON} needs a notifier: give --notify, or configure notification.notifiers")
    for flag, words in ((_FLAG, names), (_ON, events)):
        for word in words:
            if list(words).count(word) > 1:
                raise UsageError(detail=f"{flag}: {word!r} is given twice")
    wanted = tuple(map(_event, events))
    subscriptions = tuple(Subscription(name, wanted or _own_events(stated, name)) for name in names)
    return Told(subscriptions, tuple(notifier(stated, name) for name in names))


def notifier(stated: Block, name: str, flag: str = _FLAG) -> Notifier:
    """Return the notifier of a name.

    Raises:
        UsageError: there is none.
    """
    block = look_up(stated.get("notifiers", {}), flag, name)
    made = Notifier(name, retry=_retry(block.get("retry", {})))
    timeout, budget = block.get("timeout"), block.get("budget")
    if timeout is not None:
        made = made._replace(timeout_ns=parse_duration(timeout))
    if budget is not None:
        made = made._replace(budget_ns=parse_duration(budget))
    kind = NotifierKind(block["type"])
    target = block[kind]
    if kind == NotifierKind.COMMAND:
        return made._replace(command=_command(stated, target))
    if kind == NotifierKind.HTTP:
        return made._replace(http=_http(stated, target))
    return made._replace(smtp=_smtp(stated, target))


def warnings(stated: Block) -> list[str]:
    """Return what of the notifiers is valid and can yet hardly be meant, in words."""
    chosen = stated.get("notification", {}).get("notifiers", ())
    found = []
    for name, block in sorted(stated.get("notifiers", {}).items()):
        if not block.get("events") and name not in chosen:
            found.append(f"notifiers.{name}: without events it is told of nothing but what a job names ({_ON})")
        made = notifier(stated, name)
        if outlasts_budget(made):
            takes, budget = format_duration(shortest_span_ns(made.retry)), format_duration(made.budget_ns)
            attempts = f"{made.retry.max_attempts} attempts take at least {takes}, and the budget is {budget}"
            found.append(f"notifiers.{name}: {attempts}: the last ones are never made")
    return found


def _event(word: str) -> NotifyEvent:
    try:
        return NotifyEvent(word)
    except ValueError:
        known = ", ".join(NotifyEvent)
        raise UsageError(detail=f"{_ON}: unknown event {word!r}: expected {known}") from None


def _own_events(stated: Block, name: str) -> tuple[NotifyEvent, ...]:
    events = look_up(stated.get("notifiers", {}), _FLAG, name).get("events", ())
    if not events:
        detail = f"{_FLAG} {name}: nothing says of what to tell: give {_ON}, or configure notifiers.{name}.events"
        raise UsageError(detail=detail)
    return tuple(map(NotifyEvent, events))


def _retry(block: Block) -> RetryPolicy:
    retry = RetryPolicy(block.get("max_attempts", RetryPolicy().max_attempts))
    if "delay" in block:
        retry = retry._replace(delay_ns=parse_duration(block["delay"]))
    if "max_delay" in block:
        retry = retry._replace(max_delay_ns=parse_duration(block["max_delay"]))
    return retry


def _command(stated: Block, block: Block) -> CommandTarget:
    environment = block.get("environment", {})
    executable, *arguments = block["command"]
    return CommandTarget(
        executable,
        tuple(arguments),
        tuple(sorted(environment.get("set", {}).items())),
        _secrets(stated, environment.get("secrets", {})),
        block.get("output_limit", DEFAULT_OUTPUT_LIMIT),
    )


def _http(stated: Block, block: Block) -> HttpTarget:
    url = block["url"]
    signing = block.get("signing_secret")
    return HttpTarget(
        url if "://" in url else f"https://{url}",
        tuple(sorted(block.get("headers", {}).items())),
        _secrets(stated, block.get("secret_headers", {})),
        None if signing is None else _secret(stated, "signing_secret", signing),
        allow_http=block.get("allow_http", False),
        allow_private=block.get("allow_private_hosts", False),
        follow_redirects=block.get("follow_redirects", False),
    )


def _smtp(stated: Block, block: Block) -> SmtpTarget:
    password = block.get("password_secret")
    return SmtpTarget(
        block["address"],
        block["from"],
        tuple(block["to"]),
        TlsMode(block["tls"]),
        block.get("username", ""),
        None if password is None else _secret(stated, "password_secret", password),
        block.get("subject_prefix", ""),
    )


def _secrets(stated: Block, wanted: Block) -> tuple[SecretVariable, ...]:
    return tuple(_secret(stated, name, secret) for name, secret in sorted(wanted.items()))


def _secret(stated: Block, name: str, secret: str) -> SecretVariable:
    provider, _, locator = str(stated["secrets"][secret]).partition(":")
    return SecretVariable(name, provider, locator)
