"""The file of a project, which counts only below a root that the user trusts (contract, K.2)."""

from __future__ import annotations

import os
import stat

from jobman.config.load import PROJECT_FILE, file_at
from jobman.errors import ConfigFileError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jobman.config.load import File


def with_project(files: tuple[File, ...], roots: Sequence[str]) -> tuple[File, ...]:
    """Return ``files`` with the file of the project we are in, if it is trusted, in its place.

    Raises:
        ConfigFileError: a root does not exist, or what is called like a project's file is no regular file.
    """
    project = _project_file(roots) if roots else None
    if project is None or any(file.kind == "explicit" and _is_same(file, project) for file in files):
        return files
    explicit = tuple(file for file in files if file.kind == "explicit")
    return (*(file for file in files if file.kind != "explicit"), project, *explicit)


def _project_file(roots: Sequence[str]) -> File | None:
    trusted = {_canonical(root) for root in roots}
    for directory in _upwards():
        path = os.path.join(directory, PROJECT_FILE)
        if not os.path.lexists(path):
            continue
        file = file_at("project", path, required=True)
        if file is None or not _is_regular(path):
            raise ConfigFileError(path=path, detail="is not a regular file")
        if directory in trusted:
            return file
    return None


def _canonical(root: str) -> str:
    try:
        return os.path.realpath(root, strict=True)
    except OSError as error:
        detail = f"trusted project root: {(error.strerror or str(error)).lower()}"
        raise ConfigFileError(path=root, detail=detail) from error


def _upwards() -> Iterator[str]:
    try:
        directory = os.path.realpath(os.getcwd())
    except OSError:
        return  # the directory is gone, and with it the project
    while True:
        yield directory
        if directory == "/":
            return
        directory = os.path.dirname(directory)


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _is_same(file: File, other: File) -> bool:
    return file.signature[:2] == other.signature[:2]
