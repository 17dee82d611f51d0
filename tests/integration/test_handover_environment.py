"""The target's environment is the submitter's, byte for byte, plus what names the run (D34; field cases 27, 28)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.faults.injection import owner_of, rows
from tests.support import Cli, installed_command

Environment = Mapping[bytes, bytes]
DUMP = ["/usr/bin/env", "-0"]


def submitted(cli: Cli, environment: Environment, *flags: str, python: str = "") -> str:
    """Submit a job that prints its environment, from exactly ``environment``; return its ID."""
    command = [python, "-I", "-m", "jobman"] if python else [installed_command()]
    argv = [*command, "run", "--state-dir", str(cli.state), *flags, "--", *DUMP]
    done = subprocess.run(argv, env=environment, cwd=cli.cwd, capture_output=True, check=False, timeout=15)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().strip()


def environment_of(cli: Cli, job_id: str) -> dict[bytes, bytes]:
    """What the target of ``submitted`` saw."""
    assert cli.wait(job_id) == "success"
    dump = cli("logs", "--stream", "stdout", "--raw", job_id).raw
    entries = dump.removesuffix(b"\0").split(b"\0")
    found = dict(entry.partition(b"=")[::2] for entry in entries)
    assert len(found) == len(entries), "a name came twice"
    return found


def marks(cli: Cli, job_id: str, name: str = "", number: int = 1) -> dict[bytes, bytes]:
    """D34: what a run is named by."""
    query = "SELECT id FROM runs WHERE job_id = ? AND number = ?"
    ((run_id,),) = rows(cli.state, query, job_id, number)
    named = {"JOBMAN_JOB_NAME": name} if name else {}
    found = {
        "JOBMAN_STATE_DIR": str(cli.state),
        "JOBMAN_JOB_ID": job_id,
        "JOBMAN_RUN_ID": run_id,
        "JOBMAN_RUN_NUMBER": str(number),
        **named,
    }
    return {key.encode(): value.encode() for key, value in found.items()}


ODD: dict[str, dict[bytes, bytes]] = {
    "nothing at all": {},
    "locale C": {b"LC_ALL": b"C"},
    "locale C by LANG": {b"LANG": b"C"},
    "locale POSIX": {b"LC_CTYPE": b"POSIX"},
    "unknown locale": {b"LC_ALL": b"oops"},
    "coerced locale as given": {b"LC_CTYPE": b"C.UTF-8"},
    "UTF-8 mode": {b"PYTHONUTF8": b"1", b"LC_ALL": b"C"},
    "no UTF-8 mode": {b"PYTHONUTF8": b"0", b"LC_ALL": b"C", b"PYTHONCOERCECLOCALE": b"0"},
    "coercion warned of": {b"PYTHONCOERCECLOCALE": b"1"},
    "newlines": {b"TEXT": b"one\ntwo\n", b"X": b"\nY=2"},
    "not UTF-8": {b"BYTES": b"\xff\xfe\xc1", b"\xff": b"name"},
    "a name with a space": {b"A B": b"1"},
    "empty values and equals signs": {b"EMPTY": b"", b"EQ": b"=a=b="},
    "an exported shell function": {b"BASH_FUNC_f%%": b'() {  echo "hi\nthere"\n}'},
    "long": {b"LONG": b"x" * 100_000},
    "no place for files": {b"TMPDIR": b"/nonexistent", b"HOME": b"/nonexistent"},
    "interpreter options": {b"PYTHONDONTWRITEBYTECODE": b"1", b"PYTHONSAFEPATH": b"1", b"PYTHONHASHSEED": b"0"},
    "names of ours that are no marks": {b"JOBMAN_SUPERVISE": b"x", b"JOBMAN": b"y"},
}


@pytest.mark.parametrize("environment", ODD.values(), ids=ODD.keys())
def test_a_target_gets_exactly_its_submitters_environment(cli: Cli, environment: Environment) -> None:
    """D34 and the traps of differences: nothing added (no ``LC_CTYPE``), nothing lost, nothing re-encoded."""
    job_id = submitted(cli, environment)

    assert environment_of(cli, job_id) == {**environment, **marks(cli, job_id)}


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({b"PYTHONPATH": b"/nonexistent:/dev/null"}, id="PYTHONPATH"),
        pytest.param({b"PYTHONHOME": b"/nonexistent"}, id="PYTHONHOME"),
        pytest.param({b"PYTHONSTARTUP": b"/nonexistent", b"PYTHONINSPECT": b"1"}, id="PYTHONINSPECT"),
        pytest.param({b"PYTHONPLATLIBDIR": b"odd", b"PYTHONVERBOSE": b"1"}, id="PYTHONVERBOSE"),
        pytest.param(
            {b"PYTHONMALLOC": b"debug", b"PYTHONWARNINGS": b"error", b"PYTHONDEVMODE": b"1"}, id="PYTHONDEVMODE"
        ),
        pytest.param({b"PYTHONIOENCODING": b"ascii:strict", b"PYTHONLEGACYWINDOWSSTDIO": b"1"}, id="PYTHONIOENCODING"),
    ],
)
def test_settings_of_the_interpreter_reach_the_target_and_not_the_supervisor(
    cli: Cli, environment: Environment
) -> None:
    """Architecture, Supervisor process: it is isolated; the client is so here too, for these would break it first."""
    job_id = submitted(cli, environment, python=sys.executable)

    assert environment_of(cli, job_id) == {**environment, **marks(cli, job_id)}


def test_a_named_job_knows_its_name(cli: Cli) -> None:
    """D34."""
    job_id = submitted(cli, {}, "--name", "näme with spaces")

    assert environment_of(cli, job_id) == marks(cli, job_id, "näme with spaces")


def test_every_run_has_marks_of_its_own(cli: Cli) -> None:
    """D34: run ID and number change with each retry."""
    script = 'echo "$JOBMAN_RUN_NUMBER $JOBMAN_RUN_ID"; exit 1'

    job_id = cli.finish("sh", "-c", script, flags=["--retries", "1"])

    for number in (1, 2):
        ((run_id,),) = rows(cli.state, "SELECT id FROM runs WHERE job_id = ? AND number = ?", job_id, number)
        assert cli("logs", "--run", str(number), "--stream", "stdout", job_id).out == f"{number} {run_id}\n"


def test_what_named_another_run_is_replaced(cli: Cli) -> None:
    """D40 and O.57: a submitter that is itself a target passes none of its marks on, set or not."""
    outer = {f"JOBMAN_{name}".encode(): b"outer" for name in ("JOB_ID", "JOB_NAME", "RUN_ID", "RUN_NUMBER")}

    job_id = submitted(cli, {**outer, b"JOBMAN_POOL": b"gpu", b"JOBMAN_SLOTS": b"0,1", b"JOBMAN_STATE_DIR": b"/other"})

    assert environment_of(cli, job_id) == marks(cli, job_id)


def test_flags_change_the_environment_and_cannot_change_the_marks(cli: Cli) -> None:
    """A.2, D34: removal, then assignment, then what the tree of a run is recognised by."""
    flags = ["--env", "NEW=a=b\n", "--env", "KEPT=new", "--env", "JOBMAN_RUN_ID=mine", "--unset-env", "GONE"]
    flags += ["--env", "JOBMAN_SUPERVISOR=mine"]

    job_id = submitted(cli, {b"KEPT": b"old", b"GONE": b"1", b"SAME": b"1"}, *flags)

    expected = {b"NEW": b"a=b\n", b"KEPT": b"new", b"SAME": b"1"}
    assert environment_of(cli, job_id) == {**expected, **marks(cli, job_id)}


def test_the_marker_of_supervisors_stays_with_them(cli: Cli) -> None:
    """Architecture, Environment: the supervisor carries ``JOBMAN_SUPERVISOR``, and nothing that names a run."""
    job_id = cli.run("sleep", "60")
    owner = owner_of(cli.state, job_id)
    assert owner is not None

    with open(f"/proc/{owner.identity.pid}/environ", "rb") as file:
        carried = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0") if entry)

    assert carried[b"JOBMAN_SUPERVISOR"] == job_id.encode()
    assert carried[b"JOBMAN_STATE_DIR"] == os.fsencode(cli.state)
    assert not carried.keys() & {b"JOBMAN_JOB_ID", b"JOBMAN_RUN_ID", b"JOBMAN_RUN_NUMBER", b"JOBMAN_JOB_NAME"}
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_an_exported_shell_function_works_in_the_job(cli: Cli) -> None:
    """Field case 27."""
    script = f"""f() {{ echo "hi
there"; }}; export -f f; {installed_command()} run --name fn -- bash -c f"""

    subprocess.run(["bash", "-c", script], env=cli.environment, cwd=cli.cwd, check=True, capture_output=True)

    assert cli.wait("fn") == "success"
    assert cli("logs", "--stream", "stdout", "fn").out == "hi\nthere\n"


def test_a_secret_in_the_environment_is_not_stored(cli: Cli) -> None:
    """Field case 28: what the submitter merely has is in no file of ours."""
    secret = b"s3cr3t-0f-the-subm1tter"

    submitted(cli, {b"TOKEN": secret}, "--name", "quiet")

    cli.wait("quiet")
    logs = cli.state / "logs"
    holders = [path for path in cli.state.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert [path for path in holders if logs not in path.parents] == []
