"""``doctor``: what it finds, what it says to do about it, and what it mends (contract, M; D1, D24, D25, D46)."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat

import apsw
import pytest

from jobman.clock import SystemClock
from jobman.process.liveness import LivenessLock
from jobman.service.doctor import diagnose
from jobman.service.doctor.findings import Level
from jobman.store.migrations import SCHEMA_VERSION
from tests.faults.injection import rows
from tests.moves import derived_id
from tests.support import Cli, check_document, eventually, processes_of, supervisor_pids, unprivileged

FIRST_LINE = re.compile(r"(un)?healthy\tschema=(\d+|unknown)\tsqlite=3\.\d+\.\d+\tforeign_keys=(\d+|unknown)\n")
NOBODY = derived_id("doctor", "job", 1)


def findings(report: str, level: str) -> list[str]:
    """The lines of a level in a report, which must begin as programs expect."""
    assert FIRST_LINE.match(report), report
    # A note or a problem says what to do, in itself or behind a semicolon.
    assert all(
        "; " in line or "jobman" in line for line in report.splitlines()[1:] if line[:7] in {"note   ", "problem"}
    )
    return [line[10:] for line in report.splitlines()[1:] if line.startswith(f"{level:<8}  ")]


def problems(cli: Cli, *flags: str) -> list[str]:
    """Run ``doctor``; its status and its first line must agree with the problems that it returns."""
    done = cli("doctor", *flags, status=None)
    found = findings(done.out, "problem")
    assert (done.status, done.err, done.out.startswith("unhealthy\t")) == (int(bool(found)), "", bool(found))
    return found


def test_a_new_state_directory_is_made_and_healthy(cli: Cli) -> None:
    """D46, D12: as by every other command."""
    assert problems(cli) == []
    assert stat.S_IMODE(cli.state.stat().st_mode) == 0o700
    data = cli.json("doctor")
    assert data["healthy"]
    assert data["store"]["schema_version"] == data["store"]["supported_schema_version"] == SCHEMA_VERSION
    assert {finding["level"] for finding in data["findings"]} <= {"ok", "note"}
    assert data["disk"]["store_bytes"] > 0
    # Any other command would fail with this configuration.
    assert cli("doctor", "--config", "/nonexistent").out.startswith("healthy\t")


def test_a_job_without_a_supervisor_is_found_named_and_settled(cli: Cli) -> None:
    """D24, D25: looking changes nothing; what is alive is named until it has been stopped."""
    job_id = cli.run("sh", "-c", "echo $$ > pid; exec sleep 60", flags=("--stop-grace", "100ms"))
    eventually(lambda: (cli.cwd / "pid").exists() and (cli.cwd / "pid").read_text())
    target = int((cli.cwd / "pid").read_text())
    (supervisor,) = supervisor_pids(cli.state)
    assert problems(cli) == []
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: not supervisor_pids(cli.state))
    (cli.state / "run" / f"{job_id}.log").write_text("earlier\n2026-11-29T00:00:00Z store: full \u00e9\n")

    for _ in range(2):
        (stale,) = problems(cli)
        assert f"pid {supervisor}" in stale
        assert f"pid {target}" in stale
        assert "jobman doctor --repair" in stale
    (alive,) = problems(cli, "--repair")
    assert f"pid {target}" in alive
    assert f"jobman cancel {job_id}" in alive

    detail = cli.json("show", job_id)
    assert [survivor["pid"] for survivor in detail["survivors"]] == [target]
    assert detail["diagnostics_path"] == f"{cli.state}/run/{job_id}.log"
    assert "its last note: 2026-11-29T00:00:00Z store: full \\xc3\\xa9" in detail["diagnostic"]
    shown = cli("show", job_id).out
    assert re.search(rf"^Survivors: +pid {target} \(sleep\); jobman cancel {job_id}", shown, re.MULTILINE)
    assert [survivor["job_id"] for survivor in cli_json_of_unhealthy(cli)["survivors"]] == [job_id]
    cli("cancel", job_id)
    assert not processes_of(cli.state)
    report = cli("doctor").out
    assert any(f"{job_id} had trouble" in line for line in findings(report, "note"))
    assert "survivors" not in cli.json("show", job_id)


def cli_json_of_unhealthy(cli: Cli) -> dict[str, list[dict[str, object]]]:
    """The document of a report that is unhealthy."""
    data: dict[str, list[dict[str, object]]] = check_document("doctor", cli("doctor", "--json", status=1).out)
    return data


def test_files_and_markers_of_nobody_are_removed_and_nothing_else(cli: Cli) -> None:
    """D1: the log is judged before its marker goes; a job that runs keeps everything."""
    done = cli.finish("echo", "text")
    held = cli.run("sleep", "60")
    eventually(lambda: len(supervisor_pids(cli.state)) == 1)
    run, marker = cli.state / "run", cli.state / "logs" / done / "1" / ".active"
    before = set(os.listdir(run))
    lock = LivenessLock.acquire(f"{run}/{done}.lock")
    (run / f"{done}.wake").touch(mode=0o600)
    # As long as somebody holds the lock, its supervisor is about to leave.
    assert problems(cli) == []
    lock.close()
    marker.touch(mode=0o600)
    left = {f"{NOBODY}.lock", f"{NOBODY}.wake", f"{NOBODY}.log", f"{done}.lock", f"{done}.wake"}
    for name in left:
        (run / name).touch(mode=0o600)
    (run / f"{NOBODY}.log").write_text("of a job that is not there any more\n")
    cli.await_phase(held, "running")
    (cli.state / "input").mkdir(mode=0o700, exist_ok=True)
    (cli.state / "input" / f"{NOBODY}.sock").touch(mode=0o600)

    assert {line.partition(";")[0] for line in problems(cli)} == {
        f"leftovers: input/{NOBODY}.sock, run/{NOBODY}.lock, run/{NOBODY}.log, run/{NOBODY}.wake of nobody",
        f"leftovers: run/{done}.lock, run/{done}.wake of nobody",
        f"leftovers: logs/{done}/1/.active marks a run that is over, and keeps its logs from being cleaned",
    }
    assert left <= set(os.listdir(run))
    report = cli("doctor", "--repair").out
    assert f"leftovers: removed logs/{done}/1/.active; the log is valid" in findings(report, "repaired")
    assert not marker.exists()
    assert set(os.listdir(run)) == before
    assert os.listdir(cli.state / "input") == []
    assert (cli.state / "logs" / held / "1" / ".active").exists()
    assert cli("logs", done).out == "text\n"
    cli("cancel", "--wait", held)


def test_modes_and_links_that_let_others_in_are_named(cli: Cli) -> None:
    """D.4; field case 29; what is ours is closed to others again, so that its readers take it."""
    job_id = cli.finish("echo", "text")
    log = cli.state / "logs" / job_id / "1" / "stdout.log"
    log.chmod(0o644)
    log.parent.parent.chmod(0o755)
    (cli.state / "logs" / "elsewhere").symlink_to("/tmp")
    cli.refuses("logs", job_id, status=1, says="its mode lets others in")
    (found,) = problems(cli)
    assert f"logs/{job_id}/1/stdout.log has mode 0644" in found
    assert "logs/elsewhere is a link" in found
    assert "jobman doctor --repair" in found
    repaired = findings(cli("doctor", "--repair", status=1).out, "repaired")
    assert any(f"logs/{job_id}/1/stdout.log from others, which had mode 0644" in line for line in repaired)
    assert cli("logs", job_id).out == "text\n"
    (found,) = problems(cli)
    assert found.startswith("files: logs/elsewhere is a link; ")
    # Of two names only one is below the state directory, and a link is followed by nobody.
    os.link(log, cli.cwd / "second")
    log.chmod(0o640)
    assert any(f"logs/{job_id}/1/stdout.log has 2 links" in line for line in problems(cli, "--repair"))
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    cli.state.chmod(0o755)
    (found,) = problems(cli)
    assert "chmod 700 makes it private" in found
    cli.state.chmod(0o700)


def test_a_backup_under_load_is_complete_private_and_opens_in_the_place_of_the_original(cli: Cli) -> None:
    """Issue 5: whoever writes meanwhile."""
    known = [cli.finish("true") for _ in range(2)]
    submitting = [cli.command("run", "--", "true") for _ in range(6)]
    made = cli("doctor", "--backup", "copies/jobs.db", umask=0)
    submitted = [process.communicate()[0].decode().strip() for process in submitting]
    copy = cli.cwd / "copies" / "jobs.db"
    assert f"backup: {copy} holds a copy" in findings(made.out, "ok")
    assert [path.name for path in copy.parent.iterdir()] == ["jobs.db"]
    assert (stat.S_IMODE(copy.stat().st_mode), stat.S_IMODE(copy.parent.stat().st_mode)) == (0o600, 0o700)
    content = copy.read_bytes()

    cli.refuses("doctor", "--backup", str(copy), status=1, says=f"backup {copy}: exists already")
    assert copy.read_bytes() == content
    assert cli("doctor", "--backup", "", status=2).out == ""
    assert "SQLite opens only paths that are UTF-8" in cli("doctor", "--backup", b"\xff", status=1).out
    for job_id in submitted:
        cli.wait(job_id)
    eventually(lambda: not processes_of(cli.state))
    for name in ("jobman.db", "jobman.db-wal", "jobman.db-shm"):
        (cli.state / name).unlink(missing_ok=True)
    shutil.copy(copy, cli.state / "jobman.db")
    assert "ok        database: sound" in cli("doctor", "--repair").out
    listed = {job["id"]: job.get("outcome") for job in cli.json("list", "--all")["jobs"]}
    assert all(listed[job_id] == "success" for job_id in known)
    assert set(listed) <= {*known, *submitted}


def test_a_store_that_cannot_be_written_to_is_reported_on(cli: Cli) -> None:
    """Field case 15."""
    cli.finish("true")
    eventually(lambda: not processes_of(cli.state))
    # The last client to close merges what the last writer left; no command waits for that.
    rows(cli.state, "PRAGMA wal_checkpoint(TRUNCATE)")
    cli.state.chmod(0o500)
    try:
        done = unprivileged(cli, "doctor")
        mended = unprivileged(cli, "doctor", "--repair")
    finally:
        cli.state.chmod(0o700)
    assert (done.status, done.err, findings(done.out, "problem")) == (0, "", [])
    assert any("none can be run" in line for line in findings(done.out, "note"))
    assert mended.status == 1
    assert "read-only" in findings(mended.out, "problem")[0]


def test_a_store_of_a_newer_version_is_reported_on(cli: Cli) -> None:
    cli("list")
    rows(cli.state, f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    done = cli("doctor", "--repair", status=1)
    assert done.out.startswith(f"unhealthy\tschema={SCHEMA_VERSION + 1}\t")
    assert "upgrade jobman" in findings(done.out, "problem")[0]


@pytest.mark.parametrize("place", ["relative", "/proc/nowhere/state"])
def test_a_place_that_cannot_be_used_is_reported_on(cli: Cli, place: str) -> None:
    (cli.cwd / "relative").write_text("a file")
    done = cli("doctor", "--state-dir", place, "--backup", "copy.db", status=1)
    assert done.out.startswith("unhealthy\tschema=unknown\t")
    assert len(findings(done.out, "problem")) == 2
    assert not (cli.cwd / "copy.db").exists()


def test_a_log_that_somebody_reads_cannot_be_merged_and_that_is_said(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobman.store.connection._BUSY_LIMIT_MS", 1)
    held = cli.run("sleep", "60")
    cli.await_phase(held, "running")
    reader = apsw.Connection(str(cli.state / "jobman.db"))
    reader.execute("BEGIN; SELECT count(*) FROM jobs").fetchall()
    cli("status", cli.finish("true"))

    report = diagnose(str(cli.state), SystemClock(), repair=True)

    reader.close()
    assert not report.wal_merged
    assert [finding.text for finding in report.findings if finding.level == Level.PROBLEM] == [
        "the write-ahead log could not be merged: somebody is reading or writing"
    ]
    cli("cancel", "--wait", held)


def test_rows_that_refer_to_nothing_are_counted(cli: Cli) -> None:
    cli.finish("true")
    rows(cli.state, "PRAGMA foreign_keys=OFF; UPDATE admissions SET run_id = 'nobody'")
    done = cli("doctor", status=1)
    assert done.out.partition("\n")[0].endswith("\tforeign_keys=1")
    assert "1 row referring to something that is not there" in findings(done.out, "problem")[0]
