"""The document of ``doctor --json`` (contract, section M; D46)."""

from __future__ import annotations

from jobman.documents.members import survivor, without_empty
from jobman.store.migrations import SCHEMA_VERSION as STORE_VERSION
from jobman.store.safety import DATABASE
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.documents.members import Document
    from jobman.service.doctor.findings import Finding, Report


def report(examined: Report) -> Document:
    """Return the document."""
    optional = {
        "backup_path": examined.backup_path,
        "file_system": examined.file_system,
        "limits": None if examined.limits is None else without_empty(examined.limits._asdict()),
    }
    return {
        "healthy": examined.healthy,
        "store": _examined_store(examined),
        "findings": [_finding(finding) for finding in examined.findings],
        "survivors": [{"job_id": found.job_id, **survivor(found.member)} for found in examined.survivors],
        "disk": {f"{name}_bytes": size for name, size in examined.disk._asdict().items()},
        "stale_ownership_reconciled": examined.reconciled,
        "notifications_recovered": examined.notified,
        **without_empty(optional),
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
    optional = without_empty({"advice": finding.advice, "job_id": finding.job_id})
    return {"level": finding.level.value, "topic": finding.topic, "text": finding.text, **optional}
