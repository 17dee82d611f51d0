"""A database that was truncated or written over: every command says so and leaves it alone (issue 5, M20)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.injection import rows
from tests.support import Cli, eventually, processes_of

PAGE = 4096


def truncated(database: Path) -> None:
    os.truncate(database, database.stat().st_size // 2 // PAGE * PAGE)


def without_header(database: Path) -> None:
    _write_over(database, 16, 80)


def scribbled(database: Path) -> None:
    _write_over(database, PAGE, 20 * PAGE)


def _write_over(database: Path, start: int, length: int) -> None:
    with database.open("r+b") as file:
        file.seek(start)
        file.write(bytes(5 + 7 * number % 240 for number in range(length)))


COMMANDS = (
    ("list",),
    ("status", "x"),
    ("show", "x"),
    ("logs", "x"),
    ("wait", "x"),
    ("cancel", "x"),
    ("pause", "x"),
    ("resume", "x"),
    ("input", "--eof", "x"),
    ("run", "--", "true"),
    ("config", "apply"),
)


@pytest.mark.parametrize("damage", [truncated, without_header, scribbled])
def test_every_command_refuses_a_damaged_store_and_leaves_it_as_it_is(cli: Cli, damage: object) -> None:
    """Field case 33, D46: one line and no traceback; ``doctor`` reports, whatever it is asked to do."""
    cli.finish("true")
    eventually(lambda: not processes_of(cli.state))
    database = cli.state / "jobman.db"
    # A client does not close what it has read, so the log may still be there: pages in it would hide the damage.
    rows(cli.state, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert not (cli.state / "jobman.db-wal").exists()
    assert callable(damage)
    damage(database)
    before = database.read_bytes()

    for words in COMMANDS:
        said = cli.refuses(*words, status=1)
        assert "malformed: jobman doctor examines it" in said or "file is not a database" in said
    for number, flags in enumerate(((), ("--repair",), ("--backup", "copy"), ("--repair", "--json"))):
        done = cli("doctor", *flags, status=1)
        assert done.err == ""
        assert number == 3 or done.out.startswith("unhealthy\tschema=")
        assert "jobman.db is damaged" in done.out
    assert database.read_bytes() == before
    eventually(lambda: not processes_of(cli.state))
