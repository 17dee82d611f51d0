"""What holds a first run back, at the command line: other jobs, times, paths (contract, A.2, E.4, H.2; M11 to M15)."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from jobman.clock import SystemClock
from jobman.model.scalars import format_timestamp, parse_timestamp
from tests.support import Cli, eventually, supervisor_pids

SECOND = 10**9
# How the first job ends, and the outcome that this is.
ENDS = {"success": "true", "failure": "exit 3", "cancelled": "", "timed_out": "sleep 60", "aborted": "", "lost": ""}
MEETS = {
    "--after-success": {"success"},
    "--after-failed": {"failure"},
    "--after-finish": set(ENDS),
    "--after-outcome=": {"cancelled", "lost"},
}


def later(seconds: int) -> str:
    """Return the time so many seconds from now."""
    return format_timestamp(SystemClock().wall_ns() + seconds * SECOND)


def evaluation(cli: Cli, job_id: str, place: int = 0) -> dict[str, Any]:
    """Return what ``show`` says of a wait condition."""
    found: dict[str, Any] = cli.json("show", job_id)["wait_evaluations"][place]
    return found


def end(cli: Cli, outcome: str) -> str:
    """Submit a job and have it end with ``outcome`` once the file ``go`` is there; return its ID."""
    script = f"until [ -e go ]; do sleep 0.01; done; {ENDS[outcome]}"
    flags = {"timed_out": ("--job-timeout", "1s"), "aborted": ("--wait-file", "never", "--wait-abort-at", later(1))}
    return cli.run("sh", "-c", script, flags=flags.get(outcome, ()))


@pytest.mark.parametrize("outcome", ENDS)
def test_every_outcome_of_a_job_decides_those_that_wait_for_it(cli: Cli, outcome: str) -> None:
    """E.4, M12, M13, field case 34: whatever becomes of the first, the others run or are aborted, and say why."""
    first = end(cli, outcome)
    flags = {name: (f"{name}{first}=cancelled,lost",) if name.endswith("=") else (name, first) for name in MEETS}
    others = {name: cli.run("true", flags=words) for name, words in flags.items()}
    for job_id in others.values():
        cli.await_phase(job_id, "waiting", "completed")
    if outcome == "cancelled":
        cli("cancel", first)
    elif outcome == "lost":
        cli.await_phase(first, "running")
        run_pid = cli.json("show", first)["runs"][0]["process"]["pid"]
        os.kill(cli.json("show", first)["supervisor"]["pid"], signal.SIGKILL)
        os.killpg(run_pid, signal.SIGKILL)
    (cli.cwd / "go").touch()
    for name, job_id in others.items():
        expected = "success" if outcome in MEETS[name] else "aborted"
        assert cli.wait(job_id) == expected, name
        detail = cli.json("show", job_id)
        (edge,) = detail["dependencies"]
        observed = cli.json("status", first)
        assert (edge["observed_outcome"], edge["observed_revision"]) == (outcome, observed["revision"])
        assert ("satisfied_at" in edge) == (expected == "success")
        if expected == "aborted":
            assert detail["diagnostic_code"] == "dependency_unsatisfied"
            assert detail["summary"]["reason"].startswith(f"dependency failed: {first[:8]} (ended as {outcome}, ")
            assert detail["runs"] == []


def test_a_time_holds_a_job_back(cli: Cli) -> None:
    until = later(2)
    job_id = cli.run("true", flags=("--wait-until", until))
    cli.await_phase(job_id, "waiting")
    assert cli.json("status", job_id)["reason"] in ("", "waiting for a time")
    assert cli.wait(job_id) == "success"
    started_at = cli.json("show", job_id)["runs"][0]["reserved_at"]
    assert parse_timestamp(started_at) >= parse_timestamp(until)
    shown = evaluation(cli, job_id)
    assert (shown["condition_index"], shown["condition_kind"]) == (0, "until")
    assert parse_timestamp(shown["satisfied_at"]) >= parse_timestamp(until)


def test_a_delay_runs_from_the_claim(cli: Cli) -> None:
    job_id = cli.finish("true", flags=("--wait-delay", "500ms"))
    detail = cli.json("show", job_id)
    waited_ns = parse_timestamp(detail["runs"][0]["reserved_at"]) - parse_timestamp(detail["claimed_at"])
    # The one is of the boot-time clock, the others of the wall clock.
    assert waited_ns >= 490_000_000


def test_a_path_may_appear_later_and_is_the_submitters(cli: Cli, tmp_path: Path) -> None:
    """D32: relative to where the submitter was, or to --cwd, and shown as what it is."""
    job_id = cli.run("true", flags=("--wait-file", "sub/../late"))
    path = str(cli.cwd / "late")
    condition = {"kind": "file_exists", "delay": "0s", "path": path, "file_kind": "any", "poll_interval": "250ms"}
    policy = cli.json("show", job_id)["specification"]["execution_policy"]
    assert (policy["wait_mode"], policy["wait_conditions"]) == ("all", [condition])
    eventually(lambda: cli.json("status", job_id).get("reason") == "waiting for a path to exist")
    (cli.cwd / "late").symlink_to("nowhere")
    assert cli.wait(job_id) == "success"
    other = cli.run("true", flags=("--cwd", str(tmp_path), "--wait-file", "late"))
    policy = cli.json("show", other)["specification"]["execution_policy"]
    assert policy["wait_conditions"][0]["path"] == str(tmp_path / "late")
    cli("cancel", other)


def test_a_path_of_any_bytes_can_be_waited_for(cli: Cli) -> None:
    job_id = cli.run("true", flags=(b"--wait-file=\xff late\n",))  # type: ignore[arg-type]  # words may be bytes
    cli.await_phase(job_id, "waiting")
    Path(os.fsdecode(os.fsencode(cli.cwd) + b"/\xff late\n")).touch()
    assert cli.wait(job_id) == "success"


def test_all_must_hold_or_any_one(cli: Cli) -> None:
    (cli.cwd / "here").touch()
    both = ("--wait-file", "here", "--wait-delay", "1h")
    held = cli.run("true", flags=(*both, "--wait-mode", "all"))
    freed = cli.run("true", flags=(*both, "--wait-mode", "any"))
    assert cli.wait(freed) == "success"
    eventually(lambda: len(cli.json("show", held)["wait_evaluations"]) == 2)
    kinds = [(shown["condition_kind"], "satisfied_at" in shown) for shown in cli.json("show", held)["wait_evaluations"]]
    assert kinds == [("delay", False), ("file_exists", True)], "times, delays, paths"
    cli("cancel", held)
    assert cli.wait(held) == "cancelled"


def test_conditions_are_looked_at_as_often_as_asked(cli: Cli) -> None:
    often = cli.run("true", flags=("--wait-file", "never", "--wait-poll", "20ms"))
    seldom = cli.run("true", flags=("--wait-file", "never", "--wait-poll", "1h"))
    eventually(lambda: cli.json("show", often)["wait_evaluations"] and evaluation(cli, often)["attempt_count"] > 20)
    assert evaluation(cli, seldom)["attempt_count"] == 1
    for job_id in (often, seldom):
        cli("cancel", job_id)
        assert cli.wait(job_id) == "cancelled"


def test_a_job_that_has_not_begun_by_its_wait_deadline_is_aborted(cli: Cli) -> None:
    job_id = cli.finish("true", flags=("--wait-file", "never", "--wait-abort-at", later(1)))
    detail = cli.json("show", job_id)
    assert (detail["summary"]["outcome"], detail["diagnostic_code"]) == ("aborted", "wait_abort_deadline")
    assert detail["summary"]["reason"] == "the first run had not begun by the wait deadline"
    assert detail["runs"] == []
    past = cli.finish("true", flags=("--wait-delay", "0s", "--wait-abort-at", "2001-01-01T00:00:00Z"))
    assert cli.json("status", past)["outcome"] == "aborted"


def test_dependencies_and_conditions_must_both_be_met(cli: Cli) -> None:
    """H.2: the wait mode applies to conditions only."""
    (cli.cwd / "here").touch()
    first = cli.run("sh", "-c", "until [ -e go ]; do sleep 0.01; done")
    flags = ("--after-success", first, "--wait-file", "here", "--wait-delay", "1h", "--wait-mode", "any")
    second = cli.run("true", flags=flags)
    cli.await_phase(second, "waiting")
    eventually(lambda: len(cli.json("show", second)["wait_evaluations"]) == 2)
    assert cli.phase(second) == "waiting"
    (cli.cwd / "go").touch()
    assert cli.wait(second) == "success"


def test_a_job_in_the_middle_of_a_wait_can_be_cancelled(cli: Cli) -> None:
    job_id = cli.run("true", flags=("--wait-file", "never", "--wait-poll", "1h"))
    cli.await_phase(job_id, "waiting")
    cli("cancel", "--wait", job_id)
    detail = cli.json("show", job_id)
    assert (detail["summary"]["outcome"], detail["runs"]) == ("cancelled", [])
    eventually(lambda: not supervisor_pids(cli.state))


def test_no_time_zone_moves_a_time_or_stops_a_command(cli: Cli) -> None:
    """Field case 30: a time carries its zone, what is printed is UTC, and an hour that clocks skip or double is one."""
    until = "2026-03-08T02:30:00-05:00"
    plain = cli.finish("true", flags=("--wait-until", until))
    printed = cli("list").out
    for zone in ("America/New_York", "Pacific/Kiritimati", "Bogus", "/etc/passwd", ":"):
        environment = cli.environment | {"TZ": zone}
        assert cli("list", env=environment).out == printed
        assert "2026-03-08T07:30:00Z" in cli("show", "--json", plain, env=environment).out
    cli.refuses("run", "--wait-until", "2026-03-08T02:30:00", "--", "true", status=2)
