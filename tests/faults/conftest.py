"""Counts the points at which something was killed, interrupted or refused, for whoever reads the end of the run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

_POINT = "fault point"


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """A test that is given a system call and a number injects its fault there."""
    arguments = getattr(getattr(request.node, "callspec", None), "params", {})
    if {"syscall", "number"} <= arguments.keys():
        record_property(_POINT, f"{arguments['syscall']} {arguments['number']}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many there were; with several workers it is the first process that knows."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    tried = [report for report in reports if _POINT in dict(report.user_properties)]
    if tried:
        bad = sum(report.failed for report in tried)
        terminalreporter.write_line(f"faults: {len(tried)} points tried, {bad} with a finding")
