"""Opening a state directory: what is refused with which words, what is repaired, and how private it is (D.5, M10)."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from jobman.errors import (
    JobmanError,
    StateDirectoryError,
    StoreFailureError,
    StoreFileError,
    StoreForeignError,
    StoreNewerError,
)
from jobman.store import safety
from jobman.store.connection import open_store
from jobman.store.migrations import SCHEMA_VERSION
from tests.moves import EXAMPLE_JOB_ID, walk
from tests.stores import commit_all
from tests.support import Cli


@pytest.fixture
def filled(state: Path) -> Path:
    """A store that holds a job and that nobody has open."""
    store = open_store(str(state))
    commit_all(store, walk("claim", "abort"))
    store.close()
    return state


def _refused(state: Path | str, kind: type[JobmanError], words: str) -> str:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(kind, match=words) as caught:
        open_store(str(state)).close()
    assert os.listdir("/proc/self/fd") == before, "it was left open"
    message = str(caught.value)
    assert caught.value.exit_status == 1
    assert message.startswith(("open job manager: ", "the store cannot be used: "))
    assert "\n" not in message
    return message


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def _tree_modes(state: Path) -> dict[str, int]:
    return {str(path.relative_to(state)): _mode(path) for path in state.rglob("*")} | {".": _mode(state)}


# --- The directory --------------------------------------------------------------------------------------------------


def test_the_directory_is_made_with_its_parents_all_private(tmp_path: Path) -> None:
    state = tmp_path / "a" / "b" / "state"
    open_store(str(state)).close()
    assert [_mode(path) for path in (tmp_path / "a", tmp_path / "a" / "b", state)] == [0o700] * 3


@pytest.mark.parametrize("mode", [0o755, 0o777, 0o500, 0o1770])
def test_an_empty_directory_is_made_private(state: Path, mode: int) -> None:
    """D12."""
    state.mkdir()
    state.chmod(mode)
    open_store(str(state)).close()
    assert _mode(state) == 0o700


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o755, 0o770, 0o777])
def test_a_directory_that_is_open_to_others_is_refused_and_left_as_it_is(filled: Path, mode: int) -> None:
    filled.chmod(mode)
    message = _refused(filled, StateDirectoryError, f"is open to other users \\(mode {mode:04o}\\); chmod 700")
    assert str(filled) in message
    assert "JOBMAN_STATE_DIR or --state-dir" in message
    assert _mode(filled) == mode
    filled.chmod(0o700)


def test_a_directory_of_somebody_else_is_refused(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.geteuid()
    monkeypatch.setattr("jobman.store.safety.os.geteuid", lambda: mine + 1)
    _refused(filled, StateDirectoryError, f"belongs to user {mine}, not to you")


def test_links_in_the_path_are_resolved(state: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(state)
    store = open_store(str(link))
    assert store.root == str(state)
    store.close()
    assert link.is_symlink()


def test_a_relative_path_becomes_a_canonical_one(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(state.parent)
    store = open_store("./state/../state")
    assert store.root == str(state)
    store.close()


def test_a_file_in_the_place_of_the_directory_is_refused(state: Path) -> None:
    state.write_text("precious")
    _refused(state, StateDirectoryError, "is not a directory")
    assert state.read_text() == "precious"


def test_a_file_among_the_parents_is_refused(state: Path) -> None:
    state.write_text("precious")
    _refused(state / "deeper", StateDirectoryError, "not a directory")


def test_a_circle_of_links_is_refused(state: Path) -> None:
    state.symlink_to(state)
    _refused(state, StateDirectoryError, "not a directory|symbolic links")


def test_a_path_that_is_not_utf_8_is_refused_in_one_printable_line(tmp_path: Path) -> None:
    message = _refused(f"{tmp_path}/st\udcffate", StateDirectoryError, "the path is not valid UTF-8")
    assert message.isascii()
    assert list(tmp_path.iterdir()) == []


def test_a_remote_file_system_is_refused(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "file_system_type", lambda _path: "nfs4")
    _refused(state, StateDirectoryError, "is on a nfs4 file system, whose locks cannot be trusted")
    assert not (state / "jobman.db").exists()


def test_a_file_in_the_place_of_the_run_directory_is_refused(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "run").write_text("")
    _refused(state, StoreFileError, "run: is not a directory")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_everything_is_private_whatever_the_umask(state: Path, umask: int) -> None:
    """Field case 29: neither more than the owner, nor less than he needs."""
    before = os.umask(umask)
    try:
        store = open_store(str(state / "inner"))
        commit_all(store, walk("claim"))
        modes = _tree_modes(state)
        store.close()
        open_store(str(state / "inner")).close()
    finally:
        os.umask(before)
    directories = {".": 0o700, "inner": 0o700, "inner/run": 0o700}
    files = ("jobman.db", "jobman.db-wal", "jobman.db-shm", "run/writer.lock")
    assert modes == directories | {f"inner/{name}": 0o600 for name in files}


# --- The database files ---------------------------------------------------------------------------------------------

FILES = pytest.mark.parametrize("name", ["jobman.db", "jobman.db-wal", "jobman.db-shm"])


def _present(filled: Path, name: str) -> Path:
    path = filled / name
    if not path.exists():
        path.touch(mode=0o600)
    return path


@FILES
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o601])
def test_a_database_file_that_is_open_to_others_is_refused(filled: Path, name: str, mode: int) -> None:
    _present(filled, name).chmod(mode)
    message = _refused(filled, StoreFileError, f"is open to other users \\(mode {mode:04o}\\); chmod 600")
    assert str(filled / name) in message


@FILES
def test_a_database_file_that_is_a_link_is_refused(filled: Path, name: str, tmp_path: Path) -> None:
    path = _present(filled, name)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    _refused(filled, StoreFileError, "is not a regular file")


@FILES
def test_a_database_file_that_is_a_dangling_link_is_refused(filled: Path, name: str, tmp_path: Path) -> None:
    (filled / name).unlink(missing_ok=True)
    (filled / name).symlink_to(tmp_path / "victim")
    _refused(filled, StoreFileError, "is not a regular file")
    assert not (tmp_path / "victim").exists()


@FILES
def test_a_database_file_with_two_names_is_refused(filled: Path, name: str, tmp_path: Path) -> None:
    os.link(_present(filled, name), tmp_path / "second")
    _refused(filled, StoreFileError, "has more than one hard link")


@FILES
def test_a_database_file_that_is_something_else_is_refused(filled: Path, name: str) -> None:
    (filled / name).unlink(missing_ok=True)
    os.mkfifo(filled / name, 0o600)
    _refused(filled, StoreFileError, "is not a regular file")


@FILES
def test_a_database_file_of_somebody_else_is_refused(filled: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = _present(filled, name)
    lstat = os.lstat

    def foreign(target: str) -> os.stat_result:
        status = lstat(target)
        if target != str(path):
            return status
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))

    monkeypatch.setattr("jobman.store.safety.os.lstat", foreign)
    _refused(filled, StoreFileError, "belongs to user .*, not to you")


# --- What the database holds ----------------------------------------------------------------------------------------


def _altered(statement: str) -> Callable[[Path], None]:
    def alter(state: Path) -> None:
        connection = apsw.Connection(str(state / "jobman.db"))
        connection.execute(statement).fetchall()
        connection.close()

    return alter


def _truncated(size: int) -> Callable[[Path], None]:
    return lambda state: os.truncate(state / "jobman.db", size)


def _scribbled(offset: int) -> Callable[[Path], None]:
    def scribble(state: Path) -> None:
        with (state / "jobman.db").open("r+b") as file:
            file.seek(offset)
            file.write(b"\xff" * 512)

    return scribble


def _replaced(content: bytes) -> Callable[[Path], None]:
    def replace(state: Path) -> None:
        (state / "jobman.db").write_bytes(content)

    return replace


@pytest.mark.parametrize(
    ("alter", "kind", "words"),
    [
        pytest.param(_altered("PRAGMA application_id=7"), StoreForeignError, "application id 0x7", id="foreign"),
        pytest.param(_altered("PRAGMA application_id=0"), StoreForeignError, "application id 0x0", id="no id"),
        pytest.param(_altered("PRAGMA user_version=99"), StoreNewerError, "schema 99.*upgrade jobman", id="newer"),
        pytest.param(
            _altered("UPDATE schema_migrations SET checksum = 'x'"),
            StoreForeignError,
            "migrations",
            id="other checksum",
        ),
        pytest.param(_altered("DELETE FROM schema_migrations"), StoreForeignError, "migrations", id="no history"),
        pytest.param(
            _altered("INSERT INTO schema_migrations SELECT max(version) + 1, 0, '', '' FROM schema_migrations"),
            StoreForeignError,
            "migrations",
            id="too long",
        ),
        pytest.param(
            _altered("UPDATE schema_migrations SET version = version + 10"), StoreForeignError, "migrations", id="gap"
        ),
        pytest.param(
            _altered("PRAGMA foreign_keys=OFF; DROP TABLE schema_migrations"),
            StoreFailureError,
            "no such table: schema_migrations",
            id="no history table",
        ),
        pytest.param(_truncated(50), StoreFailureError, "not a database|malformed", id="half a header"),
        pytest.param(_truncated(4_096), StoreFailureError, "malformed|not a database", id="one page"),
        pytest.param(_scribbled(0), StoreForeignError, "not a database", id="scribbled header"),
        pytest.param(_scribbled(100), StoreFailureError, "malformed", id="scribbled schema"),
        pytest.param(_replaced(b"precious notes\n" * 100), StoreForeignError, "not a database", id="text"),
    ],
)
def test_a_database_that_is_not_ours_or_damaged_is_refused(
    filled: Path, alter: Callable[[Path], None], kind: type[JobmanError], words: str
) -> None:
    """Each in one line, with exit status 1, and without a change to the file."""
    alter(filled)
    before = (filled / "jobman.db").read_bytes()
    _refused(filled, kind, words)
    assert (filled / "jobman.db").read_bytes() == before


def test_a_database_with_tables_of_another_program_is_refused_and_left_as_it_is(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / "jobman.db").touch(mode=0o600)
    _altered("CREATE TABLE recipes (name TEXT)")(state)
    before = (state / "jobman.db").read_bytes()
    _refused(state, StoreForeignError, "it has tables of another program")
    assert (state / "jobman.db").read_bytes() == before


def test_an_empty_database_file_is_a_new_store(state: Path) -> None:
    """A first command may have been killed after it had made the file."""
    state.mkdir(mode=0o700)
    (state / "jobman.db").touch(mode=0o600)
    open_store(str(state)).close()


@pytest.mark.parametrize("old", [b"submitting", b"completed", b"aborted"])
def test_a_damaged_word_is_one_line_for_the_user(filled: Path, cli: Cli, old: bytes) -> None:
    """Whatever bytes the disk returns, no traceback."""
    database = filled / "jobman.db"
    content = database.read_bytes()
    database.write_bytes(content.replace(old, b"\xfe" + old[1:]))
    for words in (("list",), ("status", EXAMPLE_JOB_ID), ("show", EXAMPLE_JOB_ID)):
        result = cli(*words, status=None)
        assert result.err.count("\n") <= 1, result.err
        assert "Traceback" not in result.err


# --- Read-only ------------------------------------------------------------------------------------------------------


@pytest.fixture
def unwritable(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that cannot be written to; root can write anywhere, so the question is answered for it."""
    filled.chmod(0o500)
    monkeypatch.setattr("jobman.store.connection.os.access", lambda _path, _mode: False)
    yield filled
    filled.chmod(0o700)


def test_a_store_that_cannot_be_written_to_can_be_read(unwritable: Path) -> None:
    before = sorted(unwritable.rglob("*"))
    store = open_store(str(unwritable))
    assert store.execute("SELECT id FROM jobs") == [(EXAMPLE_JOB_ID,)]
    assert store.read_only
    with pytest.raises(StoreFailureError, match="read-only"), store.write():
        pass
    store.close()
    assert sorted(unwritable.rglob("*")) == before


@pytest.mark.parametrize("name", ["st?ate", "st#ate", "st%41ate", "st ate&mode=rwc"])
def test_no_character_of_the_path_is_taken_for_a_part_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = open_store(str(tmp_path / name))
    commit_all(store, walk())
    store.close()
    monkeypatch.setattr("jobman.store.connection.os.access", lambda _path, _mode: False)
    store = open_store(str(tmp_path / name))
    assert store.execute("SELECT id FROM jobs") == [(EXAMPLE_JOB_ID,)]
    store.close()


def test_what_the_last_writer_left_unmerged_cannot_be_read_read_only(unwritable: Path) -> None:
    (unwritable / "jobman.db-wal").touch(mode=0o600)
    _refused(unwritable, StoreFileError, "the directory is read-only and the last writer left a -wal file")


def test_a_directory_without_a_store_that_cannot_be_written_to_is_refused(unwritable: Path) -> None:
    (unwritable / "jobman.db").unlink()
    _refused(unwritable, StateDirectoryError, "holds no store and cannot be written to")


# --- First commands -------------------------------------------------------------------------------------------------


def test_the_connection_is_as_the_contract_says(state: Path) -> None:
    store = open_store(str(state))
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "application_id", "user_version")
    values = [store.execute(f"PRAGMA {name}")[0][0] for name in pragmas]
    assert values == ["wal", 2, 1, 0x4A4F424D, SCHEMA_VERSION]
    store.close()


def test_opening_a_second_time_writes_nothing(filled: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in filled.rglob("*") if path.is_file()}
    open_store(str(filled)).close()
    assert {path: path.stat().st_mtime_ns for path in filled.rglob("*") if path.is_file()} == before
