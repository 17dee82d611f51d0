"""``clean``: what it says, what it removes, and what readers are told afterwards (A.7, A.12, J.7)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support import Cli, check_document, eventually, supervisor_pids

POLICY = "retention: {completed_log_max_age: 0s}\nconcurrency: {max_active_slots: 3}\n"
BROKEN = "retention: {max_jobs: many}\n"


def totals(cli: Cli, *words: str) -> dict[str, int | bool]:
    """Return what ``clean WORDS --json`` counts, without files and bytes."""
    counted = check_document("clean", cli("clean", "--json", *words).out)
    return {name: counted[name] for name in ("applied", "runs", "jobs")}


def test_a_job_is_removed_with_everything_that_is_known_of_it(cli: Cli) -> None:
    """C.1, O.7, O.9, D13, D19."""
    job_id = cli.finish("echo", "text", flags=("--name", "one"))
    logs = cli.state / "logs" / job_id
    size = sum(path.stat().st_size for path in (logs / "1").iterdir())
    counts = f"1 runs, 3 files, {size} bytes, 1 jobs"

    for words in (("one",), ("one", "--dry-run"), ("--all",)):
        assert cli("clean", *words).out == f"would remove {counts}; run with `--force` to remove\n"
    assert cli("clean", job_id[:13], "--force", "--dry-run").out == f"would remove {counts}\n"
    assert logs.exists()
    assert cli("clean", "one", "--force", "--dry-run=false").out == f"removed {counts}\n"

    assert cli.has_no_job()
    assert list((cli.state / "logs").iterdir()) == []
    assert set(os.listdir(cli.state / "run")) == {"writer.lock"}
    cli.refuses("logs", "one", status=3, says="no job matches 'one'")


def test_readers_are_told_of_logs_that_were_pruned(cli: Cli) -> None:
    """D17, C: exit 3 with the time."""
    script = "echo >>n; echo run $(wc -l <n); exit 1"
    job_id = cli.finish("sh", "-c", script, flags=("--retries", "2", "--name", "three"))
    (cli.cwd / "keep.yml").write_text("retention: {max_runs_per_job: 1}\n")
    assert totals(cli, "--force", "--config", "keep.yml") == {"applied": True, "runs": 2, "jobs": 0}

    pruned_at = cli.json("show", job_id)["runs"][0]["logs"]["pruned_at"]
    assert f"available: {pruned_at}" not in cli("show", job_id).out
    assert cli("show", job_id).out.count(f"pruned {pruned_at[:10]}") == 2
    assert f"Logs:                 pruned {pruned_at}\n" in cli("show", "run", job_id, "1").out
    assert cli.json("show", "run", job_id, "1")["logs"]["pruned_files"] == 3
    assert cli("logs", job_id).out == "run 3\n"
    for words in (("--run", "1"), ("--run", "-3", "--follow"), ("--run", "1", "--stream", "stdout")):
        cli.refuses("logs", job_id, *words, status=3, says=f"run 1 of job {job_id} were pruned at {pruned_at}")
    for follow in ("--follow=false", "--follow"):
        done = cli("logs", job_id, "--all", follow)
        assert done.out == "==> run 3 <==\nrun 3\n"
        assert [line.split(" of job ")[0] for line in done.err.splitlines()] == [
            "the logs of run 1",
            "the logs of run 2",
        ]
    cli("clean", "--older-than", "0s", "--force")
    assert cli("logs", job_id, "--all").out == ""
    assert cli("wait", job_id, "--exit-code", status=1).out == f"{job_id}\tfailure\n"


def test_a_running_job_is_left_alone(cli: Cli) -> None:
    """O.8, field case 24: nothing that a supervisor writes to is unlinked."""
    job_id = cli.run("sh", "-c", "echo first; read line <gate; echo last")
    os.mkfifo(cli.cwd / "gate")
    cli.await_phase(job_id, "running")
    eventually(lambda: cli("logs", job_id).out == "first\n")
    for words in ((), ("--force",)):
        cli.refuses("clean", job_id, *words, status=5, says="is running: only a completed job can be cleaned")
    assert cli("clean", "--all", "--force").out == "removed 0 runs, 0 files, 0 bytes, 0 jobs\n"
    (supervisor,) = supervisor_pids(cli.state)
    assert not [link for link in Path(f"/proc/{supervisor}/fd").iterdir() if "deleted" in os.readlink(link)]
    (cli.cwd / "gate").write_text("go\n")
    assert cli.wait(job_id) == "success"
    assert cli("logs", job_id).out == "first\nlast\n"


def test_the_logs_of_a_killed_supervisor_are_cleaned_like_others(cli: Cli) -> None:
    """D1: the cleaning itself finds that the owner is dead."""
    cli.finish("true")
    job_id = cli.run("sh", "-c", "echo text; echo $$ >pid; exec sleep 60")
    cli.await_phase(job_id, "running")
    eventually(lambda: (cli.cwd / "pid").exists() and (cli.cwd / "pid").read_text())
    (supervisor,) = supervisor_pids(cli.state)
    os.kill(supervisor, signal.SIGKILL)
    os.kill(int((cli.cwd / "pid").read_text()), signal.SIGKILL)
    eventually(lambda: not supervisor_pids(cli.state))
    assert (cli.state / "logs" / job_id / "1" / ".active").exists()
    assert totals(cli, "--all", "--force") == {"applied": True, "runs": 2, "jobs": 2}
    assert list((cli.state / "logs").iterdir()) == []


def test_only_cleaning_by_policy_reads_the_configuration(cli: Cli) -> None:
    """A.0, H.4, D9: a preview puts no limits in force."""
    cli.finish("true")
    (cli.cwd / "policy.yml").write_text(POLICY)
    (cli.cwd / "broken.yml").write_text(BROKEN)
    broken = ("--config", "broken.yml")
    cli.refuses("clean", "--force", *broken, status=2, says="broken.yml:1:23: retention.max_jobs: expected a number")
    cli.refuses("clean", "--config", "none.yml", status=1, says="none.yml")
    for words in (("--all",), ("--older-than", "0s")):
        assert totals(cli, *words, *broken)["runs"] == 1
    environment = cli.environment | {"JOBMAN_RETENTION_COMPLETED_METADATA_MAX_AGE": "0s"}

    assert totals(cli)["runs"] == 0  # 30 days
    assert totals(cli, "--config", "policy.yml") == {"applied": False, "runs": 1, "jobs": 0}
    assert cli("clean", env=environment).out.startswith("would remove 1 runs, ")
    # No limit was put in force; and an age of its own counts alone (D11).
    cli("run", "--slots", "4", "--log-retention", "1d", "--wait", "--", "true")
    assert totals(cli, "--config", "policy.yml", "--force") == {"applied": True, "runs": 1, "jobs": 0}
    cli.refuses("run", "--slots", "4", "--", "true", status=5, says="4 slots never fit")
    assert cli("clean", "--force", env=environment).out.startswith("removed 1 runs, ")
    assert cli.has_no_job()


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--dry-run=false",), 2, "clean: --dry-run=false needs --force"),
        (("--all", "some"), 2, "clean: --all and a JOB exclude each other"),
        (("--all", "--older-than", "0s"), 2, "clean: --all and --older-than exclude each other"),
        (("--older-than", "soon"), 2, "--older-than: invalid value 'soon'"),
        (("one", "two"), 2, "clean: accepts at most 1 arg(s), received 2"),
        (("nobody", "--force"), 3, "no job matches 'nobody'"),
    ],
)
def test_what_does_not_say_what_to_clean_is_refused(cli: Cli, words: tuple[str, ...], status: int, says: str) -> None:
    cli.refuses("clean", *words, status=status, says=says)
