"""Configuration through the installed command (contract, A.0, C.1, K.1 and K.7; D9 and D16)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobman.config.load import load
from jobman.testing import FakeClock
from tests.support import Cli, check_document, installed_command

VARIABLE = "JOBMAN_CONCURRENCY_MAX_ACTIVE_SLOTS"
TRUE = ("--", "true")
JOB = """\
job_specs: {said: {command: [sh, -c, 'echo $SAID$MORE'], name: said}}
profiles: {louder: {job_spec: said, overrides: {environment: {set: {MORE: '!'}}}}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of a configuration file that does not exist yet."""
    return tmp_path / "jobman.yml"


def user_file(cli: Cli) -> Path:
    """Return the path of the user's file, its directory made."""
    path = Path(cli.environment["HOME"]) / ".config" / "jobman" / "jobman.yml"
    path.parent.mkdir(parents=True)
    return path


def imported(stderr: str) -> set[str]:
    """Return the modules that an interpreter has loaded, as PYTHONPROFILEIMPORTTIME tells."""
    return {line.rpartition("|")[2].strip() for line in stderr.splitlines() if line.startswith("import time:")}


def test_config_alone_explains_itself_and_makes_no_store(cli: Cli) -> None:
    assert cli("config").out == cli("help", "config").out
    assert not cli.state.exists()


def test_a_subcommand_that_is_not_there_is_refused(cli: Cli) -> None:
    """D16."""
    cli.refuses("config", "bogus", status=2, says="config: unknown command 'bogus'")
    cli.refuses("config", "apply", "x", status=2, says="config apply: accepts 0 arg(s), received 1")
    assert not cli.state.exists()


def test_apply_counts_the_sources_of_which_the_defaults_are_one(cli: Cli, file: Path) -> None:
    assert cli("config", "apply").out == "applied\t1 sources\n"
    file.write_text("")
    assert cli("config", "apply", "--config", str(file)).out == "applied\t2 sources\n"
    user_file(cli).write_text("concurrency: {pools: {gpu: 1}}\n")
    assert cli("--config", str(file), "config", "apply").out == "applied\t3 sources\n"
    cli.environment[VARIABLE] = "4"
    assert cli("config", "apply", "--config", str(file)).out == "applied\t4 sources\n"


def test_a_limit_that_run_has_read_holds_for_later_jobs_too(cli: Cli, file: Path) -> None:
    """D9: ``run`` states what its configuration states, and what it does not state stays."""
    file.write_text("concurrency: {pools: {gpu: 2}}\n")
    cli.finish("true", flags=("--config", str(file), "--pool", "gpu"))
    cli.finish("true", flags=("--pool", "gpu", "--slots", "2"))

    cli.refuses("run", "--pool", "gpu", "--slots", "3", *TRUE, status=5, says="3 slots never fit into pool gpu")


def test_apply_takes_away_what_is_not_stated(cli: Cli, file: Path) -> None:
    """D9."""
    file.write_text("concurrency: {max_active_slots: 2, pools: {gpu: 1}}\n")
    cli("config", "apply", "--config", str(file))
    cli.refuses("run", "--slots", "3", *TRUE, status=5, says="3 slots never fit into the store-wide limit")

    cli("config", "apply")

    cli.refuses("run", "--pool", "gpu", *TRUE, status=5, says="there is no pool 'gpu'")
    cli.finish("true", flags=("--slots", "3"))


def test_a_pool_in_use_is_not_taken_away(cli: Cli, file: Path) -> None:
    """D16: a conflict is one, status 5."""
    file.write_text("concurrency: {pools: {gpu: 1}}\n")
    job = cli.run("sleep", "60", flags=("--config", str(file), "--pool", "gpu"))
    cli.await_phase(job, "running")

    cli.refuses("config", "apply", status=5, says=f"pool gpu cannot be changed: it is in use (job {job})")

    cli("cancel", "--wait", job)
    cli("config", "apply")


def test_a_limit_below_what_is_queued_is_refused_and_the_job_goes_on(cli: Cli, file: Path) -> None:
    file.write_text("concurrency: {pools: {gpu: 2}}\n")
    held = cli.run("sleep", "60", flags=("--config", str(file), "--pool", "gpu"))
    cli.await_phase(held, "running")
    wide = cli.run("true", flags=("--pool", "gpu", "--slots", "2"))
    cli.await_phase(wide, "queued")
    file.write_text("concurrency: {pools: {gpu: 1}}\n")

    cli.refuses("config", "apply", "--config", str(file), status=5, says=f"1 slot would be too few (job {wide})")
    cli.refuses("run", "--config", str(file), *TRUE, status=5, says=f"1 slot would be too few (job {wide})")

    cli("cancel", "--wait", held)
    assert cli.wait(wide) == "success"


def test_the_variable_wins_over_the_files(cli: Cli, file: Path) -> None:
    file.write_text("concurrency: {max_active_slots: 1}\n")
    cli.environment[VARIABLE] = "2"

    cli.finish("true", flags=("--config", str(file), "--slots", "2"))

    cli.refuses("run", "--config", str(file), "--slots", "3", *TRUE, status=5, says="the store-wide limit")


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_a_variable_that_is_not_understood_is_refused_and_nothing_is_stored(cli: Cli, value: str) -> None:
    cli.environment[VARIABLE] = value

    for words in (("run", *TRUE), ("config", "apply")):
        cli.refuses(*words, status=2, says=f"invalid configuration: {VARIABLE}: expected a number of slots from 1")

    assert cli.has_no_job()


def test_a_variable_that_is_given_twice_is_refused(cli: Cli) -> None:
    """K.7, O.64: which one is meant?"""
    program = "import ctypes, sys; words = [word.encode() for word in sys.argv[1:]]; at = words.index(b'')"
    program += "; array = lambda found: (ctypes.c_char_p * (len(found) + 1))(*found, None)"
    program += "; ctypes.CDLL(None).execve(words[0], array(words[:at]), array(words[at + 1:]))"
    settings = [f"{name}={value}" for name, value in cli.environment.items()]
    words = [installed_command(), "config", "apply", "", *settings, f"{VARIABLE}=1", f"{VARIABLE}=2"]

    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr == f"invalid configuration: {VARIABLE}: is given twice in the environment\n"


def test_a_file_that_is_not_there_is_a_failure_and_its_content_a_mistake(cli: Cli, file: Path) -> None:
    """C: 1 and 2."""
    for words in (("run", *TRUE), ("config", "apply")):
        file.unlink(missing_ok=True)
        cli.refuses("--config", str(file), *words, status=1, says=f"{file}: no such file or directory")
        cli.refuses("--config", str(file.parent), *words, status=1, says="is a directory")
        file.write_text("concurrency:\n  pools:\n    gpu: many\n")
        cli.refuses(
            "--config",
            str(file),
            *words,
            status=2,
            says=f"{file}:3:10: concurrency.pools.gpu: expected a number of slots",
        )

    assert cli.has_no_job()


def test_run_loads_the_yaml_reader_only_for_a_file(cli: Cli, file: Path) -> None:
    """C1: without a file, configuration costs two stat calls."""
    cli.environment["PYTHONPROFILEIMPORTTIME"] = "1"

    without = imported(cli("run", *TRUE).err)
    file.write_text("")
    with_one = imported(cli("run", "--config", str(file), *TRUE).err)

    assert "jobman.config.load" in without
    assert "yaml" not in without
    assert "yaml" in with_one
    del cli.environment["PYTHONPROFILEIMPORTTIME"]
    for job in cli.json("list", "--all")["jobs"]:
        cli.wait(job["id"])


def test_run_loads_nothing_of_the_kind_for_a_file_that_has_not_changed(cli: Cli, file: Path) -> None:
    """Performance: a configuration costs under 3 ms; pydantic alone would cost ten times that."""
    file.write_text(f"{JOB}redaction: {{patterns: ['sk-[0-9]+']}}\nconcurrency: {{max_active_slots: 4}}\n")
    cli("list")
    # As if it had been written long ago.
    load(str(file), str(cli.state), FakeClock())
    cli.environment["PYTHONPROFILEIMPORTTIME"] = "1"

    done = cli("run", "--config", str(file), "--job-spec", "said", "--profile", "louder")

    assert not imported(done.err) & {"yaml", "pydantic", "re2", "json", "typing", "jobman.config.read"}
    del cli.environment["PYTHONPROFILEIMPORTTIME"]
    assert cli.wait(done.out.strip()) == "success"


def test_a_job_of_the_configuration_runs_with_its_secret_which_is_nowhere_else(cli: Cli, file: Path) -> None:
    """D24, K.6, O.58: looked up before each run; not in the store, not in what is printed."""
    key = file.with_name("key")
    key.write_text("hunter2")
    key.chmod(0o600)
    file.write_text(f"{JOB}secrets: {{key: 'file:{key}', gone: env:GONE}}\n")
    flags = ("--config", str(file), "--job-spec", "said")
    job = cli("run", *flags, "--secret-env", "SAID=key", "--wait").out.strip()

    assert cli("logs", job).out == "hunter2\n"
    spec = cli.json("show", job)["specification"]
    assert (spec["name"], spec["execution_policy"]["secret_environment"]) == ("said", {})
    for path in cli.state.glob("jobman.db*"):
        assert b"hunter2" not in path.read_bytes()

    job = cli("run", *flags, "--profile", "louder", "--secret-env", "SAID=gone", "--wait", status=1).out.strip()
    said = "secret missing: variable GONE, for SAID, is not set"
    assert cli("status", job).out.rstrip().endswith(f"\tfailure\t{said}")
    run = cli.json("show", "run", job, "1")
    assert (run["outcome"], run["diagnostic_code"], run["diagnostic"]) == ("start_failed", "secret_unavailable", said)
    cli.environment["GONE"] = "found"
    job = cli("run", *flags, "--profile", "louder", "--secret-env", "SAID=gone", "--wait").out.strip()
    assert cli("logs", job).out == "found!\n"


def test_a_probe_of_the_configuration_gets_its_own_secret(cli: Cli, file: Path) -> None:
    """K.6: from the submitter's environment, also where the job does without; one that is missing is an error."""
    file.write_text(
        "secrets: {key: env:KEY, gone: env:GONE}\nwait_conditions:\n"
        "  open: {type: probe, probe: {command: [sh, -c, 'test $K = 7'], environment: {secrets: {K: key}}}}\n"
        "  shut: {type: probe, probe: {command: ['true'], fatal_on_error: true, environment: {secrets: {K: gone}}}}\n"
    )
    cli.environment["KEY"] = "7"
    flags = ("--config", str(file), "--unset-env", "KEY", "--wait")

    job = cli("run", *flags, "--wait-condition", "open", "--", "sh", "-c", "echo $KEY$K").out.strip()
    assert cli("logs", job).out == "\n"
    job = cli("run", *flags, "--wait-condition", "shut", *TRUE, status=1).out.strip()
    assert cli("status", job).out.split("\t")[3] == "aborted"


def test_what_must_not_be_shown_is_shown_nowhere_but_in_the_logs(cli: Cli, file: Path) -> None:
    """K.8, C.1."""
    file.write_text("redaction: {names: [reason], patterns: ['sk-[0-9]+']}\nredacted: 1\n")
    user = user_file(cli)
    user.write_text("redaction: {names: [executable], patterns: ['sk-[0-9]+']}\n")
    job = cli.finish("sh", "-c", "echo sk-1234", flags=("--name", "sk-1234", "--env", "A=sk-1234"))

    assert cli("logs", job).out == "sk-1234\n"
    for words in (("list",), ("status", job), ("show", job)):
        for form in ((), ("--json",)):
            out = cli(*words, *form).out
            assert "[REDACTED]" in out
            assert "1234" not in out.replace(job, "")
    assert cli.json("show", job)["specification"]["executable"] == "[REDACTED]"
    for line in (("show", "sk"), ("list", "--name", "sk"), ("rerun", job)):
        assert "1234" not in cli("__complete", *line).out.replace(job, "")
    assert cli("__complete", "show", job).out == f"{job}\tsuccess\n:4\n"
    for form in ((), ("--json",)):
        assert "sk-77" not in cli("doctor", "--state-dir", "sk-77", *form).out
    (cli.cwd / "sk-11").write_text("notifiers: {sk-12: {type: command, command: {command: [/x]}, budget: 1ms}}\n")
    done = cli("config", "validate", "sk-11")
    assert done.err.startswith("warning: notifiers.[REDACTED]: ")
    assert "explicit\t[REDACTED]\n" in cli("config", "paths", "--config", "sk-11").out
    assert "[REDACTED]" in cli.refuses("status", "sk-99", status=3)
    assert "[REDACTED]" in cli.refuses("run", "--sk-99", *TRUE, status=2)
    # Broken, it hides what the built-in keys hide, and keeps nobody from working.
    assert "sk-1234" in cli("--config", str(file), "list").out


def test_show_paths_validate_and_schema_need_no_store(cli: Cli, file: Path) -> None:
    user = user_file(cli)
    file.write_text(f"{JOB}secrets: {{key: env:KEY}}\ntrusted_project_roots: ['{cli.cwd.resolve()}']\n")
    project = cli.cwd.resolve() / ".jobman.yml"
    project.write_text("concurrency: {pools: {gpu: 1}}\n")
    config = ("--config", str(file))

    paths = f"system\t/etc/jobman/jobman.yml\nuser\t{user}\n"
    assert cli("config", "paths").out == paths
    assert cli("config", "paths", *config).out == f"{paths}explicit\t{file}\nproject\t{project}\n"
    assert cli("config", "validate", str(file)).out == "valid\t3 sources\n"
    cli.refuses("config", "validate", str(file), *config, status=2, says="PATH and --config exclude each other")
    shown = check_document("config-show", cli("config", "show", *config).out)
    assert (shown["secrets"], shown["concurrency"]["pools"]) == ({}, {"gpu": 1})
    origins = check_document("config-show-origins", cli("config", "show", "--origins", *config).out)["origins"]
    assert origins["concurrency.pools.gpu"] == {"kind": "project", "name": "project", "path": str(project)}
    assert origins["secrets.key"] == {}
    assert "job_specs" in json.loads(cli("config", "schema").out)["properties"]
    user.write_text("nonsense: 1\n")
    cli.refuses("config", "show", status=2, says=f"{user}:1:1: nonsense: unknown key")
    assert not cli.state.exists()


def test_an_empty_home_has_no_configuration(cli: Cli) -> None:
    """Field case 14."""
    cli.environment["HOME"] = ""

    assert cli("config", "apply").out == "applied\t1 sources\n"
