"""What a supervisor notes of its own troubles: dated, bounded, and nothing of anybody's values (D24)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.supervisor.notes import LIMIT_BYTES, Notes, last_words
from jobman.testing import FakeClock


class Log:
    """Notes that are written to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.notes = Notes(FakeClock(), self.descriptor)

    def texts(self) -> list[str]:
        """The lines without their dates."""
        return [line.split(" ", 1)[1] for line in self.path.read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "log")
    yield made
    os.close(made.descriptor)


def test_a_note_is_one_dated_line_whatever_it_says(log: Log) -> None:
    log.notes.note("a\nb\x1b]0;é\udcff")
    (line,) = log.path.read_text().splitlines()
    date, text = line.split(" ", 1)
    assert date.endswith("Z")
    assert text == "a\\nb\\x1b]0;\\xe9\\udcff"


def test_what_goes_on_failing_is_noted_once_and_counted(log: Log) -> None:
    for _ in range(3):
        log.notes.trouble("store", "full")
    log.notes.trouble("store", "gone")
    log.notes.over("store")
    log.notes.over("store")
    assert log.texts() == ["store: full", "store: gone", "store: works again, after 4 failures, the last: gone"]


def test_notes_are_bounded(log: Log) -> None:
    for number in range(3 * LIMIT_BYTES // 100):
        log.notes.note(f"{number} " + "x" * 100)
    assert log.path.stat().st_size <= LIMIT_BYTES
    assert log.path.read_text().endswith("\nfurther notes are left out\n")


def test_notes_that_cannot_be_written_are_no_trouble() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    Notes(FakeClock(), full).note("text")
    os.close(full)
    Notes(FakeClock(), full).note("text")


def _fail(secret: str) -> None:
    raise KeyError(secret)


def test_an_unexpected_end_names_kind_and_places_and_no_value() -> None:
    with pytest.raises(KeyError) as caught:
        _fail("hunter2")
    text = last_words(caught.value)
    assert text.startswith("ended by KeyError at test_notes.py:")
    assert " < test_notes.py:" in text
    assert "hunter2" not in text
