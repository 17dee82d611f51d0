"""``jobman doctor``."""

from __future__ import annotations

import os

from jobman.cli.commands._backend import clock
from jobman.cli.output import tell
from jobman.cli.redacting import prepare
from jobman.cli.report import report_view
from jobman.config.paths import state_directory
from jobman.errors import BackupError, UsageError
from jobman.service.doctor import diagnose
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Examine, and print the report whatever it says (D46)."""
    prepare(parsed.value("config"), parsed.value("state-dir"))
    place = state_directory(parsed.value("state-dir"))
    report = diagnose(place, clock(), backup=_backup(parsed), repair=parsed.value("repair"))
    if parsed.value("json"):
        from jobman.documents import doctor, envelope

        tell(envelope(doctor.report(report)))
    else:
        tell(report_view(report))
    return 0 if report.healthy else 1


def _backup(parsed: Parsed) -> str:
    if not parsed.given("backup"):
        return ""
    path: str = parsed.value("backup")
    if not path:
        raise UsageError(detail="doctor --backup needs a path")
    try:
        return os.path.abspath(path)
    except OSError as error:
        detail = "the path is relative and the current directory is gone"
        raise BackupError(path=path, detail=detail) from error
