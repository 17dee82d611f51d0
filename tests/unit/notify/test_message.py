"""The document and the letter, byte for byte where programs read them (contract, L.2 and L.3)."""

from __future__ import annotations

import base64
import email
import email.policy
import hashlib
import json

import pytest

from jobman.notify.message import Message, letter, message_id, payload, subject
from tests.receivers import EVENT_ID, JOB_ID, OCCURRED_NS

SUMMARY: dict[str, str | int] = {
    "job_outcome": "failure",
    "job_name": "train",
    "run_id": "01a2293e-6db3-7dc2-9dc2-466737426d30",
    "reason": "next_run",
    "diagnostic_code": "target_start_failed",
    "run_outcome": "failure",
    "run_number": 2,
    "failure_count": 2,
    "success_count": 0,
    "run_count": 2,
    "exit_code": 0,
    "run_completed_at": "2027-01-15T08:01:00.5Z",
    "run_started_at": "2027-01-15T08:00:30Z",
    "next_run_at": "2027-01-15T08:02:00Z",
    "completed_at": "2027-01-15T08:01:00Z",
    "started_at": "2027-01-15T08:00:30Z",
    "submitted_at": "2027-01-15T08:00:00Z",
}
# L.2: submitted, started, completed and so on, the counts, the run, why.
ORDER = (
    *("submitted_at", "started_at", "completed_at", "next_run_at", "run_started_at", "run_completed_at", "exit_code"),
    *("run_count", "success_count", "failure_count", "run_number", "job_name", "job_outcome", "run_id", "run_outcome"),
    *("diagnostic_code", "reason"),
)
MESSAGE = Message(EVENT_ID, "job_failed", JOB_ID, OCCURRED_NS, SUMMARY)


def test_members_come_in_their_order_and_nothing_is_markup_to_html() -> None:
    text = payload(MESSAGE._replace(run_id="r", summary=SUMMARY | {"job_name": "<a&b>\u2028é"})).decode()

    document = json.loads(text)
    assert list(document) == ["occurred_at", "detail", "schema_version", "id", "type", "job_id", "run_id"]
    assert tuple(document["detail"]["summary"]) == ORDER
    assert document["occurred_at"] == "2027-01-15T08:00:00.123456789Z"
    assert '"job_name":"\\u003ca\\u0026b\\u003e\\u2028é"' in text
    assert not text.endswith("\n")
    assert ": " not in text


@pytest.mark.parametrize(
    ("event", "name", "prefix", "text"),
    [
        ("job_failed", "train", "", "Jobman: failed: train [01a2293e]"),
        ("run_timed_out", "", "", "Jobman: timed out: 01a2293e"),
        ("job_submission_failed", "", " Night ", "Night: submission failed: 01a2293e"),
        ("retry_scheduled", "x" * 65, "", f"Jobman: retry scheduled: {'x' * 63}… [01a2293e]"),
        ("run_started", "x" * 64, "", f"Jobman: started: {'x' * 64} [01a2293e]"),
        ("test", "a", "", "Jobman: test: a [01a2293e]"),
    ],
)
def test_the_subject_says_how_it_went_and_which_job(event: str, name: str, prefix: str, text: str) -> None:
    said: dict[str, str | int] = {"job_name": name} if name else {}
    assert subject(MESSAGE._replace(type=event, summary=said), prefix) == text


def test_the_letter_is_what_mail_programs_expect() -> None:
    written = letter(
        MESSAGE._replace(summary=SUMMARY | {"job_name": "näme\r\nBcc: x"}), "a@b.example", ("c@d.example",)
    )

    head, _, body = written.partition(b"\r\n\r\n")
    names = [line.partition(":")[0] for line in head.decode().split("\r\n") if not line.startswith(" ")]
    assert names == [
        *("From", "To", "Date", "Message-ID", "Subject", "MIME-Version"),
        *("Content-Type", "Content-Transfer-Encoding"),
    ]
    assert b"Date: Fri, 15 Jan 2027 08:00:00 +0000\r\n" in head
    digest = hashlib.sha256(EVENT_ID.encode()).hexdigest()[:32]
    assert message_id(MESSAGE) == f"<{digest}@jobman.local>"
    assert head.isascii()
    assert written.count(b"\n") == written.count(b"\r\n")
    assert {len(line) for line in body.split(b"\r\n")[:-2]} == {76}
    parsed = email.message_from_bytes(written, policy=email.policy.default)
    assert parsed["Bcc"] is None
    lines = base64.b64decode(body).decode().splitlines()
    assert lines[0] == "Job:           näme  Bcc: x"
    assert "Duration:      30s" in lines
    assert "Run duration:  30.5s" in lines
    assert "Runs:          2 total, 0 succeeded, 2 failed" in lines
    assert lines[-4:] == ["", "Inspect:", f"  jobman show {JOB_ID}", f"  jobman logs {JOB_ID}"]


def test_what_is_not_known_is_not_mentioned() -> None:
    body = letter(MESSAGE._replace(summary={}), "a@b.example", ("c@d.example",)).partition(b"\r\n\r\n")[2]

    lines = base64.b64decode(body).decode().splitlines()

    labels = [line.partition(":")[0] for line in lines]
    assert labels == ["Job ID", "Event", "Event ID", "Occurred", "", "Inspect", f"  jobman show {JOB_ID}"]
