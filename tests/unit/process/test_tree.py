"""The forced pass, and what an initial environment gives away."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from jobman.model.identity import ProcessIdentity
from jobman.process import Member, kill_all, tree

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = "the-run"


def member(pid: int) -> Member:
    return Member(ProcessIdentity(pid, "1", "boot", "1"), "sh", "S", pid)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """PID and number of every signal sent."""
    sent: list[tuple[int, int]] = []

    def record(identity: ProcessIdentity, signo: int) -> bool:
        sent.append((identity.pid, signo))
        return True

    monkeypatch.setattr(tree, "signal_process", record)
    return sent


def test_everything_is_stopped_before_anything_is_killed(sent: list[tuple[int, int]]) -> None:
    lists = [(1, 2), (1, 2, 3), (2, 3), (4,)]
    assert kill_all(lambda: [member(pid) for pid in lists.pop(0)]) == 3
    assert sent == [(pid, signal.SIGSTOP) for pid in (1, 2, 3)] + [(pid, signal.SIGKILL) for pid in (1, 2, 3)]
    assert lists == [(4,)]


def growing() -> Callable[[], list[Member]]:
    pids: list[int] = []

    def grow() -> list[Member]:
        pids.append(len(pids) + 2)
        return [member(pid) for pid in pids]

    return grow


def test_a_pass_over_a_tree_that_never_stops_growing_ends(sent: list[tuple[int, int]]) -> None:
    killed = kill_all(growing())
    assert 0 < killed < 1000
    assert len(sent) == 2 * killed


def test_nobody_is_killed_where_nobody_is(sent: list[tuple[int, int]]) -> None:
    assert kill_all(list) == 0
    assert sent == []


@pytest.mark.parametrize(
    ("environment", "foreign"),
    [
        (b"", False),
        (b"JOBMAN_RUN_ID=the-run\0", False),
        (b"JOBMAN_RUN_ID=the-run-2\0", True),
        (b"A=1\0JOBMAN_RUN_ID=\0", True),
        (b"JOBMAN_SUPERVISOR=x\0JOBMAN_RUN_ID=the-run\0", True),
        (b"A=1\0JOBMAN_EVENT_ID=\0", True),
        (b"JOBMAN_EVENT_ID=x\0JOBMAN_RUN_ID=the-run\0", False),
        (b"JOBMAN_EVENT_ID=x\0JOBMAN_RUN_ID=the-run-2\0", True),
        (b"NOT_JOBMAN_SUPERVISOR=x\0A=JOBMAN_EVENT_ID=1\0", False),
        (b"JOBMAN_SUPERVISOR_NOT=x\0", False),
    ],
)
def test_marks_are_whole_names_of_variables(environment: bytes, *, foreign: bool) -> None:
    """D40."""
    assert tree._marks_foreign(b"\0" + environment, RUN) is foreign
