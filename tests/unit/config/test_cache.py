"""What is remembered of a configuration is what would be read, or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from jobman.config import cache, read, strict_yaml
from jobman.config.load import ENVIRONMENT, Configured, load
from jobman.errors import InvalidConfigError
from jobman.testing import FakeClock

SECOND = 10**9


class Place:
    """A configuration file and a state directory; counts how often a file is read."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = root / "jobman.yml"
        self.state = root / "state"
        self.state.mkdir(mode=0o700)
        self.reads = 0
        self.clock = FakeClock()
        really_read = strict_yaml.read

        def counted(path: str) -> strict_yaml.Value:
            self.reads += 1
            return really_read(path)

        monkeypatch.setattr(read, "read", counted)
        self.file.write_text("concurrency: {max_active_slots: 3}\n")

    def load(self, file: Path | None = None) -> Configured:
        """Load long after everything was written."""
        return load(str(file or self.file), str(self.state), self.clock)

    def reads_again(self) -> bool:
        """Say whether the next load reads the file."""
        before = self.reads
        self.load()
        return self.reads > before

    def remembered(self) -> list[Path]:
        """Return the files of the cache."""
        return sorted((self.state / "cache").glob("*"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_source: Path) -> Place:
    """A file that has been read and found right."""
    assert not no_source.exists()
    made = Place(tmp_path, monkeypatch)
    made.load()
    assert made.reads == 1
    return made


def test_a_file_that_has_not_changed_is_not_read_again(place: Place) -> None:
    assert place.load() == load(str(place.file))
    assert place.reads == 2, "load without a state directory reads"

    (entry,) = place.remembered()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("change", ["content", "times", "replaced", "variable", "version"])
def test_whatever_the_result_depends_on_makes_it_be_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    if change == "content":
        place.file.write_text("concurrency: {max_active_slots: 4}\n")
    elif change == "times":
        os.utime(place.file, ns=(1, 1))
    elif change == "replaced":
        other = place.file.with_name("other.yml")
        other.write_bytes(place.file.read_bytes())
        facts = place.file.stat()
        os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        other.replace(place.file)
    elif change == "variable":
        monkeypatch.setenv(ENVIRONMENT, "9")
    else:
        monkeypatch.setattr(cache, "__version__", "9.9.9")

    assert place.reads_again()
    assert not place.reads_again()


@pytest.mark.parametrize(
    "damage", ["empty", "cut", "other", "changed", "deep", "readable", "link", "twice", "directory"]
)
def test_what_is_damaged_or_not_ours_is_as_good_as_none(place: Place, tmp_path: Path, damage: str) -> None:
    (entry,) = place.remembered()
    data = entry.read_bytes()
    damaged = {"empty": b"", "cut": data[:-2], "other": b"1\n[1]", "deep": b"1\n" + b"[" * 200_000}
    damaged["changed"] = data.replace(b'"max_active_slots":3', b'"max_active_slots":7')
    if damage in damaged:
        entry.write_bytes(damaged[damage])
    elif damage == "readable":
        entry.chmod(0o644)
    elif damage == "link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    elif damage == "twice":
        os.link(entry, tmp_path / "elsewhere")
    else:
        entry.unlink()
        entry.mkdir()

    assert place.reads_again()
    assert place.load().stated == {"concurrency": {"max_active_slots": 3}}
    if damage != "directory":
        assert not place.reads_again()
        assert not place.remembered()[0].is_symlink()


def test_a_young_file_is_not_remembered(place: Place) -> None:
    """It may be written again within the resolution of its times."""
    place.file.write_text("concurrency: {max_active_slots: 5}\n")
    place.clock.set_wall(place.file.stat().st_ctime_ns + SECOND)

    assert place.reads_again()
    assert place.reads_again()


def test_a_mistake_is_not_remembered(place: Place) -> None:
    place.file.write_text("concurrency: {max_active_slots: none}\n")

    for _ in range(2):
        with pytest.raises(InvalidConfigError):
            place.load()


def test_variables_alone_are_remembered_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "9")
    load("", str(place.state), place.clock)
    monkeypatch.setattr(read.Reader, "stated", None)

    assert load("", str(place.state), place.clock).stated == {"concurrency": {"max_active_slots": 9}}


def test_a_state_directory_that_cannot_be_written_to_changes_nothing(place: Place) -> None:
    place.state.joinpath("cache").rename(place.state / "away")
    (place.state / "cache").write_text("")

    assert place.reads_again()


def test_the_number_of_entries_is_bounded(place: Place, tmp_path: Path) -> None:
    for number in range(40):
        file = tmp_path / f"{number}.yml"
        file.write_text("")
        place.load(file)

    assert 1 <= len(place.remembered()) <= 32
