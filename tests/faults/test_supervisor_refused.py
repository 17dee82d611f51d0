"""A supervisor that is refused one call, by a full disk or a broken one, at any point of a short job (D23; issue 5)."""

from __future__ import annotations

import pytest

from tests.faults.injection import ALL_POINTS, assert_sound, injected, outcomes, rows, run_with, wrapped_interpreter
from tests.support import Cli, eventually, processes_of

# How many calls of each kind a supervisor makes, rounded up.
CALLS = {
    "pwrite64": range(1, 91),
    "fdatasync": range(1, 31),
    "fsync": range(1, 21),
    # The first two go to pipes, the acknowledgement and the gate: no disk refuses them.
    "write": range(3, 13),
    "mkdir,mkdirat": range(1, 7),
    "ftruncate": range(1, 5),
}
SAMPLE = {"pwrite64": (3, 40), "fdatasync": (5,), "fsync": (2,), "write": (3,)}
POINTS = [(syscall, number) for syscall, numbers in (CALLS if ALL_POINTS else SAMPLE).items() for number in numbers]


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"] if ALL_POINTS else ["ENOSPC"])
@pytest.mark.parametrize(("syscall", "number"), POINTS)
def test_a_call_that_is_refused_once_costs_no_result(cli: Cli, syscall: str, number: int, error: str) -> None:
    """The job ends as its command did, or was never taken over; what could not be kept of its output is said."""
    python = wrapped_interpreter(cli.state.parent / "python", injected(syscall, number, f"error={error}"))

    done = run_with(cli, python, "--", "sh", "-c", "echo out; echo err >&2; exit 7")

    (outcome,) = outcomes(cli).values()
    eventually(lambda: not processes_of(cli.state))
    assert outcome == ("submission_failed" if done.status else "failure")
    if outcome == "failure":
        ((code, health),) = rows(cli.state, "SELECT exit_code, log_health FROM runs")
        assert code == 7
        complete = cli("logs", "--stream", "stdout", done.out.strip(), status=None).out == "out\n"
        assert complete or health == "degraded"
    assert_sound(cli.state)
