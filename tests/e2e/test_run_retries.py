"""Completion policy at the command line: how often a job runs, when again, why no more (contract, A.2, H.3; M22)."""

from __future__ import annotations

import pytest

from jobman.clock import SystemClock
from jobman.model.scalars import format_timestamp, parse_timestamp
from tests.support import Cli, eventually

COUNT = "echo >>runs; test $(wc -l <runs) {}"
FAST = ("--retry-delay", "1ms")


def summary(cli: Cli, job_id: str) -> tuple[str, str, list[str]]:
    """Return a job's outcome, the code of its reason, and the outcomes of its runs."""
    detail = cli.json("show", job_id)
    return (
        detail["summary"]["outcome"],
        detail["runtime"]["waiting_reason"],
        [run["outcome"] for run in detail["runs"]],
    )


ONE, TWO, THREE = "-ge 1", "-ge 2", "-ge 3"
ENDINGS = {
    "once": ((), ONE, ("success", "success_target", "s")),
    "retries": (("--retries", "2"), THREE, ("success", "success_target", "ffs")),
    "retries used up": (("--retries", "1"), THREE, ("failure", "failure_limit", "ff")),
    "retries with a target": (("--retries", "3", "--success-target", "2"), TWO, ("success", "success_target", "fss")),
    "the first failure is the limit": (("--max-runs", "3"), THREE, ("failure", "failure_limit", "f")),
    "runs used up": (("--max-runs", "2", "--success-target", "3"), ONE, ("failure", "run_limit", "ss")),
    "target of several": (
        ("--max-runs", "unlimited", "--success-target", "3"),
        ONE,
        ("success", "success_target", "sss"),
    ),
    "failures between successes": (
        ("--max-runs", "9", "--success-target", "2", "--failure-limit", "unlimited"),
        "$(($(wc -l <runs) % 2)) = 0",
        ("success", "success_target", "fsfs"),
    ),
    "limit before runs": (("--max-runs", "2", "--failure-limit", "2"), THREE, ("failure", "failure_limit", "ff")),
    "target before runs": (("--max-runs", "1"), ONE, ("success", "success_target", "s")),
    "a code that is not retryable": (
        ("--retries", "5", "--retryable-exit-code", "7"),
        THREE,
        ("failure", "non_retryable_failure", "f"),
    ),
}
LETTERS = {"s": "success", "f": "failure"}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_runs_as_often_as_its_limits_say(cli: Cli, ending: str) -> None:
    flags, condition, (outcome, reason, runs) = ENDINGS[ending]
    script = COUNT.format(condition) if condition.startswith("-") else f"echo >>runs; test {condition}"
    job_id = cli.finish("sh", "-c", script, flags=(*flags, *FAST))
    assert summary(cli, job_id) == (outcome, reason, [LETTERS[letter] for letter in runs])


def test_a_run_timeout_is_retried_only_if_it_is_said(cli: Cli) -> None:
    slow = ("sh", "-c", "echo >>runs; [ $(wc -l <runs) -ge 2 ] || exec sleep 60")
    flags = ("--run-timeout", "200ms", "--retries", "3", *FAST)
    job_id = cli.finish(*slow, flags=flags)
    assert summary(cli, job_id) == ("failure", "non_retryable_failure", ["timed_out"])
    (cli.cwd / "runs").unlink()
    job_id = cli.finish(*slow, flags=(*flags, "--retry-timeouts"))
    outcome, reason, runs = summary(cli, job_id)
    # The machine may be too slow for the last one as well.
    assert (outcome, reason, runs[0], runs[-1]) == ("success", "success_target", "timed_out", "success")


def test_a_start_failure_is_retried_only_if_it_is_said(cli: Cli) -> None:
    flags = ("--retries", "2", *FAST)
    job_id = cli.finish("./missing", flags=flags)
    assert summary(cli, job_id) == ("failure", "non_retryable_failure", ["start_failed"])
    job_id = cli.finish("./missing", flags=(*flags, "--retry-start-failures"))
    assert summary(cli, job_id) == ("failure", "failure_limit", ["start_failed"] * 3)


@pytest.mark.parametrize("name", ["KILL", "SIGKILL", "kill"])
def test_death_by_a_signal_is_retried_only_if_that_signal_is_named(cli: Cli, name: str) -> None:
    """D39."""
    script = "echo >>runs; [ $(wc -l <runs) -ge 2 ] || kill -KILL $$"
    job_id = cli.finish("sh", "-c", script, flags=("--retries", "2", *FAST))
    assert summary(cli, job_id) == ("failure", "non_retryable_failure", ["failure"])
    (cli.cwd / "runs").unlink()
    job_id = cli.finish("sh", "-c", script, flags=("--retries", "2", "--retry-signal", "TERM", *FAST))
    assert summary(cli, job_id) == ("failure", "non_retryable_failure", ["failure"])
    (cli.cwd / "runs").unlink()
    flags = ("--retries", "2", "--retry-signal", "TERM", "--retry-signal", name, *FAST)
    job_id = cli.finish("sh", "-c", script, flags=flags)
    assert summary(cli, job_id) == ("success", "success_target", ["failure", "success"])
    policy = cli.json("show", job_id)["specification"]["execution_policy"]
    assert policy["classification"]["retryable_signals"] == ["terminated", "killed"]


def test_the_time_of_the_next_run_is_shown_and_the_gates_stay_open(cli: Cli) -> None:
    """H.2: prerequisites gate only the first run; D36: the reason names the retry."""
    (cli.cwd / "gate").touch()
    flags = ("--wait-file", "gate", "--retries", "2", "--retry-delay", "20s", "--retry-max-delay", "30s")
    job_id = cli.run("sh", "-c", "rm gate; exit 3", flags=flags)
    cli.await_phase(job_id, "backoff")
    detail = cli.json("show", job_id)
    assert detail["summary"]["reason"].startswith("retry 1/2 in ")
    assert detail["summary"]["reason"].endswith("s after exit 3")
    assert detail["runtime"]["next_run_at"] > detail["runs"][0]["completed_at"]
    assert detail["admission"]["released_at"] == detail["runs"][0]["completed_at"], "no slot is held during backoff"
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_success_waits_for_its_repetition_without_a_slot(cli: Cli) -> None:
    flags = ("--max-runs", "unlimited", "--success-target", "unlimited", "--repeat-delay", "30s")
    job_id = cli.run("true", flags=flags)
    cli.await_phase(job_id, "backoff")
    assert cli.json("status", job_id)["reason"].startswith("run 2 in ")
    assert "released_at" in cli.json("show", job_id)["admission"]
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_wait_condition_that_no_longer_holds_does_not_hold_back_a_retry(cli: Cli) -> None:
    (cli.cwd / "gate").touch()
    flags = ("--wait-file", "gate", "--retries", "1", *FAST)
    job_id = cli.finish("sh", "-c", "test ! -e gate || { rm gate; exit 1; }", flags=flags)
    assert summary(cli, job_id) == ("success", "success_target", ["failure", "success"])


def test_no_other_run_begins_after_the_retry_deadline(cli: Cli) -> None:
    soon = format_timestamp(SystemClock().wall_ns() + 30 * 10**9)
    flags = ("--retries", "5", "--retry-delay", "1h", "--retry-abort-at", soon)
    job_id = cli.finish("false", flags=flags)
    assert summary(cli, job_id) == ("aborted", "retry_deadline", ["failure"])
    assert cli.json("status", job_id)["reason"] == "retry deadline reached"
    past = cli.finish("false", flags=("--retries", "5", "--retry-abort-at", "2001-01-01T00:00:00Z"))
    assert summary(cli, past) == ("aborted", "retry_deadline", ["failure"])


def test_delays_grow_and_jitter_as_the_flags_say(cli: Cli) -> None:
    """With real time once; the arithmetic is proven with a clock that stands still."""
    flags = ("--retries", "3", "--retry-delay", "40ms", "--retry-backoff", "exponential", "--retry-jitter", "10ms")
    job_id = cli.finish("false", flags=(*flags, "--retry-max-delay", "120ms"))
    detail = cli.json("show", job_id)
    assert len(detail["runs"]) == 4
    policy = detail["specification"]["execution_policy"]
    grown = {"backoff": "exponential", "exponential_base": 2, "jitter": "10ms", "max_delay": "120ms"}
    assert policy["failure_delay"] == {"base": "40ms", **grown}
    assert policy["success_delay"] == {"base": "0s", **grown}
    began = [run["reserved_at"] for run in detail["runs"]]
    ended = [run["completed_at"] for run in detail["runs"]]
    for before, after, least_ms in zip(ended, began[1:], (35, 75, 115), strict=False):
        assert parse_timestamp(after) - parse_timestamp(before) >= least_ms * 10**6


def test_a_cancellation_ends_the_wait_for_the_next_run_at_once(cli: Cli) -> None:
    job_id = cli.run("false", flags=("--retries", "1", "--retry-delay", "1h"))
    cli.await_phase(job_id, "backoff")
    cli("cancel", job_id)
    eventually(lambda: cli.phase(job_id) == "completed")
    assert summary(cli, job_id) == ("cancelled", "cancellation", ["failure"])


def test_every_limit_holds_behind_a_gate_too(cli: Cli) -> None:
    """Field case 35: a dependency and a wait condition change nothing about timeouts and retries."""
    first = cli.run("sh", "-c", "until [ -e go ]; do sleep 0.01; done")
    gates = ("--after-finish", first, "--wait-file", "go", "--wait-delay", "10ms")
    limits = ("--run-timeout", "200ms", "--retry-timeouts", "--retries", "1", "--retry-delay", "10ms")
    job_id = cli.run("sleep", "600", flags=(*gates, *limits))
    cli.await_phase(job_id, "waiting")
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "failure"
    assert summary(cli, job_id) == ("failure", "failure_limit", ["timed_out", "timed_out"])
    waiting = cli.finish("true", flags=("--wait-file", "never", "--job-timeout", "300ms"))
    assert summary(cli, waiting) == ("timed_out", "job_timeout", [])
