"""Notifiers as values: what is refused, and the document that keeps them (contract, E.1 and E.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobman.errors import InvalidSpecError
from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    Notifier,
    RetryPolicy,
    Subscription,
    subscriptions_problem,
)
from jobman.model.secrets import SecretVariable
from jobman.model.spec_json import decode, encode
from jobman.model.spec_rules import validate
from tests.notifiers import HOOK, MAIL, NOTIFIERS, SUBSCRIPTIONS, WEB
from tests.stores import plain_spec

BAD_SECRET = SecretVariable("X", "vault", "name")
COMMAND, HTTP, SMTP = HOOK.command, WEB.http, MAIL.smtp
assert COMMAND is not None
assert HTTP is not None
assert SMTP is not None


def test_a_specification_with_notifiers_reads_as_it_was_written() -> None:
    spec = plain_spec(subscriptions=SUBSCRIPTIONS, notifiers=NOTIFIERS)

    assert decode(encode(spec)) == spec
    documents = json.loads(encode(spec))["execution_policy"]["notifier_definitions"]
    # A member of our own is there only where it says something.
    assert [document.get("budget") for document in documents] == ["5s", None, None]
    assert [document["kind"] for document in documents] == ["command", "http", "smtp"]


@pytest.mark.parametrize("change", [{"kind": "smtp"}, {"more": 1}, {"command": None}, {"timeout": 3}, {"http": {}}])
def test_a_document_that_is_half_understood_is_refused(change: dict[str, Any]) -> None:
    document = json.loads(encode(plain_spec(subscriptions=SUBSCRIPTIONS, notifiers=NOTIFIERS)))
    document["execution_policy"]["notifier_definitions"][0] |= change

    with pytest.raises(InvalidSpecError):
        decode(json.dumps(document))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (HOOK._replace(name=""), "name"),
        (HOOK._replace(name=" a"), "name"),
        (HOOK._replace(name="a\x1b"), "name"),
        (HOOK._replace(http=HTTP), "exactly one"),
        (HOOK._replace(command=None), "exactly one"),
        (HOOK._replace(timeout_ns=0), "must be positive"),
        (HOOK._replace(budget_ns=0), "must be positive"),
        (HOOK._replace(retry=RetryPolicy(0)), "attempts must be 1 to 100"),
        (HOOK._replace(retry=RetryPolicy(101)), "attempts must be 1 to 100"),
        (HOOK._replace(retry=RetryPolicy(1, 2, 1)), "longest delay"),
        (HOOK._replace(command=COMMAND._replace(executable="hook")), "absolute path"),
        (HOOK._replace(command=COMMAND._replace(arguments=("\0",))), "NUL"),
        (HOOK._replace(command=COMMAND._replace(output_limit=1 << 21)), "output limit"),
        (HOOK._replace(command=COMMAND._replace(assignments=(("A-B", ""),))), "environment variable"),
        (HOOK._replace(command=COMMAND._replace(assignments=(("TOKEN", ""),))), "TOKEN"),
        (HOOK._replace(command=COMMAND._replace(secrets=(BAD_SECRET,))), "neither a variable nor a file"),
        (WEB._replace(http=HTTP._replace(url="http://a/", allow_http=False)), "https://"),
        (WEB._replace(http=HTTP._replace(url="https:///a")), "name a host"),
        (WEB._replace(http=HTTP._replace(headers=(("AUTHORIZATION", "a"),))), "given twice"),
        (WEB._replace(http=HTTP._replace(signing_secret=BAD_SECRET)), "neither a variable nor a file"),
        (MAIL._replace(smtp=SMTP._replace(address="mail")), "host:port"),
        (MAIL._replace(smtp=SMTP._replace(address="mail:0")), "host:port"),
        (MAIL._replace(smtp=SMTP._replace(address="mail:99999")), "host:port"),
        (MAIL._replace(smtp=SMTP._replace(recipients=())), "recipient"),
        (MAIL._replace(smtp=SMTP._replace(sender="a@b\r\nBcc: c@d")), "control characters"),
        (MAIL._replace(smtp=SMTP._replace(username="")), "needed together"),
        (MAIL._replace(smtp=SMTP._replace(subject_prefix="a\nb")), "one line"),
    ],
)
def test_a_notifier_that_breaks_a_rule_is_refused_in_words(changed: Notifier, says: str) -> None:
    spec = plain_spec(subscriptions=(Subscription(changed.name, (NotifyEvent.JOB_LOST,)),), notifiers=(changed,))

    with pytest.raises(InvalidSpecError, match=says):
        validate(spec)


@pytest.mark.parametrize(
    ("subscriptions", "notifiers", "says"),
    [
        ((Subscription("other", (NotifyEvent.JOB_LOST,)),), NOTIFIERS, "has no definition"),
        ((Subscription("hook", ()),), NOTIFIERS, "at least one event"),
        ((Subscription("hook", (NotifyEvent.JOB_LOST,) * 2),), NOTIFIERS, "of each once"),
        (SUBSCRIPTIONS[:1] * 2, NOTIFIERS, "named twice"),
        (SUBSCRIPTIONS, (*NOTIFIERS, HOOK), "defined twice"),
    ],
)
def test_who_is_told_of_what_must_fit(
    subscriptions: tuple[Subscription, ...], notifiers: tuple[Notifier, ...], says: str
) -> None:
    assert says in (subscriptions_problem(subscriptions, notifiers) or "")
