"""What refused commands, killed supervisors and odd moments must not leave behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobman.store.connection import open_store
from tests.support import Cli, eventually, require_tool, supervisor_pids

LIMITED = "schema_version: 1\nconcurrency: {max_active_slots: 1}\n"


def test_a_refused_command_changes_no_limit(cli: Cli, tmp_path: Path) -> None:
    """A.2: limits are applied after the flags have been understood; issue: exit 2 stores nothing."""
    config = tmp_path / "jobman.yml"
    config.write_text(LIMITED)

    cli("--config", str(config), "run", "--env", "A B=1", "--", "true", status=2)

    # With a limit of 1 in force, two slots would be refused with status 5.
    cli("run", "--wait", "--slots", "2", "--", "true")


def test_files_of_a_supervisor_that_was_killed_after_its_last_commit_are_swept_up(cli: Cli) -> None:
    """M1: nothing is left after completion."""
    strace = require_tool("strace")
    job_id = cli.run("sh", "-c", "until test -e go; do sleep 0.02; done")
    (supervisor,) = supervisor_pids(cli.state)
    tracer = os.spawnv(
        os.P_NOWAIT,
        strace,
        [strace, "-f", "-qq", "-o", os.devnull, "-p", str(supervisor), "-e", "inject=unlink:signal=KILL:when=2+"],
    )
    eventually(lambda: f"TracerPid:\t{tracer}\n" in Path(f"/proc/{supervisor}/status").read_text())
    (cli.cwd / "go").touch()
    assert cli.wait(job_id) == "success"
    eventually(lambda: not supervisor_pids(cli.state))
    os.waitpid(tracer, 0)
    assert list((cli.state / "run").glob(f"{job_id}.*")) != []

    cli("list")

    assert list((cli.state / "run").glob(f"{job_id}.*")) == []


@pytest.mark.parametrize(("error", "gone"), [(PermissionError, False), (OSError, False), (FileNotFoundError, True)])
def test_only_a_missing_database_is_a_removed_one(
    state: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError], *, gone: bool
) -> None:
    """D43 speaks of a directory that was removed, not of one that cannot be looked into for a moment."""
    store = open_store(str(state))

    def refuse(_path: str) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("jobman.store.connection.os.lstat", refuse)
        assert store.is_replaced() is gone
    store.close()


def test_a_sidecar_of_the_database_without_its_owners_rights_is_repaired(cli: Cli) -> None:
    """D.5: -wal and -shm are 0600 after opening."""
    cli.finish("true")
    job_id = cli.run("true", flags=("--wait-delay", "1h"))  # keeps the sidecars
    (cli.state / "jobman.db-shm").chmod(0o400)

    cli.finish("true")

    assert (cli.state / "jobman.db-shm").stat().st_mode & 0o777 == 0o600
    cli("cancel", "--wait", job_id)
