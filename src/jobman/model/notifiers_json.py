"""Notifiers and subscriptions as members of the canonical specification (contract, E.1: NOTIFIER)."""

from __future__ import annotations

from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    DEFAULT_BUDGET_NS,
    MESSAGE_LIMIT,
    RESPONSE_LIMIT,
    CommandTarget,
    HttpTarget,
    Notifier,
    RetryPolicy,
    SmtpTarget,
    Subscription,
    TlsMode,
)
from jobman.model.scalars import format_duration, parse_duration
from jobman.model.secrets import secrets_document, secrets_from
from jobman.model.strict import Reader, strings, texts
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobman.model.secrets import SecretVariable
    from jobman.model.strict import Document

_SIGNING = "signing_secret"
_PASSWORD = "password_secret"  # noqa: S105  # the name of a member


def subscription_documents(subscriptions: Iterable[Subscription]) -> list[Document]:
    """Return the member ``notifications``."""
    return [{"notifier": one.notifier, "events": [event.value for event in one.events]} for one in subscriptions]


def notifier_documents(notifiers: Iterable[Notifier]) -> list[Document]:
    """Return the member ``notifier_definitions``."""
    return [notifier_document(notifier) for notifier in notifiers]


def notifier_document(notifier: Notifier) -> Document:
    """Return NOTIFIER; ``budget`` is a member of our own, there only when it is not the default (A.16)."""
    retry = notifier.retry
    document: Document = {
        "name": notifier.name,
        "kind": notifier.kind.value,
        "timeout": format_duration(notifier.timeout_ns),
        "retry": {
            "max_attempts": retry.max_attempts,
            "delay": format_duration(retry.delay_ns),
            "max_delay": format_duration(retry.max_delay_ns),
        },
    }
    if notifier.budget_ns != DEFAULT_BUDGET_NS:
        document["budget"] = format_duration(notifier.budget_ns)
    if notifier.command is not None:
        document["command"] = _command_document(notifier.command)
    if notifier.http is not None:
        document["http"] = _http_document(notifier.http)
    if notifier.smtp is not None:
        document["smtp"] = _smtp_document(notifier.smtp)
    return document


def subscriptions_from(values: list[object]) -> tuple[Subscription, ...]:
    """Return what `subscription_documents` made."""
    found = []
    for value in values:
        with Reader(value) as reader:
            events = tuple(NotifyEvent(word) for word in strings(reader.take("events", list)))
            found.append(Subscription(reader.take("notifier", str), events))
    return tuple(found)


def notifiers_from(values: list[object]) -> tuple[Notifier, ...]:
    """Return what `notifier_documents` made."""
    return tuple(notifier_from(value) for value in values)


def notifier_from(value: object) -> Notifier:
    """Return what `notifier_document` made."""
    with Reader(value) as reader:
        budget = reader.take_optional("budget", str)
        kind = reader.take("kind", str)
        command, http, smtp = (reader.take_optional(name, dict) for name in ("command", "http", "smtp"))
        notifier = Notifier(
            name=reader.take("name", str),
            command=None if command is None else _command(command),
            http=None if http is None else _http(http),
            smtp=None if smtp is None else _smtp(smtp),
            timeout_ns=parse_duration(reader.take("timeout", str)),
            budget_ns=DEFAULT_BUDGET_NS if budget is None else parse_duration(budget),
            retry=_retry(reader.take("retry", dict)),
        )
    # The kind says what the target says already; another one is refused like an unknown member.
    Reader({"kind": kind}).expect({"kind": notifier.kind.value})
    return notifier


def _retry(value: object) -> RetryPolicy:
    with Reader(value) as reader:
        return RetryPolicy(
            reader.take("max_attempts", int),
            parse_duration(reader.take("delay", str)),
            parse_duration(reader.take("max_delay", str)),
        )


def _command_document(command: CommandTarget) -> Document:
    document: Document = {
        "executable": command.executable,
        "arguments": list(command.arguments),
        "environment": dict(command.assignments),
        "secret_environment": secrets_document(command.secrets),
        "output_limit": command.output_limit,
    }
    return document | _given({"working_directory": command.working_directory})


def _http_document(http: HttpTarget) -> Document:
    document: Document = {
        "url": http.url,
        "headers": dict(http.headers),
        "secret_headers": secrets_document(http.secret_headers),
        "response_limit": RESPONSE_LIMIT,
        "allow_insecure_http": http.allow_http,
        "allow_private_network": http.allow_private,
        "follow_redirects": http.follow_redirects,
    }
    if http.signing_secret is not None:
        document[_SIGNING] = _place(http.signing_secret)
    return document | _given({"signature_header": http.signature_header})


def _smtp_document(smtp: SmtpTarget) -> Document:
    document: Document = {
        "address": smtp.address,
        "from": smtp.sender,
        "to": list(smtp.recipients),
        "mode": smtp.mode.value,
        "message_limit": MESSAGE_LIMIT,
    }
    if smtp.password is not None:
        document[_PASSWORD] = _place(smtp.password)
    optional = {
        "server_name": smtp.server_name,
        "username": smtp.username,
        "subject_prefix": smtp.subject_prefix,
    }
    return document | _given(optional)


def _given(members: dict[str, str]) -> Document:
    return {name: text for name, text in members.items() if text}


def _place(secret: SecretVariable) -> Document:
    document: Document = secrets_document((secret,))[secret.name]
    return document


def _placed(reader: Reader, name: str) -> SecretVariable | None:
    place = reader.take_optional(name, dict)
    return None if place is None else secrets_from({name: place})[0]


def _command(value: object) -> CommandTarget:
    with Reader(value) as reader:
        return CommandTarget(
            executable=reader.take("executable", str),
            arguments=strings(reader.take("arguments", list)),
            assignments=texts(reader.take("environment", dict)),
            secrets=secrets_from(reader.take("secret_environment", dict)),
            output_limit=reader.take("output_limit", int),
            working_directory=reader.take_optional("working_directory", str) or "",
        )


def _http(value: object) -> HttpTarget:
    with Reader(value) as reader:
        reader.expect({"response_limit": RESPONSE_LIMIT})
        return HttpTarget(
            url=reader.take("url", str),
            headers=texts(reader.take("headers", dict)),
            secret_headers=secrets_from(reader.take("secret_headers", dict)),
            signing_secret=_placed(reader, _SIGNING),
            signature_header=reader.take_optional("signature_header", str) or "",
            allow_http=reader.take("allow_insecure_http", bool),
            allow_private=reader.take("allow_private_network", bool),
            follow_redirects=reader.take("follow_redirects", bool),
        )


def _smtp(value: object) -> SmtpTarget:
    with Reader(value) as reader:
        reader.expect({"message_limit": MESSAGE_LIMIT})
        return SmtpTarget(
            address=reader.take("address", str),
            sender=reader.take("from", str),
            recipients=strings(reader.take("to", list)),
            mode=TlsMode(reader.take("mode", str)),
            username=reader.take_optional("username", str) or "",
            password=_placed(reader, _PASSWORD),
            subject_prefix=reader.take_optional("subject_prefix", str) or "",
            server_name=reader.take_optional("server_name", str) or "",
        )
