"""``jobman run``: what is printed, what each flag of submission does, what the target gets (contract, A.2; C.1)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.support import Cli, eventually, installed_command

ID_LINE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n")
PRINT_ARGUMENTS = ("sh", "-c", 'printf "%s\\0" "$@"', "sh")


def specification(cli: Cli, job_id: str) -> dict[str, object]:
    """Return the specification of a job as ``show`` prints it."""
    found: dict[str, object] = cli.json("show", job_id)["specification"]
    return found


# --- What is printed ------------------------------------------------------------------------------------------------


def test_run_prints_the_id_and_nothing_else(cli: Cli) -> None:
    done = cli("run", "--", "true")
    assert ID_LINE.fullmatch(done.out)
    assert done.err == ""
    assert cli.wait(done.out.strip()) == "success"


def test_a_command_runs_to_success_and_leaves_its_record(cli: Cli) -> None:
    job_id = cli.finish("sh", "-c", "echo hello; echo oops >&2")

    detail = cli.json("show", job_id)

    assert detail["summary"]["outcome"] == "success"
    assert detail["runs"][0]["exit"]["exit_code"] == 0
    assert cli("logs", "--stream", "stdout", job_id).out == "hello\n"
    assert cli("logs", "--stream", "stderr", job_id).out == "oops\n"


@pytest.mark.parametrize(
    ("flags", "command", "status"),
    [
        ((), "exit 0", 0),
        ((), "exit 42", 1),
        (("--exit-code",), "exit 0", 0),
        (("--exit-code",), "exit 42", 42),
        (("--exit-code",), "kill -KILL $$", 128 + 9),
        (("--exit-code", "--success-exit-code", "3"), "exit 3", 3),
        (("--exit-code", "--run-timeout", "100ms"), "exec sleep 600", 1),
    ],
)
def test_wait_returns_how_the_job_ended(cli: Cli, flags: tuple[str, ...], command: str, status: int) -> None:
    """D37."""
    done = cli("run", "--wait", *flags, "--", "sh", "-c", command, status=status)
    assert ID_LINE.fullmatch(done.out)
    outcome = cli.json("status", done.out.strip())["outcome"]
    said = "" if outcome == "success" else f"job {done.out.strip()} completed with outcome {outcome}\n"
    assert done.err == said


def test_the_exit_code_is_one_where_no_target_has_started(cli: Cli) -> None:
    done = cli("run", "--wait", "--exit-code", "--", "no-such-program", status=1)
    job_id = done.out.strip()
    assert cli.json("status", job_id)["reason"] == "executable 'no-such-program' was not found in PATH"
    run = cli.json("show", "run", job_id, "-1")
    assert run["outcome"] == "start_failed"
    assert run["diagnostic_code"] == "executable_not_found"
    assert (run["logs"]["integrity"], run["logs"]["recording_health"]) == ("valid", "healthy")


# --- Identity and place ---------------------------------------------------------------------------------------------


def test_name_groups_and_tags_are_recorded_and_sorted(cli: Cli) -> None:
    labels = ("--group", "z", "--group", "a b", "--tag", "é", "--tag", "a,b")
    job_id = cli.finish("true", flags=("--name", "first", "--name", "Näme, with comma", *labels))
    spec = cli.json("show", job_id)["specification"]
    assert spec["name"] == "Näme, with comma"
    assert spec["execution_policy"]["groups"] == ["a b", "z"]
    assert spec["execution_policy"]["tags"] == ["a,b", "é"]
    assert cli("status", "Näme, with comma").out.split("\t")[:2] == [job_id, "Näme, with comma"]


@pytest.mark.parametrize(
    ("flags", "directory"),
    [((), "."), (("--cwd", "in/../in"), "in"), (("--cwd", "/../usr//"), "/usr"), (("--cwd", "//usr"), "/usr")],
)
def test_the_working_directory_is_made_absolute_and_clean(cli: Cli, flags: tuple[str, ...], directory: str) -> None:
    (cli.cwd / "in").mkdir()
    job_id = cli.finish("pwd", flags=flags)
    expected = os.path.normpath(cli.cwd / directory)
    assert specification(cli, job_id)["working_directory"] == expected
    assert cli("logs", job_id).out == f"{expected}\n"


def test_a_directory_that_is_missing_at_the_start_fails_the_run_with_that_reason(cli: Cli) -> None:
    """D24; field case 16: it need not exist at submission, and it may vanish before the start."""
    gone = cli.cwd / "gone"
    job_id = cli.finish("pwd", flags=("--cwd", "gone"))
    run = cli.json("show", "run", job_id, "1")
    assert run["outcome"] == "start_failed"
    assert run["diagnostic_code"] == "working_directory_missing"
    assert run["diagnostic"] == f"directory '{gone}' does not exist"
    assert cli("status", job_id).out.endswith(f"\tcompleted\tfailure\tdirectory '{gone}' does not exist\n")
    assert f"directory '{gone}' does not exist" in cli("show", job_id).out


def test_a_directory_that_vanishes_while_the_job_waits_fails_it_at_its_start(cli: Cli) -> None:
    """Field case 16."""
    place = cli.cwd / "place"
    place.mkdir()
    first = cli.run("sh", "-c", "until [ -e go ]; do sleep 0.01; done")
    late = cli.run("pwd", flags=("--after-success", first), cwd=place)
    place.rmdir()
    (cli.cwd / "go").touch()
    assert cli.wait(late) == "failure"
    assert cli.json("status", late)["reason"] == f"directory '{place}' does not exist"


def test_a_deleted_current_directory_stops_run_and_nothing_else(cli: Cli) -> None:
    """Field case 16: the message blames the directory, not the job."""
    job_id = cli.finish("echo", "kept")
    place = cli.cwd / "place"
    place.mkdir()
    script = 'rmdir ../place; "$0" list && "$0" logs $1 && "$0" cancel $1 && "$0" run -- true'
    words = ("sh", "-c", script, installed_command(), job_id)
    done = subprocess.run(words, cwd=place, env=cli.environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.endswith(f"kept\n{job_id}\tcompleted\n")
    assert done.stderr.startswith("the current directory cannot be used")
    assert done.stderr.count("\n") == 1
    assert len(cli.json("list")["jobs"]) == 1


def test_an_absolute_directory_makes_a_deleted_current_one_unimportant(cli: Cli) -> None:
    place = cli.cwd / "place"
    place.mkdir()
    words = ("sh", "-c", 'rmdir ../place; "$0" run --wait --cwd / -- pwd', installed_command())
    done = subprocess.run(words, cwd=place, env=cli.environment, capture_output=True, text=True, check=True)
    assert cli("logs", done.stdout.strip()).out == "/\n"


def test_nothing_is_guessed_from_odd_paths(cli: Cli) -> None:
    """Field case 37."""
    place = cli.cwd / "jobman bun sh" / "-c"
    place.mkdir(parents=True)
    program = place / "my python script.sh"
    program.write_text("#!/bin/sh\necho $#; exec sleep 600\n")
    program.chmod(0o755)
    job_id = cli.run("./my python script.sh", "a b", cwd=place)
    eventually(lambda: cli("logs", job_id, status=None).out == "1\n")
    assert cli.json("show", "run", job_id, "1")["resolved_executable"] == str(program)
    cli("cancel", "--wait", job_id)
    assert cli.json("status", job_id)["outcome"] == "cancelled"


# --- Environment ----------------------------------------------------------------------------------------------------


def test_variables_are_set_and_removed_and_the_others_come_from_the_submitter(cli: Cli) -> None:
    """D.3; the value may hold anything, an ``=``, a comma, a newline, bytes that are not UTF-8."""
    flags = ("--env", "A=old", "--env", "A=x=y,\nz", "--env", "EMPTY=", "--unset-env", "GONE", "--unset-env", "NEVER")
    given = cli.environment | {"GONE": "1", "KEPT": "a\nb", "RAW": os.fsdecode(b"\377")}
    job_id = cli.finish("env", "-0", flags=flags, env=given)
    found = dict(pair.partition(b"=")[::2] for pair in cli("logs", job_id).raw.split(b"\0") if pair)
    assert found[b"A"] == b"x=y,\nz"
    assert found[b"EMPTY"] == b""
    assert found[b"KEPT"] == b"a\nb"
    assert found[b"RAW"] == b"\377"
    assert b"GONE" not in found
    assert found[b"JOBMAN_STATE_DIR"] == os.fsencode(cli.state)
    environment = cli.json("show", job_id)["specification"]["environment"]
    assert environment["set"] == {"A": "x=y,\nz", "EMPTY": ""}
    assert environment["unset"] == ["GONE", "NEVER"]


def test_a_job_does_not_eat_the_input_of_the_loop_that_submits_it(cli: Cli) -> None:
    """Field case 12."""
    script = 'seq 5 | while read n; do "$0" run --name n$n -- sh -c "cat; echo got"; done'
    words = ("sh", "-c", script, installed_command())
    done = subprocess.run(words, env=cli.environment, capture_output=True, text=True, check=True)
    job_ids = done.stdout.split()
    assert len(job_ids) == 5
    cli("wait", *job_ids)
    assert [cli("logs", job_id).out for job_id in job_ids] == ["got\n"] * 5


# --- Arguments ------------------------------------------------------------------------------------------------------

ODD_ARGUMENTS: tuple[str | bytes, ...] = (
    "a b",
    'it\'s "quoted"',
    "two\nlines\n",
    "$HOME `id` $(id) \\",
    "",
    "-x",
    "--name",
    "--",
    "é😀",
    b"\xff\xfe\xc1 not UTF-8",
    "\x1b]0;title\x07",
    "",
)


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "oops"])
def test_arguments_arrive_byte_for_byte(cli: Cli, locale: str) -> None:
    job_id = cli.finish(*PRINT_ARGUMENTS, *ODD_ARGUMENTS, env=cli.environment | {"LC_ALL": locale})
    sent = b"".join((word if isinstance(word, bytes) else word.encode()) + b"\0" for word in ODD_ARGUMENTS)
    assert cli("logs", job_id).raw == sent
    shown = cli.json("show", job_id)["specification"]["arguments"][3:]
    assert shown[9] == "\ufffd\ufffd\ufffd not UTF-8"
    assert shown[:9] == list(ODD_ARGUMENTS[:9])


def test_the_longest_argument_of_the_system_arrives(cli: Cli) -> None:
    """Field case 26: the kernel takes 128 KiB for one argument."""
    job_id = cli.finish(*PRINT_ARGUMENTS, "a" * 131_000)
    assert cli("logs", job_id).raw == b"a" * 131_000 + b"\0"


def test_a_program_is_looked_for_in_the_path_of_its_own_environment(cli: Cli) -> None:
    tools = cli.cwd / "tools"
    tools.mkdir()
    shutil.copy("/bin/echo", tools / "only-here")
    job_id = cli.finish("only-here", "found", flags=("--env", f"PATH={tools}"))
    assert cli("logs", job_id).out == "found\n"
    assert cli.json("show", "run", job_id, "1")["resolved_executable"] == f"{tools}/only-here"


# --- Exit codes and retries -----------------------------------------------------------------------------------------


def counting(command: str) -> tuple[str, str, str]:
    """Return a target that counts its runs in the file ``n``, then does ``command``."""
    return ("sh", "-c", f"echo >>n; n=$(wc -l <n); {command}")


@pytest.mark.parametrize(
    ("flags", "command", "ends"),
    [
        (("--retries", "2"), "exit 7", (["failure"] * 3, "failure_limit")),
        (("--retries", "0x2"), "[ $n = 2 ]", (["failure", "success"], "success_target")),
        (("--retries", "2", "--retryable-exit-code", "7,8"), "exit 9", (["failure"], "non_retryable_failure")),
        (
            ("--retries", "2", "--retryable-exit-code", "7", "--retryable-exit-code", "8"),
            "exit $((6 + n))",
            (["failure"] * 3, "non_retryable_failure"),
        ),
        (("--retries", "1", "--success-exit-code", "3,4"), "exit $((3 + n))", (["success"], "success_target")),
        # E.2: without a list every exit but success and 0 is retryable.
        (("--retries", "1", "--success-exit-code", "3"), "exit 0", (["failure"], "non_retryable_failure")),
    ],
)
def test_runs_follow_until_the_policy_is_content(
    cli: Cli, flags: tuple[str, ...], command: str, ends: tuple[list[str], str]
) -> None:
    """H.3; O.48: the exit code stays a fact, whatever it counts as."""
    outcomes, reason = ends
    job_id = cli.finish(*counting(command), flags=flags)
    detail = cli.json("show", job_id)
    assert [run["outcome"] for run in detail["runs"]] == outcomes
    assert [run["number"] for run in detail["runs"]] == list(range(1, len(outcomes) + 1))
    assert detail["runtime"]["waiting_reason"] == reason
    assert detail["runtime"]["run_count"] == len(outcomes)
    assert detail["summary"]["outcome"] == outcomes[-1]


def test_a_retry_waits_for_its_delay_and_says_so(cli: Cli) -> None:
    """D36; the delay is elapsed time, never less than asked for."""
    job_id = cli.run("sh", "-c", "exit 5", flags=("--retries", "1", "--retry-delay", "1w"))
    cli.await_phase(job_id, "backoff")
    summary = cli.json("status", job_id)
    assert "exit 5" in summary["reason"]
    assert summary["reason_code"] == "next_run"
    assert "next_run_at" in cli.json("show", job_id)["runtime"]
    cli("cancel", "--wait", job_id)

    quick = cli.finish("sh", "-c", "exit 5", flags=("--retries", "1", "--retry-delay", "300ms"))
    first, second = cli.json("show", quick)["runs"]
    assert first["completed_at"] < second["reserved_at"]


def test_python_minus_m_is_the_same_command(cli: Cli) -> None:
    words = (sys.executable, "-m", "jobman", "run", "--wait", "--", "true")
    done = subprocess.run(words, cwd=cli.cwd, env=cli.environment, capture_output=True, text=True, check=True)
    assert ID_LINE.fullmatch(done.stdout)
