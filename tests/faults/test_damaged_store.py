"""A database, or a file beside it, that was truncated or written over: every command says so (issue 5, M20)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cleaning import add_job
from tests.faults.injection import assert_sound, rows
from tests.in_process import InProcess
from tests.moves import derived_id
from tests.stores import fast_store
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
    ("run", "--after-success", "x", "--", "true"),
    ("rerun", "x"),
    ("clean", "--all"),
    ("clean", "x"),
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


GARBAGE = bytes(1 + 7 * number % 251 for number in range(40_000))
SIDECARS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut log": ("jobman.db-wal", lambda content: content[: len(content) // 2]),
    "log without header": ("jobman.db-wal", lambda content: GARBAGE[:32] + content[32:]),
    "scribbled log": ("jobman.db-wal", lambda content: content[:9_000] + GARBAGE + content[9_000 + len(GARBAGE) :]),
    "log of one byte": ("jobman.db-wal", lambda _: b"x"),
    "scribbled index": ("jobman.db-shm", lambda _: GARBAGE[:32_768]),
    "cut index": ("jobman.db-shm", lambda _: GARBAGE[:100]),
}


@pytest.mark.parametrize("damage", SIDECARS)
def test_what_a_crash_left_beside_the_database_costs_no_more_than_itself(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """Frames that are damaged were never committed; every command works on what is left, and the database is sound."""
    name, change = SIDECARS[damage]
    crashed = _crashed(cli)
    file = crashed / name
    file.write_bytes(change(file.read_bytes()))
    jobman = InProcess(cli, monkeypatch, {})

    for words in (("doctor",), *COMMANDS, ("doctor", "--repair")):
        done = jobman("--state-dir", str(crashed), *words)
        assert done.err.count("\n") <= 1, (words, done)
        assert words[0] != "doctor" or "ok        database: sound" in done.out, done
    assert jobman("--state-dir", str(crashed), "doctor").out.startswith("healthy\t")
    assert_sound(crashed)
    merged = {(derived_id("crash", "job", number), "success") for number in range(2)}
    assert merged <= set(rows(crashed, "SELECT id, outcome FROM jobs"))


def _crashed(cli: Cli) -> Path:
    """A store as a machine that lost its power leaves it: jobs in the database, and later ones only in its log."""
    store = fast_store(cli.state)
    for number in range(6):
        if number == 2:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        add_job(store, derived_id("crash", "job", number))
    crashed = cli.state.with_name("crashed")
    shutil.copytree(cli.state, crashed)
    store.close()
    return crashed
