"""Configured notifiers as values of a specification (contract, A.2 and K.4)."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.config.subscribing import notifier, told, warnings
from jobman.errors import UsageError
from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    DEFAULT_BUDGET_NS,
    Notifier,
    RetryPolicy,
    notifier_problem,
)
from tests.notifiers import HOOK, MAIL, WEB

STATED: dict[str, Any] = {
    "secrets": {"token": "env:TOKEN", "bearer": "file:/etc/token", "key": "env:KEY", "password": "file:/etc/password"},
    "notifiers": {
        "hook": {
            "type": "command",
            "events": ["job_failed", "job_succeeded"],
            "timeout": "2s",
            "budget": "5s",
            "retry": {"max_attempts": 4, "delay": "1s", "max_delay": "3s"},
            "command": {
                "command": ["/bin/hook", "--quietly"],
                "environment": {"set": {"MODE": "fast"}, "secrets": {"TOKEN": "token"}},
                "output_limit": 1000,
            },
        },
        "web": {
            "type": "http",
            "http": {
                "url": "https://example.org/hook",
                "headers": {"X-Team": "blue"},
                "secret_headers": {"Authorization": "bearer"},
                "signing_secret": "key",
                "allow_http": True,
                "allow_private_hosts": True,
                "follow_redirects": True,
            },
        },
        "mail": {
            "type": "smtp",
            "smtp": {
                "address": "mail.example.org:587",
                "tls": "starttls",
                "username": "me",
                "password_secret": "password",
                "from": "Jobman <jobs@example.org>",
                "to": ["ops@example.org", "boss@example.org"],
                "subject_prefix": "Night",
            },
        },
        "plain": {"type": "http", "http": {"url": "example.org"}},
    },
}


def unconfigurable(one: Notifier) -> Notifier:
    """Return a notifier without what a specification knows and a configuration does not."""
    command = one.command and one.command._replace(working_directory="")
    http = one.http and one.http._replace(signature_header="")
    smtp = one.smtp and one.smtp._replace(server_name="")
    return one._replace(command=command, http=http, smtp=smtp)


@pytest.mark.parametrize("expected", [HOOK, WEB, MAIL], ids=lambda one: one.name)
def test_a_notifier_is_what_its_block_says(expected: Notifier) -> None:
    found = notifier(STATED, expected.name)

    assert found == unconfigurable(expected)
    assert notifier_problem(found) is None


def test_what_is_not_stated_is_the_default() -> None:
    found = notifier(STATED, "plain")

    assert (found.budget_ns, found.retry) == (DEFAULT_BUDGET_NS, RetryPolicy())
    assert found.http is not None
    assert found.http.url == "https://example.org"
    assert (found.http.allow_http, found.http.allow_private, found.http.follow_redirects) == (False, False, False)


def test_each_notifier_tells_of_its_own_events_unless_others_are_chosen() -> None:
    assert told(STATED, ["hook"], []).subscriptions[0].events == (NotifyEvent.JOB_FAILED, NotifyEvent.JOB_SUCCEEDED)
    chosen = told(STATED, ["web", "hook"], ["job_lost"])
    assert [(one.notifier, one.events) for one in chosen.subscriptions] == [
        ("web", (NotifyEvent.JOB_LOST,)),
        ("hook", (NotifyEvent.JOB_LOST,)),
    ]
    assert [one.name for one in chosen.notifiers] == ["web", "hook"]


@pytest.mark.parametrize(
    ("names", "events", "says"),
    [
        (["nobody"], [], "unknown name 'nobody': expected hook, mail, plain, web"),
        ([], ["job_failed"], "--notify-on needs a notifier"),
        (["hook"], ["job_exploded"], "unknown event 'job_exploded': expected job_started, "),
        (["web"], [], "--notify web: nothing says of what to tell"),
        (["hook", "hook"], [], "--notify: 'hook' is given twice"),
        (["hook"], ["job_lost", "job_lost"], "--notify-on: 'job_lost' is given twice"),
    ],
)
def test_a_choice_that_cannot_be_met_is_refused(names: list[str], events: list[str], says: str) -> None:
    """O.5: events without any notifier are refused."""
    with pytest.raises(UsageError) as caught:
        told(STATED, names, events)
    assert says in str(caught.value)


def test_retries_that_do_not_fit_into_their_budget_are_warned_of() -> None:
    retry = {"max_attempts": 6, "delay": "5s", "max_delay": "20s"}
    slow = STATED["notifiers"]["plain"] | {"events": ["job_failed"], "retry": retry}
    found = warnings({"notifiers": {"hook": STATED["notifiers"]["hook"], "slow": slow}, "secrets": STATED["secrets"]})
    assert found == [
        "notifiers.hook: 4 attempts take at least 6s, and the budget is 5s: the last ones are never made",
        "notifiers.slow: 6 attempts take at least 1m15s, and the budget is 1m0s: the last ones are never made",
    ]


@pytest.mark.parametrize("chosen", [False, True])
def test_a_notifier_that_is_told_of_nothing_is_warned_of(*, chosen: bool) -> None:
    plain = STATED["notifiers"]["plain"]
    notification = {"notifiers": ["plain"], "events": ["job_failed"]} if chosen else {}
    warned = "notifiers.plain: without events it is told of nothing but what a job names (--notify-on)"
    assert warnings({"notifiers": {"plain": plain}, "notification": notification}) == ([] if chosen else [warned])
