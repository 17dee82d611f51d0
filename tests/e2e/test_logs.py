"""``jobman logs``: which run, which stream, how many lines, and following (contract, A.7, J.5, J.6; D17, D45)."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support import Cli, eventually, installed_command

THREE_RUNS = "echo >>n; n=$(wc -l <n); echo out $n; echo err $n >&2; printf tail$n; exit 1"
HELD = "until [ -e go ]; do sleep 0.01; done"


@pytest.fixture
def three(cli: Cli) -> str:
    """A job of three runs, each with a line on either stream and a last line without an end."""
    return cli.finish("sh", "-c", THREE_RUNS, flags=("--retries", "2"))


def streams(number: int) -> tuple[str, str]:
    """Return what a run of `THREE_RUNS` writes to stdout and stderr."""
    return f"out {number}\ntail{number}", f"err {number}\n"


# --- Which run and stream -------------------------------------------------------------------------------------------


def test_runs_and_streams_are_chosen_by_number_from_either_end(cli: Cli, three: str) -> None:
    for selection, number in (
        ((), 3),
        (("--run", "1"), 1),
        (("--run", "-1"), 3),
        (("--run=-3",), 1),
        (("--run", "2"), 2),
        (("--run", "+2"), 2),
    ):
        out, err = streams(number)
        assert cli("logs", three, *selection, "--stream", "stdout").out == out
        assert cli("logs", "--stream=stderr", *selection, three).out == err
        assert sorted(cli("logs", *selection, three, "--stream", "both").out) == sorted(out + err)


def test_all_runs_follow_each_other_under_a_line_that_names_each(cli: Cli, three: str) -> None:
    expected = "".join(f"==> run {number} <==\n{streams(number)[0]}" for number in (1, 2, 3))
    bare = "".join(streams(number)[0] for number in (1, 2, 3))
    for every in (("--all",), ("--run", "all"), ("--all", "--run", "all")):
        assert cli("logs", *every, "--stream", "stdout", three).out == expected
        assert cli("logs", *every, "--raw", "--stream", "stdout", three).out == bare
    assert cli("logs", "--raw", "--stream", "stdout", three).out == streams(3)[0]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("--lines", "0"), ""),
        (("--lines", "1"), "tail3"),
        (("-n2",), "out 3\ntail3"),
        (("-n", "5"), "out 3\ntail3"),
        (("-n=2",), "out 3\ntail3"),
        (("--lines", "-1"), "out 3\ntail3"),
        (("-n-1",), "out 3\ntail3"),
        (("--lines", "0x2"), "out 3\ntail3"),
    ],
)
def test_only_the_last_lines_are_printed(cli: Cli, lines: tuple[str, ...], expected: str) -> None:
    job_id = cli.finish("sh", "-c", "echo out 3; printf tail3")
    assert cli("logs", *lines, job_id).out == expected


def test_lines_count_headers_and_a_last_newline_ends_a_line(cli: Cli, three: str) -> None:
    done = cli("logs", "--all", "--stream", "stdout", "-n", "3", three)
    assert done.out == "tail2==> run 3 <==\nout 3\ntail3"
    assert cli("logs", "--all", "--stream", "stderr", "-n", "3", three).out == "err 2\n==> run 3 <==\nerr 3\n"


def test_what_is_not_there_has_its_own_status(cli: Cli, three: str) -> None:
    cli.refuses("logs", three, "--run", "4", status=3, says="has no run 4")
    cli.refuses("logs", three, "--run", "-4", status=3, says="has no run -4")
    cli.refuses("logs", "nobody", status=3, says="no job matches 'nobody'")
    for text in ("0", "x", "1.5", "", "-0", "--", "9" * 30):
        cli.refuses("logs", f"--run={text}", three, status=2, says="--run: invalid value")
    cli.refuses("logs", "--lines", "-2", three, status=2, says="--lines: invalid value '-2'")
    cli.refuses("logs", "--stream", "stdin", three, status=2, says="stdout, stderr or both")
    cli.refuses("logs", "--all", "--run", "2", three, status=2, says="--all and --run 2 exclude each other")
    cli.refuses("logs", status=2, says="accepts 1 arg(s), received 0")
    cli.refuses("logs", three, three, status=2, says="accepts 1 arg(s), received 2")


def test_a_job_without_a_run_has_no_logs_yet(cli: Cli) -> None:
    first = cli.run("sh", "-c", HELD)
    job_id = cli.run("true", flags=("--after-success", first))
    cli.await_phase(job_id, "waiting")
    cli.refuses("logs", job_id, status=5, says="has no run yet (it is waiting)")
    cli.refuses("logs", "--all", job_id, status=5, says="has no run yet")
    cli("cancel", "--wait", job_id)
    for flag in ("--all", "--follow"):
        # There is nothing to wait for any more.
        assert "--follow" not in cli.refuses("logs", flag, job_id, status=5, says="ended without a run")
    (cli.cwd / "go").touch()
    cli.wait(first)


def test_files_that_are_gone_are_an_error_that_names_them(cli: Cli) -> None:
    """J.5."""
    job_id = cli.finish("echo", "hello")
    directory = cli.state / "logs" / job_id / "1"
    (directory / "stdout.log").unlink()
    assert str(directory / "stdout.log") in cli.refuses("logs", "--stream", "stdout", job_id, status=1)
    shutil.rmtree(directory)
    assert str(directory) in cli.refuses("logs", job_id, status=1)


def test_a_damaged_index_stops_the_combined_view_only(cli: Cli) -> None:
    """J.5, O.50: all or nothing, and the streams still work."""
    job_id = cli.finish("echo", "hello")
    index = cli.state / "logs" / job_id / "1" / "chunks.idx"
    index.write_bytes(bytes(52) + index.read_bytes()[52:])
    cli.refuses("logs", job_id, status=1, says="corrupt log chunk index")
    assert cli("logs", "--stream", "stdout", job_id).out == "hello\n"


# --- Following ------------------------------------------------------------------------------------------------------


def test_following_waits_for_the_first_run_and_ends_with_it(cli: Cli) -> None:
    """O.52: bytes written just before the end are not lost."""
    first = cli.run("sh", "-c", HELD)
    job_id = cli.run("sh", "-c", "echo one; sleep 0.2; echo two; printf end", flags=("--after-success", first))
    with cli.command("logs", "--follow", job_id) as follower:
        cli.await_phase(job_id, "waiting")
        (cli.cwd / "go").touch()
        out, err = follower.communicate(timeout=15)
    assert (out, err, follower.returncode) == (b"one\ntwo\nend", b"", 0)


def test_following_prints_as_it_comes(cli: Cli) -> None:
    job_id = cli.run("sh", "-c", f"echo one; {HELD}; echo two")
    with cli.command("logs", "-f", "--stream", "stdout", job_id) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"one\n"
        (cli.cwd / "go").touch()
        assert follower.stdout.read() == b"two\n"
    assert follower.returncode == 0


def test_following_one_run_ends_with_that_run(cli: Cli) -> None:
    script = f"echo >>n; n=$(wc -l <n); echo $n; [ $n = 1 ] && exit 1; {HELD}"
    job_id = cli.run("sh", "-c", script, flags=("--retries", "1"))
    eventually(lambda: cli("logs", job_id, status=None).out == "2\n")
    assert cli("logs", "--follow", "--run", "1", job_id).out == "1\n"
    cli.refuses("logs", "--follow", "--run", "3", job_id, status=3, says="has no run 3")
    (cli.cwd / "go").touch()
    cli.wait(job_id)


def test_following_all_runs_crosses_retries_and_ends_with_the_job(cli: Cli) -> None:
    """D45."""
    script = "echo >>n; n=$(wc -l <n); echo $n; sleep 0.1; exit 1"
    job_id = cli.run("sh", "-c", script, flags=("--retries", "2", "--retry-delay", "100ms"))
    expected = "".join(f"==> run {number} <==\n{number}\n" for number in (1, 2, 3))
    assert cli("logs", "--follow", "--all", job_id).out == expected
    assert cli.phase(job_id) == "completed"
    assert cli("logs", "-f", "--run", "all", "--raw", job_id).out == "1\n2\n3\n"


def test_following_a_job_that_has_ended_prints_it_all(cli: Cli, three: str) -> None:
    """Lines are ignored with ``--follow``."""
    assert cli("logs", "--follow", "--lines", "1", "--stream", "stdout", three).out == streams(3)[0]


def test_reading_needs_no_configuration_and_changes_nothing(cli: Cli, three: str) -> None:
    before = cli("show", "--json", three).out
    cli("logs", "--all", three)
    assert cli("show", "--json", three).out == before


def test_a_reader_that_has_seen_enough_ends_us_quietly(cli: Cli) -> None:
    job_id = cli.finish("head", "-c", "3000000", "/dev/zero")
    for words in (("logs", job_id), ("logs", "--follow", job_id), ("logs", "--stream", "stdout", job_id)):
        with cli.command(*words) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.read(10) == bytes(10)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0, words


def test_output_that_cannot_be_written_is_said_in_one_line(cli: Cli) -> None:
    job_id = cli.finish("echo", "hello")
    with open("/dev/full", "wb") as full, cli.command("logs", job_id, stdout=full) as process:
        _, err = process.communicate(timeout=15)
    assert process.returncode == 1
    assert err.decode().count("\n") == 1
    assert b"no space left" in err


def test_a_closed_output_is_no_crash(cli: Cli) -> None:
    job_id = cli.finish("echo", "hello")
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
        words = ("sh", "-c", f'"$0" "$@" {closed}', installed_command(), "logs", job_id)
        done = subprocess.run(words, env=cli.environment, capture_output=True, check=False)
        assert done.returncode == 0, closed
        assert done.stderr == b""


# --- What is recorded -----------------------------------------------------------------------------------------------


def numbers(first: int, last: int) -> str:
    """Return what ``seq`` prints."""
    return "".join(f"{number}\n" for number in range(first, last + 1))


def test_output_in_segments_is_read_and_followed_as_one(cli: Cli) -> None:
    """J.1, J.3, J.6: no byte is lost where one file ends and the next begins."""
    script = f"seq 1 2000; {HELD}; echo e >&2; seq 2001 3000"
    job_id = cli.run("sh", "-c", script, flags=("--log-segment-bytes", "1KiB"))
    before = numbers(1, 2000).encode()
    with cli.command("logs", "--follow", "--stream", "stdout", job_id) as follower:
        assert follower.stdout is not None
        assert follower.stdout.read(len(before)) == before
        (cli.cwd / "go").touch()
        assert follower.stdout.read().decode() == numbers(2001, 3000)
    cli.wait(job_id)
    assert cli("logs", job_id).out.replace("e\n", "") == numbers(1, 3000)
    assert cli("logs", "-n", "1", "--stream", "stdout", job_id).out == "3000\n"
    assert cli("logs", "--prefix", "-n", "600", "--stream", "stdout", job_id).out == "".join(
        f"out| {line}\n" for line in numbers(2401, 3000).split()
    )
    logs = cli.json("show", "run", job_id, "1")["logs"]
    assert (logs["index_version"], logs["integrity"], logs["stderr_size"]) == (2, "valid", 2)
    directory = cli.state / "logs" / job_id / "1"
    assert {path.stat().st_size for path in directory.glob("stdout*.log")} == {1024, len(numbers(1, 3000)) % 1024}
    (directory / "stdout.000002.log").unlink()
    for words in ((), ("--stream", "stderr"), ("--follow",), ("--prefix",)):
        cli.refuses("logs", *words, job_id, status=1, says="stdout.000002.log of run 1, which began at byte 1024")


def test_a_target_that_fills_its_segments_goes_on_and_succeeds(cli: Cli) -> None:
    """J.3: the cap ends the record of both streams, not the run."""
    script = "seq 1 300; echo err >&2; echo >done"
    job_id = cli.finish("sh", "-c", script, flags=("--log-segment-bytes", "100", "--log-segments", "2"))
    assert (cli.cwd / "done").exists()
    run = cli.json("show", job_id)["runs"][0]
    logs = run["logs"]
    assert (run["outcome"], logs["integrity"], logs["recording_health"]) == ("success", "partial", "degraded")
    assert (logs["diagnostic_code"], logs["stdout_size"]) == ("log_capture_degraded", 200)
    assert run["diagnostic"].startswith("stdout filled its 2 segments of 100 bytes; ")
    assert cli("logs", job_id) == (0, numbers(1, 300)[:200], "", numbers(1, 300)[:200].encode())


def test_only_the_streams_that_were_asked_for_are_recorded(cli: Cli) -> None:
    for captured, lines in (("stdout", ["out| o"]), ("none", []), ("both", ["err| e", "out| o"])):
        script = "echo o; echo e >&2"
        job_id = cli.finish("sh", "-c", script, flags=("--log-capture", captured, "--log-retention", "unlimited"))
        assert sorted(cli("logs", "--prefix", job_id).out.splitlines()) == lines
        document = cli.json("show", job_id)
        assert document["runs"][0]["logs"]["recording_health"] == "healthy"
        assert document["specification"]["execution_policy"]["log_retention_unlimited"] is True


# --- Lines under labels ---------------------------------------------------------------------------------------------

TORN = f"echo >>n; printf a; printf 'x\\ny' >&2; {HELD}; echo b; printf tail$(wc -l <n); exit 1"


def test_lines_are_labelled_with_time_and_stream_whole_and_by_run(cli: Cli) -> None:
    """A.16, D45."""
    job_id = cli.run("sh", "-c", TORN, flags=("--retries", "1"))
    with cli.command("logs", "-f", "--all", "--prefix", job_id) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"==> run 1 <==\n"
        assert follower.stdout.readline() == b"err| x\n"
        (cli.cwd / "go").touch()
        rest = follower.stdout.read().decode()
    second = cli("logs", "--prefix", job_id).out
    assert sorted(second.splitlines()) == ["err| x", "err| y", "out| ab", "out| tail2"]
    assert cli("logs", "--prefix", "--all", job_id).out == f"==> run 1 <==\nerr| x\n{rest}"
    assert rest.endswith(f"\n==> run 2 <==\n{second}")
    assert cli("logs", "--prefix", "--all", "-n", "6", job_id).out.endswith(f"\n==> run 2 <==\n{second}")
    run = cli.json("show", job_id)["runs"][1]
    for line in cli("logs", "--timestamps", "--prefix", job_id).out.splitlines():
        stamp, _, text = line.partition(" ")
        assert text in second
        assert run["reserved_at"][:19] <= stamp[:19] <= run["completed_at"][:19]
        assert stamp.endswith("Z")
