"""Notifications of a job as members of its document (contract, A.5 and L.5)."""

from __future__ import annotations

from jobman.documents.members import timestamp, without_empty
from jobman.model.scalars import format_timestamp
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.documents.members import Document
    from jobman.store.deliveries import Attempt, Delivery


def delivery_document(delivery: Delivery) -> Document:
    """Return DELIVERY."""
    optional = {
        "run_id": delivery.run_id,
        "next_attempt_at": timestamp(delivery.next_attempt_at_ns),
        "claimed_at": timestamp(delivery.claimed_at_ns),
        "claim_expires_at": timestamp(delivery.claim_expires_at_ns),
        "completed_at": timestamp(delivery.completed_at_ns),
        "diagnostic_code": delivery.diagnostic_code,
        "diagnostic": delivery.diagnostic,
    }
    return {
        **_event_of(delivery),
        "status": delivery.status.value,
        "occurred_at": format_timestamp(delivery.occurred_at_ns),
        "created_at": format_timestamp(delivery.created_at_ns),
        "max_attempts": delivery.max_attempts,
        "attempt_count": delivery.attempt_count,
        **without_empty(optional),
    }


def attempt_document(attempt: Attempt) -> Document:
    """Return ATTEMPT."""
    optional = {
        "started_at": timestamp(attempt.started_at_ns),
        "completed_at": timestamp(attempt.completed_at_ns),
        "next_attempt_at": timestamp(attempt.next_attempt_at_ns),
        "diagnostic_code": attempt.diagnostic_code,
        "diagnostic": attempt.diagnostic,
        "response_status_code": attempt.response_status_code,
        "message_id": attempt.message_id,
    }
    # 0 is how a program says that it has understood.
    ended = {} if attempt.command_exit_code is None else {"command_exit_code": attempt.command_exit_code}
    return {
        "id": attempt.id,
        **_event_of(attempt),
        "attempt_number": attempt.number,
        "status": attempt.status.value,
        "created_at": format_timestamp(attempt.created_at_ns),
        "retryable": attempt.retryable,
        "response_truncated": attempt.response_truncated,
        **ended,
        **without_empty(optional),
    }


def _event_of(one: Delivery | Attempt) -> Document:
    return {
        "job_id": one.job_id,
        "event_id": one.event_id,
        "notifier": one.notifier,
        "event_type": one.event_type,
    }
