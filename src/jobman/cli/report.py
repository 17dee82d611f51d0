"""What ``doctor`` prints for people; apart from the other views, which every command loads."""

from __future__ import annotations

from jobman.cli.output import printable
from jobman.config.redaction import redact_text
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.service.doctor.findings import Report


def report_view(report: Report) -> str:
    """Return a line on the whole, whose form programs may rely on (D46), then one line for each finding."""
    database = report.database
    version = _known(None if database is None else database.schema_version)
    violations = _known(None if database is None else database.foreign_keys)
    word = "healthy" if report.healthy else "unhealthy"
    lines = [f"{word}\tschema={version}\tsqlite={report.sqlite_version}\tforeign_keys={violations}"]
    for finding in report.findings:
        advice = f"; {finding.advice}" if finding.advice else ""
        lines.append(f"{finding.level:<8}  {finding.topic}: {printable(redact_text(finding.text + advice))}")
    return "".join(f"{line}\n" for line in lines)


def _known(number: int | None) -> str:
    return "unknown" if number is None else str(number)
