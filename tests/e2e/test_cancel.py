"""``jobman cancel``: from every phase, once, and with one signal (contract, A.8 and H.7; D10, D22, D27)."""

from __future__ import annotations

import sys
import time

import pytest

from tests.support import Cli, eventually, processes_of

HELD = "until [ -e go ]; do sleep 0.01; done"
# Says what it is sent, and goes on; ends when there is a file "go".
COUNTING = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"term\\n"))
os.write(1, b"ready\\n")
while not os.path.exists("go"):
    time.sleep(0.01)
"""


def outcome_and_reason(cli: Cli, job_id: str) -> tuple[str, str]:
    """Return how a job ended, and why."""
    summary = cli.json("status", job_id)
    return summary["outcome"], summary["reason"]


def counting(cli: Cli, *flags: str) -> str:
    """Submit a target that prints what it is sent, and wait until it listens."""
    job_id = cli.run(sys.executable, "-c", COUNTING, flags=flags)
    eventually(lambda: cli("logs", job_id, status=None).out == "ready\n")
    return job_id


def test_a_running_job_stops_and_ends_as_cancelled(cli: Cli) -> None:
    job_id = cli.run("sleep", "600", flags=("--retries", "3"))
    cli.await_phase(job_id, "running")
    done = cli("cancel", job_id)
    assert (done.out, done.err) == (f"{job_id}\tstopping\n", "")
    assert cli("wait", job_id, status=1).out == f"{job_id}\tcancelled\n"
    detail = cli.json("show", job_id)
    (run,) = detail["runs"]
    assert run["outcome"] == "cancelled"
    assert run["exit"]["signal"] == "terminated"
    assert "cancellation_requested_at" in detail
    assert outcome_and_reason(cli, job_id) == ("cancelled", "cancelled")
    assert detail["summary"]["reason_code"] == "cancellation"


def test_a_job_that_waits_ends_without_a_run(cli: Cli) -> None:
    first = cli.run("sh", "-c", HELD)
    job_id = cli.run("true", flags=("--after-success", first))
    cli.await_phase(job_id, "waiting")
    assert cli("cancel", job_id).out == f"{job_id}\tstopping\n"
    assert cli.wait(job_id) == "cancelled"
    assert cli.json("show", job_id)["runs"] == []
    (cli.cwd / "go").touch()
    assert cli.wait(first) == "success"


def test_a_job_in_its_backoff_ends_without_another_run(cli: Cli) -> None:
    job_id = cli.run("false", flags=("--retries", "3", "--retry-delay", "1h"))
    cli.await_phase(job_id, "backoff")
    assert cli("cancel", "job", job_id).out == f"{job_id}\tstopping\n"
    assert cli.wait(job_id) == "cancelled"
    assert [run["outcome"] for run in cli.json("show", job_id)["runs"]] == ["failure"]


def test_cancelling_again_changes_nothing(cli: Cli) -> None:
    """A.8, O.43: idempotent, in ``stopping`` as in ``completed``."""
    job_id = counting(cli)
    assert cli("cancel", job_id).out == f"{job_id}\tstopping\n"
    revision = cli.json("status", job_id)["revision"]
    assert cli("cancel", job_id).out == f"{job_id}\tstopping\n"
    assert cli.json("status", job_id)["revision"] == revision
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "cancelled"
    before = cli("show", job_id, "--json").out
    assert cli("cancel", "--wait", job_id).out == f"{job_id}\tcompleted\n"
    assert cli("show", job_id, "--json").out == before
    done = cli.finish("true")
    assert cli("cancel", done).out == f"{done}\tcompleted\n"
    assert cli.json("status", done)["outcome"] == "success"


def test_cancel_returns_at_once_and_the_target_gets_one_signal(cli: Cli) -> None:
    """D27: however often it is asked for, one SIGTERM, from the supervisor; the request does not wait for the grace."""
    job_id = counting(cli, "--stop-grace", "1h")
    for _ in range(3):
        cli("cancel", job_id)
    eventually(lambda: "term" in cli("logs", job_id).out)
    assert cli.phase(job_id) == "stopping"
    assert cli.json("status", job_id)["reason"] == "stopping: cancelled"
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "cancelled"
    assert cli("logs", job_id).out == "ready\nterm\n"
    exit_ = cli.json("show", "run", job_id, "1")["exit"]
    assert exit_["platform_reason"] == "process_terminated"
    assert "exit_code" not in exit_


def test_waiting_for_the_end_leaves_nothing_alive(cli: Cli) -> None:
    job_id = counting(cli, "--stop-grace", "300ms")
    began = time.monotonic()
    assert cli("cancel", "--wait", job_id).out == f"{job_id}\tstopping\n"
    assert time.monotonic() - began >= 0.3
    assert cli.phase(job_id) == "completed"
    assert not [line for line in processes_of(cli.state).values() if "supervisor/__main__.py" not in line]


def test_only_the_active_run_can_be_named(cli: Cli) -> None:
    script = f"echo >>n; [ $(wc -l <n) = 1 ] && exit 1; {HELD}"
    job_id = cli.run("sh", "-c", script, flags=("--retries", "2"))
    eventually(lambda: (cli.cwd / "n").exists() and (cli.cwd / "n").read_text() == "\n\n")
    cli.await_phase(job_id, "running")
    for number in ("1", "-2"):
        cli.refuses("cancel", "run", job_id, number, status=5, says="run 1 of job")
    cli.refuses("cancel", "run", job_id, "3", status=3, says="has no run 3")
    cli.refuses("cancel", "run", job_id, "0", status=2, says="RUN: invalid value '0'")
    cli.refuses("cancel", "run", job_id, status=2, says="accepts 2 arg(s), received 1")
    assert cli.phase(job_id) == "running"
    assert cli("cancel", "run", job_id, "-1", "--wait").out == f"{job_id}\tstopping\n"
    assert [run["outcome"] for run in cli.json("show", job_id)["runs"]] == ["failure", "cancelled"]
    cli.refuses("cancel", "run", job_id, "2", status=5, says="is not active")


def test_a_job_whose_run_is_being_timed_out_can_be_cancelled(cli: Cli) -> None:
    """D10: accepted; no retry follows; the outcome is ``cancelled``."""
    job_id = counting(cli, "--run-timeout", "300ms", "--stop-grace", "1h", "--retries", "5")
    cli.await_phase(job_id, "stopping")
    assert cli.json("status", job_id)["reason"] == "stopping: run timeout"
    assert cli("cancel", job_id).out == f"{job_id}\tstopping\n"
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "cancelled"
    assert len(cli.json("show", job_id)["runs"]) == 1
    assert cli("logs", job_id).out == "ready\nterm\n"


@pytest.mark.parametrize("command", ["exit 0", "sleep 0.03", "exec sleep 0.06"])
def test_a_cancel_that_meets_the_end_never_loses_the_job(cli: Cli, command: str) -> None:
    """D22, O.18: whichever was first wins, and the job is never lost."""
    for _ in range(3):
        job_id = cli.run("sh", "-c", command)
        phase = cli("cancel", job_id).out.split()[1]
        outcome = cli.wait(job_id)
        assert outcome == ("success" if phase == "completed" else "cancelled")


def test_nonsense_is_refused(cli: Cli) -> None:
    cli.refuses("cancel", "nobody", status=3, says="no job matches 'nobody'")
    cli.refuses("cancel", "--force", "nobody", status=2, says="unknown flag --force")
    cli.refuses("cancel", status=2, says="accepts 1 arg(s), received 0")
    cli.refuses("cancel", "run", "nobody", "1", status=3)
    job_id = cli.finish("true", flags=("--name", "run"))
    assert cli("cancel", "job", "run").out == f"{job_id}\tcompleted\n"
