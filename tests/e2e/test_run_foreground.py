"""``run --foreground``, and what else a run may read (contract, A.2, A.2.1 and I.5; D2)."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import Cli, await_handler, eventually

FG = ("run", "--foreground")


def test_all_bytes_pass_through_with_the_streams_kept_apart(cli: Cli) -> None:
    """A.2.1: the ID, then exactly the target's bytes."""
    data = os.urandom(1_000_000)
    done = cli(*FG, "--", "sh", "-c", "cat; echo 'not mixed' >&2", input=data)
    job_id, _, rest = done.raw.partition(b"\n")
    assert rest == data
    assert done.err == "not mixed\n"
    assert cli.json("show", job_id.decode())["specification"]["stdin_policy"] == "live"


@pytest.mark.parametrize("stdin", ["null device", "closed", "a file", "a pipe that stays open"])
def test_whatever_our_input_is_a_job_that_succeeds_is_a_success(cli: Cli, stdin: str) -> None:
    """D2: a target that ends, or stops reading, is no error."""
    reader, writer = os.pipe()
    (cli.cwd / "file").write_bytes(bytes(300_000))
    given: dict[str, dict[str, Any]] = {
        "null device": {"stdin": subprocess.DEVNULL},
        "closed": {"stdin": subprocess.DEVNULL, "preexec_fn": lambda: os.close(0)},
        "a file": {"stdin": os.open(cli.cwd / "file", os.O_RDONLY)},
        "a pipe that stays open": {"stdin": reader},
    }
    try:
        assert cli(*FG, "--", "true", **given[stdin]).err == ""
        done = cli(*FG, "--", "sh", "-c", "head -c1 >/dev/null <&- 2>&-; echo done", **given[stdin])
        assert done.out.partition("\n")[2] == "done\n"
    finally:
        os.close(reader)
        os.close(writer)


def test_every_run_is_followed_and_each_sees_the_end_of_its_input(cli: Cli) -> None:
    """D2, I.6: what a run has not taken goes to the next, and the status is that of the job."""
    script = "echo x >>n; echo run $(wc -l <n); cat; [ $(wc -l <n) -eq 3 ]"
    done = cli(*FG, "--retries", "2", "--", "sh", "-c", script, input=b"input\n")
    assert done.out.partition("\n")[2] == "run 1\ninput\nrun 2\nrun 3\n"
    assert done.err == ""
    done = cli(*FG, "--exit-code", "--stdin", "inherit", "--", "sh", "-c", "exit 7", status=7)
    assert "completed with outcome failure" in done.err
    done = cli(*FG, "--", "no-such-program", status=1)
    assert done.out.count("\n") == 1
    aborted = cli(*FG, "--wait-file", "never", "--wait-abort-at", "2020-01-01T00:00:00Z", "--", "true", status=1)
    assert "outcome aborted" in aborted.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_detaches_and_the_job_goes_on(cli: Cli, number: signal.Signals) -> None:
    """A.2.1: a terminal as input, Ctrl-C on it; the message says how to follow the job and how to end it."""
    ours, terminal = pty.openpty()
    script = "read line; echo got $line; until [ -e go ]; do sleep 0.01; done"
    client = cli.command(*FG, "--", "sh", "-c", script, stdin=terminal)
    try:
        assert client.stdout is not None
        job_id = client.stdout.readline().decode().strip()
        os.write(ours, b"typed\n")
        assert client.stdout.readline() == b"got typed\n"
        await_handler(client.pid, signal.SIGTERM)
        client.send_signal(number)
        _, err = client.communicate(timeout=15)
    finally:
        client.kill()
        os.close(ours)
        os.close(terminal)
    assert client.returncode == 1
    assert err.decode() == (
        f"detached; job {job_id} goes on: jobman logs --follow {job_id} shows its output,"
        f" jobman cancel {job_id} ends it\n"
    )
    assert cli.phase(job_id) == "running"
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"


def test_output_is_shown_while_the_command_reads_nothing(cli: Cli) -> None:
    """D21: more input than a pipe holds waits; output does not wait for it, nor does the end of the job."""
    script = "echo ready; until [ -e go ]; do sleep 0.01; done; echo late >&2"
    (cli.cwd / "much").write_bytes(bytes(1_000_000))
    with (cli.cwd / "much").open("rb") as much:
        client = cli.command(*FG, "--", "sh", "-c", script, stdin=much)
    try:
        assert client.stdout is not None
        assert len(client.stdout.readline()) == 37
        assert client.stdout.readline() == b"ready\n"
        (cli.cwd / "go").touch()
        assert client.communicate(timeout=15) == (b"", b"late\n")
        assert client.returncode == 0
    finally:
        client.kill()


def test_output_that_cannot_be_shown_does_not_change_how_the_job_ended(cli: Cli) -> None:
    """D2: an error in following is told, and the status is that of the job."""
    script = 'rm -r "$JOBMAN_STATE_DIR/logs/$JOBMAN_JOB_ID"; cat >got'
    done = cli(*FG, "--", "sh", "-c", script, input=b"all the same")
    assert "missing log file" in done.err
    assert (cli.cwd / "got").read_text() == "all the same"


def test_a_file_is_read_from_its_beginning_by_each_run(cli: Cli, tmp_path: Path) -> None:
    """I.5: opened by the supervisor for every run; relative to where the client is."""
    (tmp_path / "data\udcff").write_text("line\n")
    path = os.fsencode("../work/../data") + b"\xff"
    job_id = cli.finish("sh", "-c", "cat; exit 1", flags=("--retries", "1", "--cwd", "/", "--stdin-file", path))  # type: ignore[arg-type]  # a path is bytes
    assert cli("logs", "--all", "--raw", job_id).out == "line\nline\n"
    assert cli.json("show", job_id)["specification"]["stdin_policy"] == "file"


def test_a_file_that_cannot_be_opened_is_a_failed_start_with_a_reason(cli: Cli) -> None:
    """D24: what it is, for a start that may be retried; nothing blocks the supervisor."""
    os.mkfifo(cli.cwd / "pipe")
    for path, says in (
        ("missing", "no such file or directory"),
        (".", "is a directory"),
        ("pipe", "is neither a file"),
    ):
        job_id = cli.finish("cat", flags=("--stdin-file", path))
        (run,) = cli.json("show", job_id)["runs"]
        assert (run["outcome"], run["diagnostic_code"]) == ("start_failed", "stdin_unavailable")
        assert says in run["diagnostic"]
        assert os.path.normpath(cli.cwd / path) in run["diagnostic"]


def test_flags_that_contradict_each_other_are_refused_and_nothing_is_stored(cli: Cli) -> None:
    for flags, says in (
        (("--stdin", "inherit"), "--stdin inherit needs --foreground"),
        (("--stdin", "file"), "--stdin: invalid value 'file'"),
        (("--stdin", ""), "--stdin: invalid value ''"),
        (("--stdin", "null", "--foreground"), "exclude each other"),
        (("--stdin-file", "x", "--foreground"), "exclude each other"),
        (("--stdin-file", "x", "--stdin", "live"), "exclude each other"),
        (("--stdin-file", ""), "--stdin-file: the path is empty"),
        (("--stdin-file", "/dev/stdin"), "--stdin-file: /dev/stdin means another file to each process"),
        (("--stdin-file", "/dev//fd/63"), "means another file to each process"),
        (("--stdin-file", "/proc/self/fd/0"), "means another file to each process"),
        (("--exit-code",), "needs --wait or --foreground"),
    ):
        cli.refuses("run", *flags, "--", "true", status=2, says=says)
    assert cli.has_no_job()


def test_a_reader_that_goes_away_detaches_too(cli: Cli) -> None:
    """C: how the job will end is not known, and no success."""
    script = "until [ -e go ]; do echo more; sleep 0.01; done"
    client = cli.command(*FG, "--", "sh", "-c", script)
    assert client.stdout is not None
    assert client.stderr is not None
    try:
        job_id = client.stdout.readline().decode().strip()
        client.stdout.close()
        assert client.stderr.read().startswith(b"detached; job ")
        assert client.wait(timeout=15) == 1
    finally:
        client.kill()
        client.stderr.close()
    eventually(lambda: cli.phase(job_id) == "running")
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"
