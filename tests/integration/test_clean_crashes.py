"""A cleaning that ends at any of its steps is finished by the next one (J.7; O.23)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.logs import cleanup
from jobman.service import maintain
from jobman.service.maintain import Totals, clean, preview
from jobman.store import pruning
from jobman.store.connection import Store
from jobman.store.jobs import load_runs
from tests.cleaning import BYTES, CLOCK, EVERYTHING, FILES, FIRST, add_job, add_logs, tree
from tests.faults.injection import ALL_POINTS
from tests.stores import fast_store


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


class _CrashError(BaseException):
    """Stands for a SIGKILL: nothing catches it but the test."""


class _Countdown:
    """Lets modules make so many calls of the system, and crashes instead of the next."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*words: Any, **options: Any) -> Any:
            if not self.left:
                raise _CrashError
            self.left -= 1
            return function(*words, **options)

        return counted


class _Os:
    """``os`` as a module sees it whose calls are counted."""

    def __init__(self, countdown: _Countdown) -> None:
        for name in ("rename", "fsync", "write", "unlink", "rmdir"):
            setattr(self, name, countdown.wrap(getattr(os, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


def _crash_after(monkeypatch: pytest.MonkeyPatch, store: Store, calls: int) -> bool:
    """Clean everything and crash after so many calls; say whether it came so far."""
    countdown = _Countdown(calls)
    with monkeypatch.context() as patch:
        for module in (cleanup, maintain):
            patch.setattr(module, "os", _Os(countdown))
        for name in ("record_pruned", "finish_prunings", "remove_jobs"):
            patch.setattr(maintain, name, countdown.wrap(getattr(pruning, name)))
        try:
            clean(store, EVERYTHING, CLOCK)
        except _CrashError:
            return True
    return False


@pytest.mark.parametrize("again", [None, *(range(25) if ALL_POINTS else ())])
def test_a_cleaning_that_crashed_at_any_step_is_finished_by_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch, again: int | None
) -> None:
    """O.23: what was counted is what is recorded, wherever the first one ended; the preview knows what is left.

    With ``again`` the next one crashes too.
    """
    calls = 0
    crashed = True
    while crashed:
        add_job(store, FIRST)
        add_logs(store, FIRST)
        crashed = _crash_after(monkeypatch, store, calls)
        calls += 1
        if again is not None:
            _crash_after(monkeypatch, store, again)
        for (run,) in load_runs(store, [FIRST]).values():
            assert run.pruning is None or run.pruning[1:] == (len(FILES), BYTES), calls

        seen = preview(store, EVERYTHING, CLOCK)
        assert seen == clean(store, EVERYTHING, CLOCK), calls
        assert (seen.files, seen.bytes) == (seen.runs * len(FILES), seen.runs * BYTES), calls
        assert tree(store.root) == {}, calls
        assert store.execute("SELECT count(*) FROM jobs, runs") == [(0,)], calls
    assert calls > 20


@pytest.mark.parametrize("left", [b"", b"JMC\x01" + bytes(10), b"JMC\x01" + bytes(20), bytes(25)])
def test_a_summary_that_is_torn_counts_for_nothing(store: Store, left: bytes) -> None:
    """It is written before the first file goes, so what is there can be counted again."""
    add_job(store, FIRST)
    claimed = add_logs(store, FIRST).rename(Path(store.root, "logs", FIRST, "1.deleting"))
    (claimed / ".cleanup-summary").write_bytes(left)
    (claimed / ".cleanup-summary").chmod(0o600)
    assert preview(store, EVERYTHING, CLOCK) == clean(store, EVERYTHING, CLOCK) == Totals(1, len(FILES), BYTES, 1)


def test_the_summary_is_written_as_the_contract_says(store: Store) -> None:
    """J.7; a cleaning that finds one believes it: the files it counted may be gone already."""
    add_job(store, FIRST)
    path = add_logs(store, FIRST)
    with cleanup.JobLogs(store.root, FIRST) as logs:
        logs.claim(1)
    claimed = path.with_name("1.deleting")
    data = (claimed / ".cleanup-summary").read_bytes()
    assert data[:4] + data[4:12] + data[12:20] == b"JMC\x01" + (4).to_bytes(8, "little") + BYTES.to_bytes(8, "little")
    assert len(data) == 24
    assert (claimed / ".cleanup-summary").stat().st_mode & 0o777 == 0o600
    for name in FILES:
        (claimed / name).unlink()
    assert preview(store, EVERYTHING, CLOCK) == clean(store, EVERYTHING, CLOCK) == Totals(1, len(FILES), BYTES, 1)
