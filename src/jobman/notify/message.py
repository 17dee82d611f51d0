"""What is sent: the JSON document for programs and web hooks, the letter for people (contract, L.2 and L.3)."""

from __future__ import annotations

import base64
import hashlib
import json
from email.charset import QP, Charset
from email.header import Header

from jobman.model.scalars import SECOND, format_duration, format_timestamp, parse_timestamp
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    Summary = dict[str, str | int]

SCHEMA_VERSION = 1
MAX_PAYLOAD = 1 << 20
TEST_EVENT = "test"
_MEMBERS = (
    "submitted_at",
    "started_at",
    "completed_at",
    "next_run_at",
    "run_started_at",
    "run_completed_at",
    "exit_code",
    "run_count",
    "success_count",
    "failure_count",
    "run_number",
    "job_name",
    "job_outcome",
    "run_id",
    "run_outcome",
    "diagnostic_code",
    "reason",
)
_STATUS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "timed_out": "timed out",
    "cancelled": "cancelled",
    "lost": "lost",
    "aborted": "aborted",
    "submission_failed": "submission failed",
    "scheduled": "retry scheduled",
    "started": "started",
}
_NAME_LENGTH = 64
_PREFIX = "Jobman"
_LINE = 76
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Message(NamedTuple):
    """What happened, as it is told: the state event's ID, its type, the job, the run of a run's event, what is said."""

    id: str
    type: str
    job_id: str
    occurred_at_ns: int
    summary: Summary
    run_id: str | None = None


def payload(message: Message) -> bytes:
    """Return the document, compact and with what HTML takes for markup escaped, the same for every attempt."""
    members = {name: message.summary[name] for name in _MEMBERS if name in message.summary}
    document: dict[str, object] = {
        "occurred_at": format_timestamp(message.occurred_at_ns),
        "detail": {"summary": members},
        "schema_version": SCHEMA_VERSION,
        "id": message.id,
        "type": message.type,
        "job_id": message.job_id,
    }
    if message.run_id is not None:
        document["run_id"] = message.run_id
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace")


# --- The letter ----------------------------------------------------------------------------------------------------


def message_id(message: Message) -> str:
    """Return the ID of the letter: the same for every attempt, so that a mail server can tell a repetition."""
    return f"<{hashlib.sha256(message.id.encode()).hexdigest()[:32]}@jobman.local>"


def letter(message: Message, sender: str, recipients: tuple[str, ...], prefix: str = "") -> bytes:
    """Return the whole letter with CRLF at the end of every line."""
    body = base64.b64encode(_body(message).encode("utf-8", "replace")).decode("ascii")
    headers = (
        ("From", sender),
        ("To", ", ".join(recipients)),
        ("Date", _mail_date(message.occurred_at_ns)),
        ("Message-ID", message_id(message)),
        ("Subject", _encoded(subject(message, prefix))),
        ("MIME-Version", "1.0"),
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Content-Transfer-Encoding", "base64"),
    )
    lines = [f"{name}: {value}" for name, value in headers]
    lines += ["", *(body[start : start + _LINE] for start in range(0, len(body), _LINE)), ""]
    return "\r\n".join(lines).encode("utf-8", "replace")


def subject(message: Message, prefix: str = "") -> str:
    """Return the subject: prefix, how it went, and which job it is."""
    name = str(message.summary.get("job_name", ""))
    if len(name) > _NAME_LENGTH:
        name = name[: _NAME_LENGTH - 1] + "…"
    short = message.job_id[:8]
    which = f"{name} [{short}]" if name else short
    return f"{prefix.strip() or _PREFIX}: {_status(message)}: {which}"


def _status(message: Message) -> str:
    word = message.type.partition("_")[2]
    return _STATUS.get(word, message.type)


def _encoded(text: str) -> str:
    if text.isascii():
        return text
    charset = Charset("utf-8")
    charset.header_encoding = QP
    return Header(text, charset, header_name="Subject").encode(linesep="\r\n")


def _mail_date(time_ns: int) -> str:
    # As RFC 1123 has it, in English whatever the locale.
    import time

    year, month, day, hour, minute, second, weekday, *_ = time.gmtime(time_ns // SECOND)
    return f"{_WEEKDAYS[weekday]}, {day:02} {_MONTHS[month - 1]} {year:04} {hour:02}:{minute:02}:{second:02} +0000"


def _body(message: Message) -> str:
    lines = [f"{label + ':':<14} {value}" for label, value in _fields(message) if value != ""]
    if message.type != TEST_EVENT:
        lines += ["", "Inspect:", f"  jobman show {message.job_id}"]
        if "run_id" in message.summary:
            lines.append(f"  jobman logs {message.job_id}")
    return "\n".join(lines) + "\n"


def _fields(message: Message) -> Iterator[tuple[str, str]]:
    said = {name: _one_line(str(value)) for name, value in message.summary.items()}

    def of(name: str) -> str:
        return said.get(name, "")

    yield "Job", of("job_name")
    yield "Job ID", message.job_id
    yield "Event", message.type
    yield "Event ID", message.id
    yield "Outcome", of("job_outcome")
    yield "Occurred", format_timestamp(message.occurred_at_ns)
    yield "Submitted", of("submitted_at")
    yield "Started", of("started_at")
    yield "Completed", of("completed_at")
    yield "Duration", _between(of("started_at"), of("completed_at"))
    yield "Run", of("run_number")
    yield "Run ID", of("run_id")
    yield "Run outcome", of("run_outcome")
    yield "Run started", of("run_started_at")
    yield "Run completed", of("run_completed_at")
    yield "Run duration", _between(of("run_started_at"), of("run_completed_at"))
    yield "Exit code", of("exit_code")
    if "run_count" in said:
        yield "Runs", f"{of('run_count')} total, {of('success_count')} succeeded, {of('failure_count')} failed"
    yield "Diagnostic", of("diagnostic_code")
    yield "Next run", of("next_run_at")
    yield "Reason", of("reason")


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def _between(first: str, last: str) -> str:
    return format_duration(max(0, parse_timestamp(last) - parse_timestamp(first))) if first and last else ""
