"""Examining a state directory: is it sound, is anything abandoned, will jobs live (contract, section M; D46).

Whatever is found is part of a report, never an exception: a report must come out of a store that nothing else can be
done with. The order is that of trust: the directory, the database through a connection that cannot write, and only
then the store itself, which other commands would open and upgrade.
"""

from __future__ import annotations

import os

from jobman.errors import (
    BackupError,
    JobmanError,
    StateDirectoryError,
    StoreBusyError,
    StoreFailureError,
    StoreFileError,
    StoreForeignError,
)
from jobman.process.session import resource_limits
from jobman.recovery.leftovers import names_in
from jobman.service.doctor.files import judge_disk, judge_files, judge_place, take_stock
from jobman.service.doctor.findings import Finding, Level, Report
from jobman.service.doctor.machine import judge_library, judge_machine
from jobman.service.doctor.owners import judge_leftovers, judge_owners, list_diagnostics, list_survivors
from jobman.service.doctor.repair import repair as repair_all
from jobman.store.check import SOUND, back_up, examine, sqlite_version
from jobman.store.connection import open_store
from jobman.store.safety import DATABASE, check_database_files, file_system_type, prepare_state_directory
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.store.check import Database
    from jobman.store.connection import Store

_READ = "see that you may read and write it and its directory, and whether other files on that disk can be read"
_OWN = "only regular files of yours with mode 0600 and a single name are opened"
_ROOM = "look again when there is room on its disk and nobody else is writing for long"
_RESTORE = "put a copy in its place: jobman doctor --backup made one, or see backups/"


def diagnose(path: str, clock: Clock, *, backup: str = "", repair: bool = False) -> Report:
    """Examine the state directory ``path``, which is created if it is missing, as by every command.

    Args:
        path: the state directory.
        clock: judges deadlines.
        backup: where to put a copy of the database first, "" for none.
        repair: mend what can be mended safely; the report is of what is left.

    Raises:
        BackupError: something lies where the copy should; nothing was looked at.
    """
    if backup and os.path.lexists(backup):
        raise BackupError(path=backup, detail="exists already: choose another name")
    limits = resource_limits()
    machine = (*judge_library(sqlite_version()), *judge_machine(limits))
    try:
        root = prepare_state_directory(path)
        check_database_files(root)
    except (StateDirectoryError, StoreFileError) as error:
        return Report(path, sqlite_version(), (_unsafe(error), *_not_copied(backup), *machine), limits=limits)
    report = Report(root, sqlite_version(), (), file_system_type(root), limits=limits)
    report = _look_at_store(report, clock, backup=backup, repair=repair)
    return report._replace(findings=(*judge_place(root, report.file_system), *report.findings, *machine))


def _look_at_store(report: Report, clock: Clock, *, backup: str, repair: bool) -> Report:
    root, database = report.root, f"{report.root}/{DATABASE}"
    # Copied before it is opened: that may upgrade it, and a damaged file is worth a copy too.
    if os.path.lexists(database):
        report = _copied(report._replace(database=examine(root)), backup)
    if report.database is not None and report.database.integrity != SOUND:
        return _with_files(_add(report, _damaged(report.database)))
    before = _copies(root)
    try:
        store = open_store(root)
    except JobmanError as error:
        return _with_files(_add(report, _unsafe(error)))
    try:
        if report.database is None:
            report = _copied(report, backup)
        made = sorted(_copies(root) - before)
        copy = f"{root}/backups/{made[-1]}" if made else ""
        return _judge_contents(
            report._replace(database=examine(root), migration_backup=copy), store, clock, repair=repair
        )
    finally:
        store.close()


def _judge_contents(report: Report, store: Store, clock: Clock, *, repair: bool) -> Report:
    try:
        if repair:
            mended = repair_all(store, take_stock(report.root), clock)
            report = _add(report, *mended.findings)
            report = report._replace(
                reconciled=mended.reconciled, wal_merged=mended.wal_merged, notified=mended.notified
            )
        holdings = take_stock(report.root)
        if store.read_only:
            text = f"it {store.obstacle}: jobs can be looked at, and none can be run"
            advice = "make it possible to write to it, or choose another with JOBMAN_STATE_DIR"
            report = _add(report, Finding(Level.NOTE, "state directory", text, advice))
        alive, survivors = list_survivors(store)
        report = _add(
            report,
            _sound(report.database),
            *judge_owners(store, clock),
            *alive,
            *judge_leftovers(store, holdings),
            *list_diagnostics(store, names_in(f"{report.root}/run")),
        )
        return _with_files(report._replace(survivors=tuple(survivors)))
    except JobmanError as error:
        # What SQLite calls sound can still hold rows that contradict each other.
        advice = _ROOM if isinstance(error, (StoreFailureError, StoreBusyError)) else _RESTORE
        found = Finding(Level.PROBLEM, "database", str(error), advice)
    except OSError as error:
        text = f"{error.filename or 'the system'}: {error.strerror}"
        found = Finding(Level.PROBLEM, "supervisors", text, "look again when the system has more room")
    return _with_files(_add(report, found))


def _with_files(report: Report) -> Report:
    holdings = take_stock(report.root)
    return _add(report, *judge_files(holdings), *judge_disk(holdings.disk))._replace(disk=holdings.disk)


def _copied(report: Report, backup: str) -> Report:
    if not backup:
        return report
    try:
        back_up(report.root, backup)
    except BackupError as error:
        text = f"{backup} was not made: {error.fields['detail']}"
        return _add(report, Finding(Level.PROBLEM, "backup", text, "choose another place for it"))
    damaged = report.database is not None and not report.database.is_sound()
    found = Finding(Level.OK, "backup", f"{backup} holds a copy")
    if damaged:
        text = f"{backup} holds a copy as it is, damage included"
        found = Finding(Level.NOTE, "backup", text, "sqlite3 with .recover reads what can be read of it")
    return _add(report, found)._replace(backup_path=backup)


def _not_copied(backup: str) -> tuple[Finding, ...]:
    advice = "there was nothing that was safe to copy"
    return (Finding(Level.PROBLEM, "backup", f"{backup} was not made", advice),) if backup else ()


def _sound(database: Database | None) -> Finding:
    if database is None or database.integrity != SOUND:
        return _damaged(database)
    if database.foreign_keys:
        text = f"{counted(database.foreign_keys, 'row')} referring to something that is not there"
        return Finding(Level.PROBLEM, "database", text, _RESTORE)
    return Finding(Level.OK, "database", f"sound, schema {database.schema_version}")


def _damaged(database: Database | None) -> Finding:
    if database is None or database.unreadable:
        reason = "" if database is None else f": {database.unreadable}"
        return Finding(Level.PROBLEM, "database", f"{DATABASE} cannot be read{reason}", _READ)
    complaints = "; ".join(database.integrity)
    return Finding(Level.PROBLEM, "database", f"{DATABASE} is damaged: {complaints}", _RESTORE)


def _unsafe(error: JobmanError) -> Finding:
    topic = "state directory" if isinstance(error, StateDirectoryError) else "database"
    # The other messages say what to do themselves.
    advice = {StoreFileError: _OWN, StoreForeignError: _RESTORE}.get(type(error), "")
    return Finding(Level.PROBLEM, topic, str(error).removeprefix("open job manager: "), advice)


def _add(report: Report, *findings: Finding) -> Report:
    return report._replace(findings=(*report.findings, *findings))


def _copies(root: str) -> set[str]:
    return set(names_in(f"{root}/backups"))
