"""``pause`` and ``resume``, whether the supervisor answers or not (contract, A.9, H.5; D4, D20, M29)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jobman.model.scalars import parse_duration, parse_timestamp
from tests.support import Cli, eventually, installed_command, processes_of, supervisor_pids

TICKS = "while :; do echo x >>ticks; sleep 0.02; done"


def target(cli: Cli, job_id: str) -> int:
    """Return the PID of the active run's leader."""
    return int(cli.json("show", job_id)["runs"][-1]["process"]["pid"])


def letters(cli: Cli) -> set[str]:
    """Return the states of all processes but the supervisors."""
    found = set()
    for pid in processes_of(cli.state).keys() - set(supervisor_pids(cli.state)):
        try:
            found.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
        except OSError:
            continue
    return found


def is_still(cli: Cli) -> bool:
    """Say whether every process of the run is stopped, or waits for one that is."""
    return letters(cli) <= {"T", "D"}


def running(cli: Cli, script: str, *flags: str) -> str:
    """Submit a job and return its ID once it runs."""
    job_id = cli.run("sh", "-c", script, flags=flags)
    cli.await_phase(job_id, "running")
    return job_id


def test_a_running_job_stands_still_until_it_is_resumed(cli: Cli) -> None:
    # So long a grace that it is not waited for: the end of the last member is noticed.
    job_id = running(cli, f"(setsid sh -c '{TICKS}') & {TICKS}", "--stop-grace", "60s")
    eventually((cli.cwd / "ticks").exists)
    assert cli("pause", job_id).out == f"{job_id}\tpaused\n"
    assert is_still(cli), "the command returns when the tree is stopped"
    written = (cli.cwd / "ticks").stat().st_size
    assert cli("pause", job_id).out == f"{job_id}\tpaused\n", "pausing again changes nothing"
    detail = cli.json("show", job_id)
    assert (detail["runtime"]["paused_from"], detail["runs"][0]["phase"]) == ("running", "paused")
    assert (cli.cwd / "ticks").stat().st_size == written
    assert cli("resume", job_id).out == f"{job_id}\trunning\n"
    eventually(lambda: (cli.cwd / "ticks").stat().st_size > written)
    detail = cli.json("show", job_id)
    assert "paused_from" not in detail["runtime"]
    assert parse_duration(detail["runtime"]["total_paused"]) > 0
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_each_phase_that_can_be_paused_is_returned_to(cli: Cli) -> None:
    waiting = cli.run("true", flags=("--wait-file", "go"))
    backoff = cli.run("false", flags=("--retries", "1", "--retry-delay", "1h"))
    for job_id, phase in ((waiting, "waiting"), (backoff, "backoff")):
        cli.await_phase(job_id, phase)
        assert cli("pause", job_id).out == f"{job_id}\tpaused\n"
        assert cli.json("show", job_id)["runtime"]["paused_from"] == phase
    (cli.cwd / "go").touch()
    assert cli("wait", "--timeout", "500ms", waiting, status=None).status != 0, "a paused job does not pass its gate"
    for job_id, phase in ((waiting, "waiting"), (backoff, "backoff")):
        assert cli("resume", job_id).out == f"{job_id}\t{phase}\n"
    assert cli.wait(waiting) == "success"
    cli("cancel", backoff)
    assert cli.wait(backoff) == "cancelled"


def test_what_can_not_be_paused_or_resumed_is_a_conflict(cli: Cli) -> None:
    done = cli.finish("true")
    cli.refuses("pause", done, status=5, says=done)
    cli.refuses("resume", done, status=5, says=done)
    stubborn = running(cli, "trap '' TERM; echo ready; while :; do sleep 0.02; done", "--stop-grace", "2s")
    eventually(lambda: cli("logs", stubborn).out == "ready\n")
    cli.refuses("resume", stubborn, status=5, says=stubborn)
    cli("cancel", stubborn)
    cli.refuses("pause", stubborn, status=5, says=stubborn)
    cli.refuses("resume", stubborn, status=5, says=stubborn)
    assert cli.wait(stubborn) == "cancelled"
    cli.refuses("pause", "nobody", status=3)
    cli.refuses("resume", "", status=2)


def test_paused_time_counts_for_no_timeout(cli: Cli) -> None:
    """Field case 7, H.5: with real time once; a job paused for longer than both of its timeouts goes on."""
    flags = ("--run-timeout", "3s", "--job-timeout", "3s")
    job_id = running(cli, "until [ -e go ]; do sleep 0.02; done", *flags)
    cli("pause", job_id)
    paused_at = parse_timestamp(cli.json("show", job_id)["runtime"]["paused_at"])
    other = cli.finish("sleep", "3.5")
    assert parse_timestamp(cli.json("show", other)["completed_at"]) - paused_at > 3 * 10**9
    assert cli.phase(job_id) == "paused"
    (cli.cwd / "go").touch()
    cli("resume", job_id)
    assert cli.wait(job_id) == "success"
    assert parse_duration(cli.json("show", job_id)["runtime"]["total_paused"]) > 3 * 10**9


def test_a_cancellation_wins_and_the_last_words_are_kept(cli: Cli) -> None:
    """D20: the paused tree is woken so that its handler can run."""
    script = "trap 'echo last words; exit 0' TERM; echo ready; while :; do sleep 0.02; done"
    job_id = running(cli, script, "--stop-grace", "60s")
    eventually(lambda: cli("logs", job_id).out == "ready\n")
    cli("pause", job_id)
    cli("cancel", "--wait", job_id)
    assert cli("logs", "--stream", "stdout", job_id).out == "ready\nlast words\n"
    detail = cli.json("show", job_id)
    assert (detail["summary"]["outcome"], detail["runs"][0]["outcome"]) == ("cancelled", "cancelled")
    assert "paused_from" not in detail["runtime"]
    assert parse_duration(detail["runtime"]["total_paused"]) > 0


@pytest.mark.parametrize("script", ["exec sleep 600", f"(setsid sh -c '{TICKS}') & {TICKS}"], ids=["alone", "a tree"])
def test_a_paused_target_that_is_killed_completes_with_its_own_end(cli: Cli, script: str) -> None:
    """D4; what it leaves behind is stopped and cannot let go of the pipes: nobody waits for that."""
    job_id = running(cli, script)
    cli("pause", job_id)
    os.kill(target(cli, job_id), signal.SIGKILL)
    assert cli.wait(job_id) == "failure"
    detail = cli.json("show", job_id)
    assert detail["runs"][0]["logs"]["recording_health"] == "healthy"
    assert detail["runs"][0]["exit"]["signal"] == "killed"
    assert "paused_from" not in detail["runtime"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_supervisor_that_does_not_answer_is_waited_for_two_seconds(cli: Cli, verb: str) -> None:
    """Architecture, Intent is the phase: the request is durable, which is what counts."""
    job_id = running(cli, TICKS)
    if verb == "resume":
        cli("pause", job_id)
    (supervisor,) = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        done = cli(verb, job_id)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    assert done.out == f"{job_id}\t{'paused' if verb == 'pause' else 'running'}\n"
    assert done.err == f"job {job_id}: the request is recorded, but not yet confirmed by its supervisor\n"
    eventually(lambda: is_still(cli) == (verb == "pause"), "it is signalled once the supervisor goes on")
    assert cli(verb, job_id, status=None).err.count("not yet confirmed") == 0
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_supervisor_that_answers_late_is_waited_for(cli: Cli) -> None:
    job_id = running(cli, TICKS)
    (supervisor,) = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGSTOP)
    try:
        client = cli.command("pause", job_id)
        cli.await_phase(job_id, "paused")
        assert client.poll() is None, "it returns only when the tree is stopped"
    finally:
        os.kill(supervisor, signal.SIGCONT)
    out, err = client.communicate(timeout=10)
    assert (out.decode(), client.returncode) == (f"{job_id}\tpaused\n", 0)
    # On a machine so slow that two seconds are over, it says so.
    assert is_still(cli) or b"not yet confirmed" in err
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_tree_that_grows_all_the_time_is_stopped_as_a_whole(cli: Cli) -> None:
    grow = "while :; do sh -c 'sleep 0.01; sleep 0.01' & wait; done"
    job_id = running(cli, f'({grow}) & ({grow}) & setsid sh -c "{grow}" & wait', "--stop-grace", "60s")
    for _ in range(5):
        eventually(lambda: not is_still(cli))
        cli("pause", job_id)
        before = sorted(processes_of(cli.state))
        assert is_still(cli)
        assert sorted(processes_of(cli.state)) == before
        cli("resume", job_id)
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_job_submitted_from_inside_goes_on(cli: Cli) -> None:
    """D40: an inner job is no part of the tree that is paused."""
    job_id = running(cli, f"{installed_command()} run -- sh -c 'until [ -e go ]; do sleep 0.02; done' >inner; sleep 60")
    eventually(lambda: (cli.cwd / "inner").exists() and (cli.cwd / "inner").read_text().endswith("\n"))
    inner = (cli.cwd / "inner").read_text().strip()
    cli("pause", job_id)
    (cli.cwd / "go").touch()
    assert cli.wait(inner) == "success"
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"
