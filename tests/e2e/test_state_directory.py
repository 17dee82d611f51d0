"""Where jobs are kept: ``--state-dir``, the environment, defaults, and directories that cannot be used (D.2, D.5)."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import Cli, environment_without, installed_command, unprivileged

DEFAULT = ("JOBMAN_STATE_DIR", "XDG_STATE_HOME")


def run_and_read(cli: Cli, *where: str, **options: Any) -> None:
    """Run a job and read it back, always with the same words about the place."""
    job_id = cli("run", *where, "--wait", "--", "echo", "here", **options).out.strip()
    assert cli("logs", *where, job_id, **options).out == "here\n"
    assert cli(*where, "status", job_id, **options).out.split("\t")[0] == job_id


@pytest.mark.parametrize("name", ["a b", "what?", "a#b", "50%25", "é", "a;b&c", "'quoted\"", "-dash", ":memory:"])
def test_any_name_will_do(cli: Cli, name: str) -> None:
    run_and_read(cli, f"--state-dir={cli.cwd / name}")
    assert (cli.cwd / name / "jobman.db").is_file()
    assert not cli.state.exists()


def test_the_flag_stands_before_or_after_the_verb_and_may_be_relative(cli: Cli) -> None:
    run_and_read(cli, "--state-dir", "here/../there")
    job_id = cli("run", "--state-dir", "there", "--wait", "--", "true").out.strip()
    absolute = str(cli.cwd / "there")
    words = (("--state-dir", "there", "status", job_id), ("status", job_id, "--state-dir", absolute))
    assert len({cli(*each).out for each in words}) == 1
    assert (
        cli("show", "run", "--state-dir", "there", job_id, "-1", "--json").out.count(f'"{absolute}/logs/{job_id}') == 3
    )
    assert not cli.state.exists()
    cli.refuses("status", job_id, status=3)


def test_the_flag_wins_over_the_environment_and_that_over_the_defaults(cli: Cli, tmp_path: Path) -> None:
    home, xdg = tmp_path / "home", tmp_path / "xdg"
    bare = environment_without(cli.environment, *DEFAULT)
    for given, place in (
        (bare, home / ".local/state/jobman"),
        (bare | {"XDG_STATE_HOME": str(xdg)}, xdg / "jobman"),
        # A relative XDG_STATE_HOME does not count, says its specification.
        (bare | {"XDG_STATE_HOME": "relative"}, home / ".local/state/jobman"),
        (bare | {"JOBMAN_STATE_DIR": ""}, home / ".local/state/jobman"),
        (bare | {"XDG_STATE_HOME": str(xdg), "JOBMAN_STATE_DIR": str(tmp_path / "env")}, tmp_path / "env"),
    ):
        cli("list", env=given)
        assert (place / "jobman.db").is_file()
        shutil.rmtree(place)


def test_no_home_matters_only_when_it_is_needed(cli: Cli) -> None:
    """Field cases 14 and 15."""
    without_home = environment_without(cli.environment, "HOME", "XDG_RUNTIME_DIR")
    run_and_read(cli, env=without_home)
    for home in ("", "relative"):
        homeless = environment_without(cli.environment, *DEFAULT) | {"HOME": home}
        said = cli.refuses("list", env=homeless, status=1, says="there is no home directory")
        assert "JOBMAN_STATE_DIR" in said


def test_everything_is_private_from_the_start(cli: Cli) -> None:
    """D.4, field case 29; D12: an empty directory with another mode is repaired."""
    cli.state.mkdir(mode=0o755)
    cli.finish("echo", "hello", umask=0)
    for directory, _, files in os.walk(cli.state):
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o700, directory
        for name in files:
            assert stat.S_IMODE(os.stat(f"{directory}/{name}").st_mode) == 0o600, name


def test_a_directory_that_others_may_read_is_refused_with_advice(cli: Cli) -> None:
    job_id = cli.finish("true")
    cli.state.chmod(0o755)
    for words in (("list",), ("status", job_id), ("run", "--", "true"), ("cancel", job_id)):
        said = cli.refuses(*words, status=1, says=f"open job manager: state directory {cli.state}: ")
        assert "chmod 700" in said
    cli.state.chmod(0o700)
    assert [job["id"] for job in cli.json("list")["jobs"]] == [job_id]


def test_what_is_not_a_store_is_refused(cli: Cli, tmp_path: Path) -> None:
    plain = tmp_path / "file"
    plain.write_text("x")
    for place in (plain, plain / "below"):
        cli.refuses("list", "--state-dir", str(place), status=1, says=str(place))
        cli.refuses("run", "--state-dir", str(place), "--", "true", status=1, says=str(place))
    cli("list")
    (cli.state / "jobman.db").write_bytes(b"garbage" * 1_000)
    for words in (("list",), ("run", "--", "true")):
        cli.refuses(*words, status=1, says="open job manager: ")
    cli.refuses("list", "--state-dir", os.fsdecode(os.fsencode(tmp_path) + b"/\xff"), status=1, says="not valid UTF-8")


def test_a_database_that_is_a_link_is_refused(cli: Cli, tmp_path: Path) -> None:
    """O.34."""
    cli("list")
    database = cli.state / "jobman.db"
    for name in ("jobman.db-wal", "jobman.db-shm"):
        (cli.state / name).unlink(missing_ok=True)
    database.rename(tmp_path / "elsewhere")
    database.symlink_to(tmp_path / "elsewhere")
    cli.refuses("list", status=1, says=f"{database}: is not a regular file")


def test_a_relative_place_needs_a_current_directory(cli: Cli) -> None:
    place = cli.cwd / "place"
    place.mkdir()
    words = ("sh", "-c", 'rmdir ../place; "$0" list --state-dir x', installed_command())
    done = subprocess.run(words, cwd=place, env=cli.environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "the current directory is gone" in done.stderr


# --- Without the right to write -------------------------------------------------------------------------------------


def test_a_home_that_cannot_be_written_to_is_said_in_one_line(cli: Cli, tmp_path: Path) -> None:
    """Field case 15: which directory, why, and what chooses another."""
    home = tmp_path / "ro"
    home.mkdir(mode=0o500)
    for words in (("run", "--", "true"), ("list",)):
        done = unprivileged(cli, *words, HOME=str(home), JOBMAN_STATE_DIR="")
        assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
        assert f"{home}/.local/state/jobman: permission denied" in done.err
        assert "JOBMAN_STATE_DIR" in done.err
    assert unprivileged(cli, "--help", HOME=str(home)).status == 0
    assert list(home.iterdir()) == []


def test_a_directory_that_cannot_be_entered_is_said_in_one_line(cli: Cli) -> None:
    cli.finish("true")
    cli.state.chmod(0)
    try:
        for words in (("run", "--", "true"), ("list",)):
            done = unprivileged(cli, *words)
            assert (done.status, done.out, done.err.count("\n")) == (1, "", 1)
            assert f"state directory {cli.state}: " in done.err
    finally:
        cli.state.chmod(0o700)


def test_a_store_that_cannot_be_written_to_can_be_read_or_says_why_not(cli: Cli) -> None:
    """Field case 15."""
    job_id = cli.finish("echo", "kept")
    cli.state.chmod(0o500)
    try:
        listed = unprivileged(cli, "list", "--json")
        if any(cli.state.glob("jobman.db-wal")):
            assert (listed.status, listed.err.count("\n")) == (1, 1)
            assert "read-only" in listed.err
        else:
            assert job_id in listed.out
            assert unprivileged(cli, "logs", job_id).out == "kept\n"
        refused = unprivileged(cli, "run", "--", "true")
        assert (refused.status, refused.out, refused.err.count("\n")) == (1, "", 1)
    finally:
        cli.state.chmod(0o700)
