"""``jobman wait``: until jobs have ended, for how long, and how it answers (contract, A.10; D37)."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.support import Cli, await_handler

HELD = "until [ -e {0} ]; do sleep 0.01; done"


def held(cli: Cli, name: str, then: str = "exit 0") -> str:
    """Submit a job that ends as ``then`` says once the file of its name exists."""
    return cli.run("sh", "-c", f"{HELD.format(name)}; {then}", flags=("--name", name))


def release(cli: Cli, *names: str) -> None:
    """Let jobs of `held` go."""
    for name in names:
        (cli.cwd / name).touch()


def test_a_job_that_succeeds_is_a_line_and_status_zero(cli: Cli) -> None:
    job_id = cli.run("true")
    done = cli("wait", job_id)
    assert (done.out, done.err) == (f"{job_id}\tsuccess\n", "")


def test_a_job_that_fails_is_the_same_line_and_a_failure(cli: Cli) -> None:
    """C.1, O.1."""
    job_id = cli.run("sh", "-c", "exit 3")
    done = cli("wait", job_id, status=1)
    assert (done.out, done.err) == (f"{job_id}\tfailure\n", f"job {job_id} completed with outcome failure\n")
    assert cli("wait", job_id, status=1).out == done.out


def test_several_jobs_are_printed_as_they_end(cli: Cli) -> None:
    first, second = held(cli, "first", "exit 1"), held(cli, "second")
    with cli.command("wait", "first", second, first) as process:
        assert process.stdout is not None
        release(cli, "second")
        assert process.stdout.readline().decode() == f"{second}\tsuccess\n"
        release(cli, "first")
        assert process.stdout.read().decode() == f"{first}\tfailure\n"
    assert process.returncode == 1


def test_a_reader_that_has_gone_ends_no_waiting_and_hides_no_failure(cli: Cli) -> None:
    """C: with pipefail, ``jobman wait a b | head -1`` is what the jobs are; so are run --wait and cancel --wait."""
    reader, unread = os.pipe()
    os.close(reader)
    job_id = held(cli, "first", "exit 1")
    waiting = cli.command("wait", cli.run("true"), job_id, stdout=unread)
    staying = cli.command(
        "run", "--wait", "--exit-code", "--", "sh", "-c", f"{HELD.format('first')}; exit 7", stdout=unread
    )
    shown = cli.command("run", "--foreground", "--name", "shown", "--", "cat", stdout=unread)
    with os.fdopen(unread), waiting, staying, shown:
        assert shown.wait(15) == 1
        assert shown.stderr is not None
        assert shown.stderr.read().startswith(b"detached; job ")
        ending = cli.run(
            "sh", "-c", "trap '' TERM; until [ -e second ]; do sleep 0.01; done", flags=("--name", "ending")
        )
        cli.await_phase(ending, "running")
        with cli.command("cancel", "--wait", ending, stdout=unread) as cancelling:
            cli.await_phase(ending, "stopping")
            assert cancelling.poll() is None
            release(cli, "first", "second")
        assert (cancelling.returncode, waiting.wait(15), staying.wait(15)) == (0, 1, 7)
    cli("input", "--eof", "shown")
    assert cli.wait("shown") == "success"


def test_the_first_to_end_decides_with_any(cli: Cli) -> None:
    first, second = held(cli, "first", "exit 1"), held(cli, "second")
    release(cli, "second")
    done = cli("wait", "--any", first, second)
    assert done.out == f"{second}\tsuccess\n"
    assert cli.phase(first) == "running"
    release(cli, "first")
    assert cli("wait", "--any", first, status=1).out == f"{first}\tfailure\n"


def test_a_timeout_has_a_status_of_its_own_and_leaves_the_job_alone(cli: Cli) -> None:
    quick, slow = cli.finish("true"), held(cli, "slow")
    began = time.monotonic()
    done = cli("wait", "--timeout", "300ms", slow, quick, status=124)
    assert time.monotonic() - began >= 0.3
    assert done.out == f"{quick}\tsuccess\n"
    assert done.err == "wait timed out with 1 job not completed\n"
    assert cli("wait", "--timeout", "0", slow, status=124).out == ""
    assert cli.phase(slow) == "running"
    release(cli, "slow")
    assert cli("wait", "--timeout", "1h", slow).out == f"{slow}\tsuccess\n"
    assert cli("wait", "--timeout", "0s", slow).out == f"{slow}\tsuccess\n"


@pytest.mark.parametrize(
    ("command", "flags", "answer"),
    [
        ("exit 0", (), (0, "success")),
        ("exit 42", (), (42, "failure")),
        ("exit 255", (), (255, "failure")),
        ("kill -TERM $$", (), (128 + 15, "failure")),
        ("exit 7", ("--success-exit-code", "7"), (7, "success")),
        ("exit 0", ("--success-exit-code", "7"), (1, "failure")),
        ("exit 0", ("--success-target", "2", "--max-runs", "1"), (1, "failure")),
        ("exec sleep 600", ("--run-timeout", "100ms"), (1, "failure")),
        ("exec sleep 600", ("--job-timeout", "200ms"), (1, "timed_out")),
        ("echo >>n; exit $(wc -l <n)", ("--retries", "2"), (3, "failure")),
    ],
)
def test_the_exit_code_of_the_target_is_ours(
    cli: Cli, command: str, flags: tuple[str, ...], answer: tuple[int, str]
) -> None:
    """A.16: the last run's code, 128 and the signal, 1 where no exit of the target decided; 0 for success alone (C)."""
    status, outcome = answer
    job_id = cli.run("sh", "-c", command, flags=flags)
    assert cli("wait", "--exit-code", job_id, status=status).out == f"{job_id}\t{outcome}\n"


def test_the_exit_code_of_a_job_that_was_stopped_or_never_ran_is_one(cli: Cli) -> None:
    cancelled = cli.run("sleep", "600")
    cli.await_phase(cancelled, "running")
    cli("cancel", cancelled)
    aborted = cli.run("true", flags=("--after-success", cancelled))
    missing = cli.run("no-such-program")
    for job_id in (cancelled, aborted, missing):
        cli("wait", "--exit-code", job_id, status=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "words", [("wait", "job"), ("logs", "--follow", "job"), ("run", "--wait", "--after-success", "job", "--", "true")]
)
def test_an_interrupted_client_says_so_and_the_job_goes_on(
    cli: Cli, words: tuple[str, ...], number: signal.Signals
) -> None:
    """A.0, M6."""
    job_id = held(cli, "job")
    cli.await_phase(job_id, "running")
    with cli.command(*words) as process:
        await_handler(process.pid, signal.SIGTERM)
        process.send_signal(number)
        out, err = process.communicate(timeout=15)
    assert process.returncode == 1
    assert err.decode().count("\n") == 1
    assert b"interrupted; the job goes on" in err
    assert cli.phase(job_id) == "running"
    release(cli, "job")
    for waited in (job_id, *out.decode().split()):
        assert cli.wait(waited) == "success"


def test_an_interrupted_cancel_has_cancelled_all_the_same(cli: Cli) -> None:
    job_id = cli.run("sh", "-c", "trap '' TERM; while :; do sleep 0.01; done", flags=("--stop-grace", "1s"))
    cli.await_phase(job_id, "running")
    with cli.command("cancel", "--wait", job_id) as process:
        await_handler(process.pid, signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out.decode()) == (1, f"{job_id}\tstopping\n")
    assert err.count(b"\n") == 1
    assert cli.wait(job_id) == "cancelled"


def test_nonsense_is_refused(cli: Cli) -> None:
    job_id = cli.finish("true")
    cli.refuses("wait", status=2, says="accepts at least 1 arg(s), received 0")
    cli.refuses("wait", job_id, "nobody", status=3, says="no job matches 'nobody'")
    cli.refuses("wait", "--exit-code", job_id, job_id, status=2, says="exactly one job")
    cli.refuses("wait", "--timeout", "-1s", job_id, status=2, says="--timeout: invalid value '-1s'")
    cli.refuses("wait", "--timeout", "soon", job_id, status=2, says="a duration such as")
    cli.refuses("wait", "--timeout", status=2, says="--timeout needs a value")
    cli.refuses("wait", "", status=2, says="JOB: invalid value ''")
