"""The command line inside the process of the tests, for tables too long to start an interpreter for each row."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from jobman import handshake
from jobman.cli.app import run
from jobman.cli.commands import _backend
from jobman.clock import SystemClock
from jobman.config import redaction
from jobman.model.transitions._change import Now
from jobman.process.spawn import Detached, pipe_above_standard
from jobman.service import doctor, launch
from jobman.store import connection
from jobman.store.commit import commit
from jobman.store.jobs import load_snapshot
from tests.moves import MOVES, PLAIN, derived_id, reload
from tests.stores import fast_store
from tests.support import SUCCEED, Cli, Result, check_if_document

FAILURES = ("internal error", "Traceback", "out of memory")


class InProcess:
    """Runs command lines in a state directory as `Cli` does, through real descriptors but without an interpreter each.

    Nor is there one for the supervisors: the job that is handed to one has succeeded at once, and has no logs.

    Attributes:
        cli: The same state directory for the installed command.

    Args:
        standing: Words that stand for others, such as the ID of a job, wherever they occur.
    """

    def __init__(self, cli: Cli, monkeypatch: pytest.MonkeyPatch, standing: Mapping[str, str]) -> None:
        self.cli = cli
        self._standing = standing
        self._opened: list[connection.Store] = []
        for name in [name for name in os.environ if name.startswith(("JOBMAN_", "XDG_"))]:
            monkeypatch.delenv(name)
        for name in ("JOBMAN_STATE_DIR", "HOME"):
            monkeypatch.setenv(name, cli.environment[name])
        monkeypatch.chdir(cli.cwd)
        for module in (connection, _backend, doctor):
            monkeypatch.setattr(module, "open_store", self._open_fast)
        monkeypatch.setattr(launch, "spawn_detached", _nobody)
        monkeypatch.setattr(launch.Candidate, "hand_over", _succeed)

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.cli.state

    def __call__(self, *words: str, stdin: bytes = b"") -> Result:
        """Run ``jobman WORDS``; whatever they are, stderr names no defect, and a document keeps its schema."""
        redaction.configure(dict)
        with _file(stdin) as given, _file() as out, _file() as err:
            with _standing_for((given, out, err)), _closed_at_the_end(self._opened):
                status = run([self._meant(word) for word in words])
            printed, said = _content(out), _content(err).decode()
        result = Result(status, printed.decode("utf-8", "replace"), said, printed)
        assert not any(failure in said for failure in FAILURES), (words, result)
        check_if_document(words, result.out)
        return result

    def _open_fast(self, root: str) -> connection.Store:
        self._opened.append(fast_store(Path(root)))
        return self._opened[-1]

    def _meant(self, word: str) -> str:
        for name, other in self._standing.items():
            word = word.replace(name, other)
        return word

    def complaints(self, *words: str, status: int, says: str = "") -> list[str]:
        """Run a command that must fail: nothing on stdout, one line on stderr with ``says`` in it; tell if not so."""
        done = self(*words)
        kept = (done.status, done.out, done.err.count("\n"), done.err[-1:]) == (status, "", 1, "\n")
        return [] if kept and says in done.err else [f"{words} is not refused with {status} and {says!r}: {done}"]


def _nobody(_argv: tuple[str, ...], _environment: dict[bytes, bytes]) -> Detached:
    ends = (*pipe_above_standard(), *pipe_above_standard())
    for unused in (ends[0], ends[3]):
        os.close(unused)
    # No PID is as large, so that nothing is hit when it is given up.
    return Detached(1 << 30, ends[1], ends[2])


def _succeed(candidate: launch.Candidate, root: str, credential: bytes) -> str:
    clock, choice = SystemClock(), PLAIN._replace(credential_hash=handshake.digest(credential))
    store = fast_store(Path(root))
    try:
        for move in SUCCEED:
            snapshot = load_snapshot(store, candidate.job_id)
            change = MOVES[move].apply(reload(snapshot), choice, Now(clock.wall_ns(), clock.monotonic_ns()))
            assert change is not None
            commit(store, change)
    finally:
        store.close()
    return derived_id(candidate.job_id, "supervisor", 1)


@contextmanager
def _closed_at_the_end(stores: list[connection.Store]) -> Iterator[None]:
    """Close what a command leaves open, since its process ends with it."""
    try:
        yield
    finally:
        while stores:
            stores.pop().close()


@contextmanager
def _file(content: bytes = b"") -> Iterator[int]:
    descriptor = os.memfd_create("standard")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


@contextmanager
def _standing_for(standard: tuple[int, int, int]) -> Iterator[None]:
    saved = [os.dup(number) for number in range(3)]
    try:
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
        yield
    finally:
        for number, descriptor in enumerate(saved):
            os.dup2(descriptor, number)
            os.close(descriptor)
