"""What the tests of the store share: opening it fast, dumping it whole, jobs put into it by real commits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from jobman.model.events import Transition
from jobman.model.ids import RANDOM_BYTES, new_id
from jobman.model.spec import JobSpec
from jobman.store.commit import commit, commit_submission
from jobman.store.connection import Store, open_store
from jobman.store.migrations import MIGRATIONS
from jobman.store.migrations._apply import migration_text
from tests.moves import EPOCH_NS
from tests.support import DEADLINE_S, clean_environment

Dump = dict[str, list[tuple[Any, ...]]]
Statement = tuple[str, tuple[Any, ...]]

# These indexes hold what is active, waited for or held now.
_SCAN = re.compile(
    r"SCAN (\w+)\b(?! USING (?:COVERING )?INDEX (?:jobs_active|one_admission_per_job|admissions_held"
    r"|admission_queue|requests_seen_to_fit|notification_outbox))"
)
_SMALL = {"concurrency_limits", "admission_requests", "request", "schema_migrations", "sqlite_master", "json_each"}
"""Tables that hold what is waiting or declared now, never what has been."""


def fast_store(state: Path) -> Store:
    """Open a store that does not wait for the disk: these tests pull no plug."""
    store = open_store(str(state))
    store.execute("PRAGMA synchronous=OFF")
    return store


def fresh_id(at_ns: int = EPOCH_NS) -> str:
    """Return an ID that no other example has."""
    return new_id(at_ns, os.urandom(RANDOM_BYTES))


def plain_spec(**changes: Any) -> JobSpec:
    """Return the smallest specification, changed."""
    return JobSpec("true", (), "/")._replace(**changes)


def commit_all(store: Store, history: Iterable[Transition], spec: JobSpec | None = None) -> None:
    """Make a history durable, its submission with a specification."""
    first, *others = history
    commit_submission(store, first, spec or plain_spec(name=first.after.job.name))
    for transition in others:
        commit(store, transition)


def downgrade(store: Store, version: int = 1) -> None:
    """Take an open store back to the schema of an earlier version: everything that later migrations added goes."""
    statements = ["PRAGMA foreign_keys=OFF"]
    rows = store.execute("SELECT type, name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type = 'table'")
    statements += [f"DROP {kind} {name}" for kind, name in rows]
    statements += [migration_text(name) for name, _ in MIGRATIONS[:version]]
    statements += [f"PRAGMA user_version={version}", "PRAGMA foreign_keys=ON"]
    store.execute(";".join(statements))
    for number, (_, checksum) in enumerate(MIGRATIONS[:version], 1):
        store.execute("INSERT INTO schema_migrations VALUES (?, 0, '0', ?)", (number, checksum))


def tables(store: Store) -> list[str]:
    """Return the names of all tables."""
    return [row[0] for row in store.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


def dump(store: Store) -> Dump:
    """Return every row of every table."""
    return {table: store.execute(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables(store)}  # noqa: S608


def dump_at(state: Path) -> Dump:
    """Return what a new connection sees."""
    store = open_store(str(state))
    try:
        return dump(store)
    finally:
        store.close()


def start_python(state: Path, code: str, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
    """Start an interpreter that knows the package, in the environment of ``state``, with a pipe at every end."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=clean_environment(state, **environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def await_line(process: subprocess.Popen[bytes], line: bytes = b"ready\n") -> None:
    """Wait until a process has printed ``line``."""
    assert process.stdout is not None
    assert process.stdout.readline() == line, process.communicate()[1].decode()


def tell(process: subprocess.Popen[bytes], line: bytes = b"go\n") -> None:
    """Write a line to a process that waits for one."""
    assert process.stdin is not None
    process.stdin.write(line)
    process.stdin.flush()


def outputs(processes: Sequence[subprocess.Popen[bytes]], within: float = DEADLINE_S) -> list[str]:
    """Wait for processes, ``within`` seconds for each, which must succeed; return what each has printed."""
    printed = []
    try:
        for process in processes:
            out, err = process.communicate(timeout=within)
            assert process.returncode == 0, err.decode()
            printed.append(out.decode())
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return printed


def count_statements(store: Store, doing: Callable[[], object]) -> int:
    """Return how many statements ``doing`` executes."""
    return len(statements_of(store, doing))


def statements_of(store: Store, doing: Callable[[], object]) -> list[str]:
    """Return the statements that ``doing`` executes."""
    seen: list[str] = []

    def trace(_cursor: object, statement: str, _bindings: object) -> bool:
        seen.append(statement)
        return True

    store._connection.exec_trace = trace
    try:
        doing()
    finally:
        store._connection.exec_trace = None
    return seen


@contextmanager
def executed() -> Iterator[list[Statement]]:
    """Collect what is executed meanwhile through whatever stores of this process."""
    seen: list[Statement] = []
    execute = Store.execute

    def remember(self: Store, statement: str, bindings: Sequence[Any] = ()) -> Any:
        seen.append((statement, tuple(bindings)))
        return execute(self, statement, bindings)

    with patch.object(Store, "execute", remember):
        yield seen


def steps(store: Store, statements: Iterable[Statement]) -> list[str]:
    """Return every step by which SQLite would go about the statements, each text once."""
    verbs = ("SELECT", "UPDATE", "DELETE", "INSERT")
    asked = {text: bindings for text, bindings in statements if text.startswith(verbs)}
    assert asked
    return [row[3] for text, bindings in asked.items() for row in store.execute(f"EXPLAIN QUERY PLAN {text}", bindings)]


def full_scans(store: Store, statements: Iterable[Statement]) -> set[str]:
    """Return the steps that look at every row of a table that grows for ever."""
    return {step for step in steps(store, statements) if (found := _SCAN.match(step)) and found[1] not in _SMALL}


def multiply(store: Store, count: int) -> None:
    """Copy the one job of a store, with all that belongs to it, so many times."""
    series = "WITH RECURSIVE series (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM series WHERE value < ?)"
    ids = {"id", "job_id", "supervisor_id", "run_id", "entity_id"}
    for table in ("jobs", "job_specs", "job_labels", "supervisors", "runs", "admissions", "state_events"):
        names = [row[1] for row in store.execute(f"PRAGMA table_info({table})") if row[1] != "sequence"]
        values = [f"substr({name}, 1, 28) || printf('%08x', value)" if name in ids else name for name in names]
        into = f"INSERT INTO {table} ({', '.join(names)})"
        store.execute(f"{series} {into} SELECT {', '.join(values)} FROM {table}, series", (count,))  # noqa: S608  # our own


SCHEMA_NAMES = tuple(name for name, _ in MIGRATIONS)
