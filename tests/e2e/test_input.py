"""``jobman input``: what reaches the command, what is counted, and what is refused (contract, A.11 and I.6)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.store.connection import open_store
from jobman.store.jobs import load_snapshot
from jobman.store.live_input import request_eof
from tests.support import Cli, await_handler, eventually, supervisor_pids

LIVE = ("--stdin", "live")
NOT_READING = "until [ -e go ]; do sleep 0.01; done"
PIPE_BYTES = 64 * 1024


def live(cli: Cli, script: str, *flags: str) -> str:
    """Submit a shell script that takes live input; return the job's ID once it runs."""
    job_id = cli.run("sh", "-c", script, flags=(*LIVE, *flags))
    cli.await_phase(job_id, "running", "completed")
    return job_id


@contextlib.contextmanager
def sending(cli: Cli, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a client whose input is a pipe; it is gone at the end, whatever happens."""
    client = cli.command(*words, stdin=subprocess.PIPE)
    try:
        yield client
    finally:
        client.kill()
        client.communicate()


def feed(client: subprocess.Popen[bytes], data: bytes) -> None:
    """Write all that a client is to send."""
    assert client.stdin is not None
    client.stdin.write(data)
    client.stdin.close()
    client.stdin = None


def runtime(cli: Cli, job_id: str) -> dict[str, object]:
    found: dict[str, object] = cli.json("show", job_id)["runtime"]
    return found


def test_five_megabytes_of_any_bytes_arrive_as_they_were_sent(cli: Cli) -> None:
    job_id = live(cli, "sha256sum")
    endpoint = Path(str(runtime(cli, job_id)["input_endpoint"]))
    assert endpoint.is_socket()
    data = os.urandom(5_000_000)

    assert cli("input", "--eof", job_id, input=data).out == "5000000\n"

    assert cli.wait(job_id) == "success"
    assert cli("logs", job_id).out == f"{hashlib.sha256(data).hexdigest()}  -\n"
    shown = runtime(cli, job_id)
    assert shown["input_eof_requested"] is True
    assert "input_endpoint" not in shown
    eventually(lambda: not endpoint.exists())
    cli.refuses("input", job_id, status=5, says="has ended")


def test_the_end_comes_although_whoever_asked_for_it_died_before_saying_so(cli: Cli) -> None:
    """O.26: the mark is durable and the supervisor looks for it; nothing of ours is open in the command (D18)."""
    job_id = live(cli, "cat; ls /proc/self/fd")
    assert cli("input", job_id, input=b"text ").out == "5\n"
    store = open_store(str(cli.state))
    run = load_snapshot(store, job_id).run
    assert run is not None
    assert request_eof(store, job_id, run.id)
    assert not request_eof(store, job_id, run.id)
    assert cli.wait(job_id) == "success"
    assert not request_eof(store, job_id, run.id)
    store.close()
    assert cli("logs", job_id).out == "text 0\n1\n2\n3\n"


def test_input_comes_in_parts_and_ends_once(cli: Cli) -> None:
    """O.10, A.11: with --eof a character device is not read; a second end is refused."""
    job_id = live(cli, "cat; " + NOT_READING)
    assert cli("input", job_id, input=b"one ").out == "4\n"
    assert cli("input", job_id).out == "0\n"
    assert cli("input", job_id, input=b"two\n").out == "4\n"
    assert runtime(cli, job_id)["input_eof_requested"] is False
    ours, terminal = pty.openpty()
    assert cli("input", "--eof", job_id, stdin=terminal).out == "0\n"
    os.close(ours)
    os.close(terminal)
    eventually(lambda: cli("logs", job_id).out == "one two\n")
    cli.refuses("input", "--eof", job_id, status=5, says="was closed before, after 0 bytes")
    cli.refuses("input", job_id, input=b"more", status=5, says="was closed, after 0 bytes")
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"


def test_clients_that_send_at_once_do_not_mix_their_pieces(cli: Cli) -> None:
    """D29."""
    job_id = live(cli, "cat >got")
    names = {letter: cli.cwd / letter for letter in "ab"}
    for letter, path in names.items():
        path.write_bytes(letter.encode() * 40 * PIPE_BYTES)
    clients = []
    for path in names.values():
        with path.open("rb") as file:
            clients.append(cli.command("input", job_id, stdin=file))
    for client in clients:
        assert client.communicate(timeout=15)[0] == b"2621440\n"
    cli("input", "--eof", job_id)
    assert cli.wait(job_id) == "success"
    got = (cli.cwd / "got").read_bytes()
    pieces = {got[start : start + PIPE_BYTES] for start in range(0, len(got), PIPE_BYTES)}
    assert (len(got), pieces) == (80 * PIPE_BYTES, {b"a" * PIPE_BYTES, b"b" * PIPE_BYTES})


def test_a_command_that_stops_reading_makes_a_short_delivery(cli: Cli) -> None:
    """A.11: exit 6, and how much was taken."""
    job_id = live(cli, "exec <&-; touch closed; " + NOT_READING)
    eventually((cli.cwd / "closed").exists)
    assert "took only 0 bytes" in cli.refuses("input", job_id, input=b"x", status=6)
    (cli.cwd / "go").touch()
    cli.wait(job_id)
    part = live(cli, "head -c 100000 >/dev/null; exec <&-; until [ -e gone ]; do sleep 0.01; done")
    told = cli.refuses("input", part, input=bytes(5_000_000), status=6, says="took only")
    assert 100_000 <= int(told.split()[4]) < 5_000_000
    (cli.cwd / "gone").touch()
    assert cli.wait(part) == "success"


def test_input_is_for_one_run_and_never_for_the_next(cli: Cli) -> None:
    """I.6, O.25; each run has an end of its own."""
    script = "echo x >>n; [ $(wc -l <n) -lt 2 ] && { head -c 5; " + NOT_READING + "; exit 1; }; cat"
    job_id = live(cli, script, "--retries", "1")
    with sending(cli, "input", job_id) as client:
        assert client.stdin is not None
        client.stdin.write(b"first")
        client.stdin.flush()
        eventually(lambda: cli("logs", job_id).out == "first")
        cli("input", "--eof", job_id)
        (cli.cwd / "go").touch()
        eventually(lambda: len(cli.json("show", job_id)["runs"]) == 2)
        cli.await_phase(job_id, "running")
        client.stdin.write(b"second")
        out, err = client.communicate(timeout=15)
    assert (client.returncode, out) == (5, b"")
    assert b"the run that took the input has ended, after 5 bytes" in err
    assert runtime(cli, job_id)["input_eof_requested"] is False
    assert cli("input", "--eof", job_id, input=b"third").out == "5\n"
    assert cli.wait(job_id) == "success"
    assert cli("logs", job_id).out == "third"


def test_jobs_that_take_no_input_say_so(cli: Cli) -> None:
    (cli.cwd / "data").write_text("")
    for flags in ((), ("--stdin", "null"), ("--stdin-file", "data")):
        job_id = cli.run("sh", "-c", NOT_READING, flags=flags)
        cli.refuses("input", job_id, input=b"x", status=5, says="takes no input, its standard input is")
    (cli.cwd / "go").touch()
    cli.refuses("input", "--eof", "nobody", status=3, says="no job matches")
    cli.refuses("input", status=2, says="accepts 1 arg(s)")


def test_a_client_waits_for_a_run_and_a_signal_ends_only_the_client(cli: Cli) -> None:
    job_id = cli.run("sh", "-c", "cat; " + NOT_READING, flags=(*LIVE, "--wait-file", "begin"))
    with sending(cli, "input", "--eof", job_id) as early:
        with sending(cli, "input", job_id) as client:
            await_handler(client.pid, signal.SIGTERM)
            client.send_signal(signal.SIGINT)
            assert b"interrupted; the job goes on" in client.communicate(timeout=15)[1]
            assert client.returncode == 1
        (cli.cwd / "begin").touch()
        assert early.communicate(b"hello", timeout=15)[0] == b"5\n"
    eventually(lambda: cli("logs", job_id, status=None).out == "hello")
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_a_paused_command_keeps_what_was_sent_and_a_cancelled_one_frees_who_waits(cli: Cli) -> None:
    """I.4 to I.6: what the pipe does not hold waits, and the supervisor goes on to hear everything else (D21)."""
    job_id = live(cli, "cat >got; " + NOT_READING)
    cli("pause", job_id)
    assert cli("input", job_id, input=b"kept").out == "4\n"
    with sending(cli, "input", "--eof", job_id) as waiting:
        feed(waiting, bytes(2 * PIPE_BYTES))
        cli("resume", job_id)
        assert waiting.communicate(timeout=15)[0] == b"131072\n"
    eventually(lambda: (cli.cwd / "got").read_bytes() == b"kept" + bytes(2 * PIPE_BYTES))
    cli("cancel", "--wait", job_id)
    stuck = live(cli, NOT_READING)
    with sending(cli, "input", stuck) as waiting:
        feed(waiting, bytes(2 * PIPE_BYTES))
        cli("cancel", "--wait", stuck)
        _, err = waiting.communicate(timeout=15)
    assert waiting.returncode in (5, 6), err
    assert cli.json("status", stuck)["outcome"] == "cancelled"


def test_the_socket_of_a_supervisor_that_was_killed_is_removed_with_its_job(cli: Cli, tmp_path: Path) -> None:
    """M20; below $TMPDIR too, where the path of the state directory is too long (I.6, D31)."""
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    temporary = tmp_path / "t"
    temporary.mkdir()
    far = Cli(deep / "state", cli.cwd)
    far.environment["TMPDIR"] = str(temporary)
    job_id = live(far, "cat")
    endpoint = Path(str(runtime(far, job_id)["input_endpoint"]))
    if len(str(temporary)) < 50:
        assert endpoint.parent == temporary / f"jobman-{os.geteuid()}"
    assert far("input", job_id, input=b"x").out == "1\n"
    (supervisor,) = supervisor_pids(far.state)
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: far.json("status", job_id)["phase"] == "completed")
    assert not endpoint.exists()
    far.refuses("input", job_id, input=b"x", status=5, says="has ended")
    eventually(lambda: far("cancel", job_id).out)


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_without_a_safe_place_for_the_socket_no_run_starts(cli: Cli, tmp_path: Path, mode: int) -> None:
    """D31, D24."""
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    temporary = Path(f"/tmp/jobman-test-{os.getpid()}-{mode}")
    planted = temporary / f"jobman-{os.geteuid()}"
    planted.mkdir(parents=True)
    planted.chmod(mode)
    try:
        far = Cli(deep / "state", cli.cwd)
        far.environment["TMPDIR"] = str(temporary)
        job_id = far.finish("cat", flags=LIVE)
        (run,) = far.json("show", job_id)["runs"]
        assert (run["outcome"], run["diagnostic_code"]) == ("start_failed", "stdin_unavailable")
        assert f"is not private (mode {mode:04o})" in run["diagnostic"]
    finally:
        planted.rmdir()
        temporary.rmdir()
