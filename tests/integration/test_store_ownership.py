"""The same checks with a real other user: root may read and write anything, so only somebody else meets the modes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.store.connection import open_store
from tests.moves import EXAMPLE_JOB_ID, walk
from tests.stores import commit_all
from tests.support import DEADLINE_S, require_tool

NOBODY = 65_534
_PROGRAM = """
import os, sys
os.umask(int(sys.argv[2], 8))
from jobman.errors import JobmanError
from jobman.store.connection import open_store
try:
    store = open_store(sys.argv[1])
    print(len(store.execute("SELECT id FROM jobs")), "jobs")
    with store.write():
        store.execute("DELETE FROM jobs")
    print("written")
    store.close()
except JobmanError as error:
    print(error)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of nobody's that nobody can reach, which `tmp_path` below root's is not."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    directory = Path(tempfile.mkdtemp(prefix="jobman-test-"))
    os.chown(directory, NOBODY, NOBODY)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def filled(place: Path) -> Path:
    """A store of nobody's that holds a job."""
    state = place / "state"
    store = open_store(str(state))
    commit_all(store, walk())
    store.close()
    for path in (state, *state.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return state


def _as_nobody(state: Path, umask: str = "022") -> list[str]:
    setpriv = require_tool("setpriv")
    user = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    words = [setpriv, *user, sys.executable, "-B", "-c", _PROGRAM, str(state), umask]
    done = subprocess.run(words, capture_output=True, check=False, timeout=DEADLINE_S, cwd="/")
    if b"Permission denied" in done.stderr and b"jobman" not in done.stderr:
        pytest.skip("another user cannot read this interpreter")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("umask", ["000", "077", "277", "777"])
def test_a_store_works_whatever_the_umask_takes_from_its_owner(place: Path, umask: str) -> None:
    """Field case 29; the second command finds what the first has left."""
    state = place / "a" / "state"
    assert _as_nobody(state, umask) == ["0 jobs", "written"]
    assert _as_nobody(state, umask) == ["0 jobs", "written"]


def test_a_store_of_somebody_else_is_refused(filled: Path) -> None:
    os.chown(filled, 0, 0)
    (line,) = _as_nobody(filled)
    assert "belongs to user 0, not to you" in line


@pytest.mark.parametrize("name", ["jobman.db", "jobman.db-wal"])
def test_a_database_file_of_somebody_else_is_refused(filled: Path, name: str) -> None:
    (filled / name).touch(mode=0o600)
    os.chown(filled / name, 0, 0)
    (line,) = _as_nobody(filled)
    assert f"{name}: belongs to user 0, not to you" in line


def test_a_directory_that_cannot_be_written_to_can_be_read(filled: Path) -> None:
    filled.chmod(0o500)
    read, refused = _as_nobody(filled)
    assert read == "1 jobs"
    assert "read-only" in refused
    assert sorted(path.name for path in filled.iterdir()) == ["jobman.db", "run"]


def test_what_the_last_writer_left_unmerged_is_named_as_the_reason(filled: Path) -> None:
    (filled / "jobman.db-wal").touch(mode=0o600)
    os.chown(filled / "jobman.db-wal", NOBODY, NOBODY)
    filled.chmod(0o500)
    (line,) = _as_nobody(filled)
    assert "the last writer left a -wal file" in line


def test_a_directory_that_cannot_be_made_is_refused(place: Path) -> None:
    place.chmod(0o500)
    (line,) = _as_nobody(place / "state")
    assert line.startswith("open job manager: state directory ")
    assert "permission denied" in line


def test_a_directory_that_cannot_be_read_is_refused(filled: Path) -> None:
    filled.chmod(0o000)
    (line,) = _as_nobody(filled)
    assert line.startswith("open job manager: ")
    assert EXAMPLE_JOB_ID not in line
