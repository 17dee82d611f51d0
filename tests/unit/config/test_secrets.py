"""Secrets are looked up where the configuration says, or not at all (contract, K.6; D24, O.58)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.config.secrets import MAX_FILE_BYTES, resolve_all
from jobman.errors import SecretUnavailableError
from jobman.model.secrets import SecretVariable


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with a secret that is as it should be."""
    path = tmp_path / "key"
    path.write_bytes(b"hunter2\n\xff")
    path.chmod(0o600)
    return path


def test_a_secret_is_used_as_it_is(file: Path) -> None:
    secrets = (SecretVariable("A", "env", "FROM"), SecretVariable("B", "file", str(file)))

    assert resolve_all(secrets, {b"FROM": b"x\xfe", b"OTHER": b"y"}) == {b"A": b"x\xfe", b"B": b"hunter2\n\xff"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("missing", "cannot be read: no such file or directory"),
        ("link", "is not a regular file"),
        ("fifo", "is not a regular file"),
        ("readable", "may be read by others: chmod 600 it"),
        ("large", "is larger than 65536 bytes"),
        ("nul", "holds a NUL byte, which no variable can"),
    ],
)
def test_a_file_must_be_ours_alone(file: Path, wrong: str, says: str) -> None:
    if wrong in ("missing", "link", "fifo"):
        file.unlink()
    if wrong == "link":
        file.with_name("other").write_bytes(b"hunter2")
        file.symlink_to("other")
    elif wrong == "fifo":
        os.mkfifo(file, 0o600)
    elif wrong == "readable":
        file.chmod(0o640)
    elif wrong in ("large", "nul"):
        file.write_bytes(b"x" * (MAX_FILE_BYTES + 1) if wrong == "large" else b"hunter2\0")

    with pytest.raises(SecretUnavailableError) as caught:
        resolve_all((SecretVariable("B", "file", str(file)),), {})

    assert str(caught.value) == f"secret missing: file {file}, for B, {says}"


def test_the_largest_file_is_read_whole(file: Path) -> None:
    file.write_bytes(b"x" * MAX_FILE_BYTES)

    assert len(resolve_all((SecretVariable("B", "file", str(file)),), {})[b"B"]) == MAX_FILE_BYTES


def test_a_variable_that_is_not_set_is_named() -> None:
    secrets = (SecretVariable("A", "env", "THERE"), SecretVariable("B", "env", "GONE"))

    with pytest.raises(SecretUnavailableError, match="secret missing: variable GONE, for B, is not set") as caught:
        resolve_all(secrets, {b"THERE": b"hunter2"})
    assert "hunter2" not in str(caught.value)
