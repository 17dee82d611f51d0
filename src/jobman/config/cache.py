"""The checked result of configuration files, kept beside the store: reading and checking them costs 100 ms, this 1 ms.

One small JSON file per set of sources in ``cache/`` of the state directory, after a line with its checksum. It names
everything that the result depends on: version, path, device, inode, size and times of every file, and the variables.
Whatever does not match, is damaged or is not ours is as good as none. Nothing is kept of a file younger than 2 s: it
may change again without its times telling (they have the resolution of the kernel's clock).
"""

from __future__ import annotations

import os
import stat

from jobman import __version__
from jobman.model.canonical import dump, load
from jobman.private import make_directory
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from jobman.clock import Clock
    from jobman.config.load import File

    Variables = Sequence[tuple[str, str]]

_FORMAT = 1
_DIRECTORY = "cache"
_PREFIX = "config-"
_MOST_FILES = 32
_MOST_BYTES = 8 << 20
_YOUNG_NS = 2_000_000_000
_PRIME = (1 << 61) - 1


class Found(NamedTuple):
    """What is remembered of a set of files: the roots of trusted projects, and what is stated, None if not known."""

    roots: list[str]
    stated: Mapping[str, Any] | None


class Cache:
    """Remembers results below a state directory; every failure of it only costs time."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._directory = f"{root}/{_DIRECTORY}"
        self._clock = clock

    def recall(self, files: Sequence[File], variables: Variables) -> Found | None:
        """Return what is remembered of exactly these sources."""
        key = _key(files, variables)
        try:
            checksum, text = self._read(self._path(files)).split("\n", 1)
            document = load(text)
            if document["key"] != key or int(checksum, 16) != _number(text.encode("ascii")):
                return None
            return Found(document["roots"], document["stated"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def remember(
        self, files: Sequence[File], variables: Variables, roots: list[str], stated: Mapping[str, Any] | None
    ) -> None:
        """Keep a result, unless a file is so young that it may change unnoticed."""
        oldest_ns = self._clock.wall_ns() - _YOUNG_NS
        if not all(file.signature and max(file.signature[3:]) < oldest_ns for file in files):
            return
        data = dump({"key": _key(files, variables), "roots": roots, "stated": stated}).encode("ascii")
        try:
            self._write(self._path(files), b"%x\n%b" % (_number(data), data))
        except OSError:
            pass  # a full or read-only disk: the next one reads again

    def _path(self, files: Sequence[File]) -> str:
        named = "\0".join(f"{file.kind}:{file.path}" for file in files)
        return f"{self._directory}/{_PREFIX}{_number(os.fsencode(named)):016x}.json"

    def _read(self, path: str) -> str:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            facts = os.fstat(descriptor)
            private = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_mode & 0o077 == 0
            if not private or facts.st_nlink != 1 or facts.st_size > _MOST_BYTES:
                raise ValueError(path)
            return os.read(descriptor, facts.st_size).decode("ascii")
        finally:
            os.close(descriptor)

    def _write(self, path: str, data: bytes) -> None:
        self._make_room()
        temporary = f"{path}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                if os.write(descriptor, data) != len(data):
                    raise OSError(path)
            finally:
                os.close(descriptor)
            os.rename(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise

    def _make_room(self) -> None:
        """Make the directory, and empty it of our files when there are too many: each run may name another file."""
        try:
            make_directory(self._directory)
        except FileExistsError:
            pass
        kept = [name for name in os.listdir(self._directory) if name.startswith(_PREFIX)]
        if len(kept) < _MOST_FILES:
            return
        for name in kept:
            try:
                os.unlink(f"{self._directory}/{name}")
            except FileNotFoundError:
                pass  # somebody else has had the same thought


def _number(data: bytes) -> int:
    """Return a number that tells other data apart; nobody is to be kept out by it, and hashing costs an import."""
    return int.from_bytes(data, "big") % _PRIME


def _key(files: Sequence[File], variables: Variables) -> list[Any]:
    listed = [[file.kind, file.path, *file.signature] for file in files]
    return [_FORMAT, __version__, listed, [list(pair) for pair in variables]]
