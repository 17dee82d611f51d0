"""Names of signals and sums of usage."""

from __future__ import annotations

import signal

import pytest

from jobman.process import Usage, signal_name, signal_names


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGTERM, "terminated"),
        (signal.SIGKILL, "killed"),
        (signal.SIGHUP, "hangup"),
        (signal.SIGINT, "interrupt"),
        (signal.SIGQUIT, "quit"),
        (signal.SIGABRT, "aborted"),
        (signal.SIGSEGV, "segmentation fault"),
        (signal.SIGPIPE, "broken pipe"),
        (signal.SIGALRM, "alarm clock"),
        (signal.SIGUSR1, "user defined signal 1"),
        (signal.SIGUSR2, "user defined signal 2"),
        (signal.SIGSYS, "bad system call"),
        (34, "signal 34"),
        (64, "signal 64"),
    ],
)
def test_signals_have_the_names_that_records_use(number: int, name: str) -> None:
    assert signal_name(number) == name


def test_every_classic_signal_has_its_own_name() -> None:
    names = signal_names()
    assert sorted(names) == list(range(1, 32))
    assert len(set(names.values())) == 31


def test_usage_takes_the_largest_resident_set_and_adds_the_time() -> None:
    """D35."""
    assert Usage(10, 1, 2).plus(Usage(30, 3, 4)) == Usage(30, 4, 6)
    assert Usage(30, 1, 2).plus(Usage()) == Usage(30, 1, 2)
