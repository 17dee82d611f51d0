"""Jobs that wait for others: ``run --after-success`` (contract, A.2 and E.4; M11 to M13; D36)."""

from __future__ import annotations

import pytest

from tests.support import Cli, stock

HELD = "until [ -e go ]; do sleep 0.01; done"


def release(cli: Cli) -> None:
    """Let the jobs go that wait for the file ``go``."""
    (cli.cwd / "go").touch()


def test_a_dependent_waits_says_for_what_and_runs_after_success(cli: Cli) -> None:
    first = cli.run("sh", "-c", f"{HELD}; echo first >>order", flags=("--name", "prepare_data"))
    second = cli.run("sh", "-c", "echo second >>order", flags=("--after-success", "prepare_data"))
    cli.await_phase(first, "running")
    cli.await_phase(second, "waiting")
    assert cli.json("status", second)["reason"] == "waiting for prepare_data (running)"
    assert cli("status", second).out == f"{second}\t\twaiting\t\twaiting for prepare_data (running)\n"
    edge = {"depends_on": first, "job_id": second, "predicate": "success"}
    assert cli.json("show", second)["dependencies"] == [edge]

    release(cli)

    assert cli.wait(second) == "success"
    assert (cli.cwd / "order").read_text() == "first\nsecond\n"
    (edge,) = cli.json("show", second)["dependencies"]
    assert edge["observed_outcome"] == "success"
    assert "satisfied_at" in edge


@pytest.mark.parametrize("ends", ["exit 3", "sleep 600"], ids=["failure", "cancelled"])
def test_a_dependent_of_a_job_that_does_not_succeed_is_aborted_with_the_reason(cli: Cli, ends: str) -> None:
    """Field case 34: every end of the first job decides the second."""
    first = cli.run("sh", "-c", f"{HELD}; exec {ends}" if ends == "sleep 600" else f"{HELD}; {ends}")
    second = cli.run("touch", "ran", flags=("--after-success", first))
    third = cli.run("touch", "ran", flags=("--after-success", second))
    cli.await_phase(second, "waiting")
    release(cli)
    if ends == "sleep 600":
        cli("cancel", "--wait", first)
    outcome = cli.wait(first)
    done = cli("wait", second, third, status=1)
    assert sorted(done.out.splitlines()) == sorted((f"{second}\taborted", f"{third}\taborted"))
    assert done.err.count("completed with outcome aborted\n") == 2
    detail = cli.json("show", second)
    assert detail["runs"] == []
    assert detail["diagnostic_code"] == "dependency_unsatisfied"
    assert outcome in detail["summary"]["reason"]
    assert detail["summary"]["reason"] == detail["diagnostic"]
    assert not (cli.cwd / "ran").exists()


def test_retries_of_the_first_job_count_as_one(cli: Cli) -> None:
    """Field case 34."""
    first = cli.run("sh", "-c", "echo >>n; [ $(wc -l <n) = 3 ]", flags=("--retries", "2", "--retry-delay", "50ms"))
    second = cli.run("wc", "-l", "n", flags=("--after-success", first))
    assert cli.wait(second) == "success"
    assert cli("logs", second).out == "3 n\n"


def test_a_job_that_has_already_ended_decides_at_once(cli: Cli) -> None:
    good, bad = cli.finish("true"), cli.finish("false")
    assert cli.wait(cli.run("true", flags=("--after-success", good))) == "success"
    assert cli.wait(cli.run("true", flags=("--after-success", good, "--after-success", bad))) == "aborted"


def test_a_job_named_twice_is_one_dependency(cli: Cli) -> None:
    """O.38."""
    first = cli.finish("true", flags=("--name", "first"))
    second = cli.finish("true", flags=("--after-success", first, "--after-success", "first"))
    assert len(cli.json("show", second)["dependencies"]) == 1


def test_the_specification_keeps_ids_whatever_the_selector_was(cli: Cli) -> None:
    first = cli.finish("true", flags=("--name", "first"))
    second = cli.finish("true", flags=("--after-success", "first"))
    policy = cli.json("show", second)["specification"]["execution_policy"]
    assert policy["dependencies"] == [{"job_id": first, "predicate": "success"}]


def test_one_job_may_wait_for_five_hundred(cli: Cli) -> None:
    """Field case 26."""
    job_ids = stock(cli.state, 500)
    flags = [word for job_id in job_ids for word in ("--after-success", job_id)]
    job_id = cli.finish("echo", "all", flags=flags)
    assert cli.json("status", job_id)["outcome"] == "success"
    assert cli("logs", job_id).out == "all\n"
    assert len(cli.json("show", job_id)["dependencies"]) == 500
