"""Stores of many jobs, filled by SQL: two hundred thousand submissions would take hours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from bench.bed import Bed

# Every table that describes a job, with its columns that name the job or another row of the copy.
_TABLES = {
    "jobs": ("id", "supervisor_id"),
    "job_specs": ("job_id",),
    "job_labels": ("job_id",),
    "supervisors": ("id", "job_id"),
    "runs": ("id", "job_id"),
    "admissions": ("id", "job_id", "run_id"),
    "state_events": ("id", "entity_id", "job_id"),
}
_NUMBERED = "sequence"  # the table counts its rows itself
_SERIES = "WITH RECURSIVE series (value) AS (SELECT ?1 UNION ALL SELECT value + 1 FROM series WHERE value + 1 < ?2)"


class Filling:
    """A store that holds copies of one completed job, each with its run, its owner, its slots and its history.

    Attributes:
        job_id: the job that is copied.
        jobs: how many there are.
    """

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self.job_id = bed.submit("true", flags=("--name", "nightly", "--group", "bench"))
        self.jobs = 1
        bed.settle()

    def grow(self, wanted: int) -> None:
        """Go on until there are so many jobs."""
        connection = apsw.Connection(f"{self._bed.state}/jobman.db")
        # Written once instead of thrice; nobody else is here, and what a crash leaves is scratch.
        connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000").fetchall()
        with connection:
            for table, keys in _TABLES.items():
                connection.execute(_copy(connection, table, keys), (self.jobs, wanted, self.job_id)).fetchall()
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.close()
        self.jobs = wanted


def _copy(connection: apsw.Connection, table: str, keys: tuple[str, ...]) -> str:
    found = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
    columns = [name for name in found if name != _NUMBERED]
    # substr keeps the time of an ID and replaces its tail: the copies get IDs of their own and stay in order.
    chosen = [f"substr({name}, 1, 28) || printf('%08x', value)" if name in keys else name for name in columns]
    owner = "id" if table == "jobs" else "job_id"
    into = f"INSERT INTO {table} ({', '.join(columns)})"
    return f"{_SERIES} {into} SELECT {', '.join(chosen)} FROM {table}, series WHERE {owner} = ?3"  # noqa: S608  # our own names
