"""Notifiers with every member, one of each kind, and what is recorded of telling them."""

from __future__ import annotations

from jobman.model.events import NotifyEvent
from jobman.model.notifiers import (
    CommandTarget,
    HttpTarget,
    Notifier,
    RetryPolicy,
    SmtpTarget,
    Subscription,
    TlsMode,
)
from jobman.model.secrets import SecretVariable
from jobman.policy.delivery import DeliveryStatus, FailureCode
from jobman.store.deliveries import Attempt, Delivery
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, SECOND_NS, derived_id

HOOK = Notifier(
    "hook",
    command=CommandTarget(
        "/bin/hook",
        ("--quietly",),
        (("MODE", "fast"),),
        (SecretVariable("TOKEN", "env", "TOKEN"),),
        1_000,
        "/srv",
    ),
    timeout_ns=2 * SECOND_NS,
    budget_ns=5 * SECOND_NS,
    retry=RetryPolicy(4, SECOND_NS, 3 * SECOND_NS),
)
WEB = Notifier(
    "web",
    http=HttpTarget(
        "https://example.org/hook",
        (("X-Team", "blue"),),
        (SecretVariable("Authorization", "file", "/etc/token"),),
        SecretVariable("signing_secret", "env", "KEY"),
        "X-Signature",
        allow_http=True,
        allow_private=True,
        follow_redirects=True,
    ),
)
MAIL = Notifier(
    "mail",
    smtp=SmtpTarget(
        "mail.example.org:587",
        "Jobman <jobs@example.org>",
        ("ops@example.org", "boss@example.org"),
        TlsMode.STARTTLS,
        "me",
        SecretVariable("password_secret", "file", "/etc/password"),
        "Night",
        "mail.example.net",
    ),
)
NOTIFIERS = (HOOK, WEB, MAIL)
SUBSCRIPTIONS = tuple(
    Subscription(notifier.name, (NotifyEvent.JOB_FAILED, NotifyEvent.JOB_SUCCEEDED)) for notifier in NOTIFIERS
)

_EVENT_ID = derived_id(EXAMPLE_JOB_ID, "event", 1)
DELIVERY = Delivery(
    EXAMPLE_JOB_ID,
    _EVENT_ID,
    "hook",
    NotifyEvent.RUN_FAILED,
    DeliveryStatus.FAILED,
    occurred_at_ns=EPOCH_NS,
    created_at_ns=EPOCH_NS,
    max_attempts=3,
    attempt_count=1,
    run_id=derived_id(EXAMPLE_JOB_ID, "run", 1),
    next_attempt_at_ns=EPOCH_NS,
    claimed_at_ns=EPOCH_NS,
    claim_expires_at_ns=EPOCH_NS,
    completed_at_ns=EPOCH_NS,
    diagnostic_code=FailureCode.BUDGET_EXHAUSTED,
    diagnostic="words",
)
ATTEMPT = Attempt(
    derived_id(EXAMPLE_JOB_ID, "attempt", 1),
    EXAMPLE_JOB_ID,
    _EVENT_ID,
    "hook",
    NotifyEvent.RUN_FAILED,
    1,
    DeliveryStatus.FAILED,
    EPOCH_NS,
    retryable=True,
    response_truncated=False,
    started_at_ns=EPOCH_NS,
    completed_at_ns=EPOCH_NS,
    next_attempt_at_ns=EPOCH_NS,
    diagnostic_code=FailureCode.REJECTED,
    diagnostic="words",
    response_status_code=500,
    command_exit_code=0,
    message_id="<a@jobman.local>",
)
