"""What an examination comes to: findings, each with what to do, and the figures behind them."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple, StrEnum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jobman.process import Member
    from jobman.process.session import Limits
    from jobman.store.check import Database

_NAMED = 5


class Level(StrEnum):
    """How much a finding matters; a ``problem`` makes the report unhealthy."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"
    REPAIRED = "repaired"


class Finding(NamedTuple):
    """One line of the report: what about, what is so, and what to do about it (may be empty)."""

    level: Level
    topic: str
    text: str
    advice: str = ""
    job_id: str = ""


class Survivor(NamedTuple):
    """A living process of a job whose supervisor is dead."""

    job_id: str
    member: Member


class Disk(NamedTuple):
    """Bytes in use below the state directory, and bytes that are free on its file system."""

    store: int = 0
    wal: int = 0
    logs: int = 0
    backups: int = 0
    free: int = 0


class Report(NamedTuple):
    """Everything that ``doctor`` found.

    Attributes:
        root: the state directory.
        sqlite_version: of the library in use.
        findings: in the order in which they are printed.
        file_system: its type, "" if it cannot be told.
        database: ``None`` if it was not safe to look at.
        survivors: living processes of lost jobs.
        disk: what is in use.
        limits: those of this process.
        backup_path: the copy that was asked for and made, "" if none.
        migration_backup: the copy that opening made before it upgraded the schema, "" if it did not.
        reconciled: how many jobs without an owner were completed.
        wal_merged: the write-ahead log was merged and emptied.
        notified: somebody sends the notifications that were left.
    """

    root: str
    sqlite_version: str
    findings: tuple[Finding, ...]
    file_system: str = ""
    database: Database | None = None
    survivors: tuple[Survivor, ...] = ()
    disk: Disk = Disk()
    limits: Limits | None = None
    backup_path: str = ""
    migration_backup: str = ""
    reconciled: int = 0
    wal_merged: bool = False
    notified: bool = False

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.level != Level.PROBLEM for finding in self.findings)


def size_in_words(count: int) -> str:
    """Return a number of bytes as people read it."""
    size, units = float(count), ["B", "KiB", "MiB", "GiB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.0f} {units[0]}" if units[0] == "B" else f"{size:.1f} {units[0]}"


def few(items: Sequence[str]) -> str:
    """Return the first of the items, and how many more there are."""
    more = f", and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more
