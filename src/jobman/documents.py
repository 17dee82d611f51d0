"""The versioned JSON documents that every ``--json`` prints (contract, A.1 to A.6 and A.16).

One line, keys of ``data`` sorted, members that are empty left out where the contract says so. Text that is not UTF-8 is
printed with U+FFFD. Each document has a JSON Schema in ``docs/reference/schemas``, to which tests hold it.
"""

from __future__ import annotations

import json

from jobman.config.redaction import redact
from jobman.logs.layout import run_directory
from jobman.model.scalars import format_duration, format_timestamp
from jobman.model.spec_json import to_document
from jobman.model.state import JobPhase, LogIntegrity, RunPhase
from jobman.store.migrations import SCHEMA_VERSION as STORE_VERSION
from jobman.store.safety import DATABASE
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from jobman.model.state import Admission, Pruning, Run, RunExit, RunUsage, Supervisor
    from jobman.policy.conditions import ConditionState
    from jobman.policy.liveness import Verdict
    from jobman.policy.waiting import DependencyState
    from jobman.process import Member
    from jobman.service.doctor.findings import Finding, Report
    from jobman.service.maintain import Totals
    from jobman.service.query import Detail, Listed, Summary
    from jobman.store.deliveries import Attempt, Delivery

    Document = dict[str, Any]

SCHEMA_VERSION = 1
_PREFIX = f'{{"schema_version":{SCHEMA_VERSION},"data":'


def envelope(data: object) -> str:
    """Return one document as a line."""
    return f"{_PREFIX}{_dump(redact(data))}}}\n"


def job_list(jobs: Iterable[Listed], *, with_runs: bool, root: str) -> Iterator[str]:
    """Yield the document of a list piece by piece, so that a list of any length needs no memory of its own."""
    pending = iter(jobs)
    # Before anything is printed: a store that cannot be read is one message, not half a document.
    listed = next(pending, None)
    yield f'{_PREFIX}{{"jobs":['
    separator = ""
    while listed is not None:
        item = summary(listed.summary)
        if with_runs:
            runs = [run_document(run, root) for run in listed.runs]
            item = _without_empty({"summary": item, "runs": runs})
        yield separator + _dump(redact(item))
        separator = ","
        listed = next(pending, None)
    yield "]}}\n"


def summary(described: Summary) -> Document:
    """Return SUMMARY."""
    job = described.job
    document = {
        "name": job.name,
        "outcome": job.outcome,
        "reason": described.reason,
        "reason_code": job.waiting_reason if described.reason else None,
    }
    return {
        "id": job.id,
        "phase": job.phase.value,
        "revision": job.revision,
        "submitted_at": format_timestamp(job.submitted_at_ns),
        **_without_empty(document),
    }


def job_detail(detail: Detail, root: str) -> Document:
    """Return the document of ``show``."""
    job = detail.summary.job
    optional = {
        "claimed_at": _timestamp(job.claimed_at_ns),
        "started_at": _timestamp(job.started_at_ns),
        "completed_at": _timestamp(job.completed_at_ns),
        "cancellation_requested_at": _timestamp(job.cancellation_requested_at_ns),
        "admission": _admission(detail.admission),
        "supervisor": _supervisor(detail.supervisor, detail.supervisor_state),
        "diagnostic_code": job.problem.code if job.problem else None,
        "diagnostic": job.problem.text if job.problem else None,
        "diagnostics_path": detail.diagnostics_path,
        "survivors": [_survivor(member) for member in detail.survivors or ()],
    }
    return {
        "summary": summary(detail.summary),
        "specification": to_document(detail.spec),
        "runs": [run_document(run, root) for run in detail.runs],
        "runtime": _runtime(detail),
        "dependencies": [_dependency(job.id, state) for state in detail.dependencies],
        "wait_evaluations": [_evaluation(state) for state in detail.conditions],
        "notification_deliveries": [_delivery(delivery) for delivery in detail.deliveries],
        "notification_attempts": [_attempt(attempt) for attempt in detail.attempts],
        **_without_empty(optional),
    }


def run_document(run: Run, root: str) -> Document:
    """Return RUN."""
    optional = {
        "outcome": run.outcome,
        "resolved_executable": run.resolved_executable,
        "process": _process(run),
        "started_at": _timestamp(run.started_at_ns),
        "completed_at": _timestamp(run.completed_at_ns),
        "exit": _exit(run.exit),
        "usage": _usage(run.usage),
        "diagnostic_code": run.problem.code if run.problem else None,
        "diagnostic": run.problem.text if run.problem else None,
    }
    return {
        "id": run.id,
        "number": run.number,
        "phase": run.phase.value,
        "revision": run.revision,
        "reserved_at": format_timestamp(run.reserved_at_ns),
        "logs": _logs(run, root),
        **_without_empty(optional),
    }


def cleaning(totals: Totals, *, applied: bool) -> Document:
    """Return the document of ``clean``."""
    return {"applied": applied, **totals._asdict()}


def report(examined: Report) -> Document:
    """Return the document of ``doctor``."""
    optional = {
        "backup_path": examined.backup_path,
        "file_system": examined.file_system,
        "limits": None if examined.limits is None else _without_empty(examined.limits._asdict()),
    }
    return {
        "healthy": examined.healthy,
        "store": _examined_store(examined),
        "findings": [_finding(finding) for finding in examined.findings],
        "survivors": [{"job_id": found.job_id, **_survivor(found.member)} for found in examined.survivors],
        "disk": {f"{name}_bytes": size for name, size in examined.disk._asdict().items()},
        "stale_ownership_reconciled": examined.reconciled,
        "notifications_recovered": examined.notified,
        **_without_empty(optional),
    }


def _examined_store(examined: Report) -> Document:
    database = examined.database
    facts = {
        "schema_version": None if database is None else database.schema_version,
        "foreign_key_violations": None if database is None else database.foreign_keys,
        "integrity_result": None if database is None else "\n".join(database.integrity),
        "migration_backup": examined.migration_backup or None,
    }
    return {
        "healthy": database is not None and database.is_sound(),
        "state_directory": examined.root,
        "database_path": f"{examined.root}/{DATABASE}",
        "sqlite_version": examined.sqlite_version,
        "supported_schema_version": STORE_VERSION,
        "wal_checkpointed": examined.wal_merged,
        # Zero is a fact here, and what could not be read is left out.
        **{name: value for name, value in facts.items() if value is not None},
    }


def _finding(finding: Finding) -> Document:
    optional = _without_empty({"advice": finding.advice, "job_id": finding.job_id})
    return {"level": finding.level.value, "topic": finding.topic, "text": finding.text, **optional}


def _survivor(member: Member) -> Document:
    return {"pid": member.identity.pid, "creation_id": member.identity.creation_id, "name": member.name}


def _runtime(detail: Detail) -> Document:
    job, offered = detail.summary.job, detail.live_input
    optional = {
        "next_run_at": _timestamp(job.next_run_at_ns),
        "waiting_reason": job.waiting_reason,
        "paused_from": job.pause.paused_from if job.pause else None,
        "paused_at": _timestamp(job.pause.at_ns) if job.pause else None,
        "prerequisites_satisfied_at": _timestamp(job.prerequisites_satisfied_at_ns),
        "input_endpoint": offered.endpoint if offered and job.phase != JobPhase.COMPLETED else None,
    }
    latest = detail.runs[-1].id if detail.runs else None
    return {
        "revision": job.revision,
        "run_count": job.counters.runs,
        "success_count": job.counters.successes,
        "failure_count": job.counters.failures,
        "total_paused": format_duration(job.total_paused_ns),
        "input_eof_requested": bool(offered and offered.eof_run_id and offered.eof_run_id == latest),
        **_without_empty(optional),
    }


def _dependency(job_id: str, state: DependencyState) -> Document:
    optional = {
        "observed_revision": state.observed_revision,
        "observed_outcome": state.observed_outcome,
        "satisfied_at": _timestamp(state.satisfied_at_ns),
    }
    edge = {"job_id": job_id, "depends_on": state.edge.job_id, "predicate": state.edge.predicate}
    return edge | _without_empty(optional)


def _evaluation(state: ConditionState) -> Document:
    optional = {
        "evaluated_at": _timestamp(state.evaluated_at_ns),
        "satisfied_at": _timestamp(state.satisfied_at_ns),
        "last_diagnostic_code": state.code,
    }
    counted = {"condition_index": state.place, "condition_kind": state.kind, "attempt_count": state.attempts}
    return counted | _without_empty(optional)


def _delivery(delivery: Delivery) -> Document:
    optional = {
        "run_id": delivery.run_id,
        "next_attempt_at": _timestamp(delivery.next_attempt_at_ns),
        "claimed_at": _timestamp(delivery.claimed_at_ns),
        "claim_expires_at": _timestamp(delivery.claim_expires_at_ns),
        "completed_at": _timestamp(delivery.completed_at_ns),
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
        **_without_empty(optional),
    }


def _attempt(attempt: Attempt) -> Document:
    optional = {
        "started_at": _timestamp(attempt.started_at_ns),
        "completed_at": _timestamp(attempt.completed_at_ns),
        "next_attempt_at": _timestamp(attempt.next_attempt_at_ns),
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
        **_without_empty(optional),
    }


def _event_of(one: Delivery | Attempt) -> Document:
    return {
        "job_id": one.job_id,
        "event_id": one.event_id,
        "notifier": one.notifier,
        "event_type": one.event_type,
    }


def _admission(admission: Admission | None) -> Document | None:
    if admission is None:
        return None
    optional = {
        "run_id": admission.run_id,
        "pool": admission.pool,
        "slot_indexes": list(admission.slot_indexes),
        "released_at": _timestamp(admission.released_at_ns),
    }
    return {
        "job_id": admission.job_id,
        "slots": admission.slots,
        "acquired_at": format_timestamp(admission.acquired_at_ns),
        "lease_expires_at": format_timestamp(admission.lease_expires_at_ns),
        **_without_empty(optional),
    }


def _supervisor(supervisor: Supervisor | None, state: Verdict | None) -> Document | None:
    if supervisor is None or state is None:
        return None
    identity = supervisor.identity
    return {
        "pid": identity.pid,
        "creation_id": identity.creation_id,
        "boot_id": identity.boot_id,
        "state": state.value,
    }


def _process(run: Run) -> Document | None:
    if run.identity is None:
        return None
    return {
        "pid": run.identity.pid,
        "platform": "linux",
        "creation_id": run.identity.creation_id,
        "boot_id": run.identity.boot_id,
        "tree_id": str(run.identity.pid),
    }


def _exit(exit_: RunExit | None) -> Document | None:
    if exit_ is None:
        return None
    facts = {"exit_code": exit_.exit_code, "signal": exit_.signal, "platform_reason": exit_.platform_reason}
    known = {name: value for name, value in facts.items() if value is not None}
    return {"observed_at": format_timestamp(exit_.observed_at_ns), **known}


def _usage(usage: RunUsage | None) -> Document | None:
    if usage is None:
        return None
    return {
        "max_rss_bytes": usage.max_rss_bytes,
        "user_cpu": format_duration(usage.user_cpu_ns),
        "system_cpu": format_duration(usage.system_cpu_ns),
    }


def _logs(run: Run, root: str) -> Document:
    directory = run_directory(root, run.job_id, run.number)
    done = run.phase == RunPhase.COMPLETED
    optional = {
        "stdout_size": run.logs.stdout_bytes,
        "stderr_size": run.logs.stderr_bytes,
        "diagnostic_code": run.logs.diagnostic_code,
    }
    if run.pruning is not None:
        return _pruned(run, run.pruning)
    return {
        "available": True,
        "index_version": run.logs.index_version,
        "integrity": (run.logs.integrity if done else LogIntegrity.PENDING).value,
        "recording_health": run.logs.health.value,
        "stdout_path": f"{directory}/stdout.log",
        "stderr_path": f"{directory}/stderr.log",
        "index_path": f"{directory}/chunks.idx",
        **_without_empty(optional),
    }


def _pruned(run: Run, pruning: Pruning) -> Document:
    optional = {
        "pruned_files": pruning.files,
        "pruned_bytes": pruning.bytes,
        "diagnostic_code": run.logs.diagnostic_code,
    }
    return {
        "available": False,
        "index_version": run.logs.index_version,
        "integrity": run.logs.integrity.value,
        "recording_health": run.logs.health.value,
        "pruned_at": format_timestamp(pruning.at_ns),
        **_without_empty(optional),
    }


def _timestamp(time_ns: int | None) -> str | None:
    return None if time_ns is None else format_timestamp(time_ns)


def _without_empty(members: Document) -> Document:
    return {name: value for name, value in members.items() if value not in (None, "", 0, [])}


def _dump(data: object) -> str:
    text = json.dumps(data, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    # A lone surrogate stands for a byte that was not UTF-8; the line separators would end a line in JavaScript.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if not _is_utf8(text) else text
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text) if not text.isascii() else True
