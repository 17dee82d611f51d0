"""Migrations are immutable, and named by what they hold (D.5)."""

from __future__ import annotations

import os
from hashlib import sha256

from jobman.store import migrations
from jobman.store.migrations import MIGRATIONS, SCHEMA_VERSION
from jobman.store.migrations._apply import migration_text


def test_every_migration_has_the_checksum_that_is_expected_of_it() -> None:
    """A released migration never changes: a difference here calls for a new file, not for a new checksum."""
    assert {name: sha256(migration_text(name).encode()).hexdigest() for name, _ in MIGRATIONS} == dict(MIGRATIONS)


def test_migrations_are_numbered_without_gaps_and_none_is_forgotten() -> None:
    names = [name for name, _ in MIGRATIONS]
    assert [int(name[:4]) for name in names] == list(range(1, SCHEMA_VERSION + 1))
    files = sorted(file.removesuffix(".sql") for file in os.listdir(migrations.__path__[0]) if file.endswith(".sql"))
    assert files == names


def test_tables_are_strict_and_times_are_integer_nanoseconds() -> None:
    text = "".join(migration_text(name) for name, _ in MIGRATIONS)
    tables = [part.partition(";")[0] for part in text.split("CREATE TABLE ")[1:]]
    assert tables
    for table in tables:
        assert "STRICT" in table.rpartition(")")[2], table.splitlines()[0]
        for line in table.splitlines():
            words = line.split()
            if len(words) > 1 and words[0].endswith("_ns"):
                assert words[1].startswith("INTEGER"), line
