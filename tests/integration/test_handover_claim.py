"""The hand-over with real supervisors: what is durable when, and what a failed one leaves (section G, M2-M4)."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from jobman import handshake
from jobman.clock import SystemClock
from jobman.errors import HandshakeError, LaunchError
from jobman.model.ids import is_id
from jobman.model.spec import JobSpec
from jobman.model.transitions._change import Now
from jobman.model.transitions.submission import submit as submission
from jobman.process.spawn import Detached, spawn_detached
from jobman.service import launch
from jobman.service.launch import Candidate, new_job_id
from jobman.service.submit import submit
from jobman.store.commit import commit_submission
from jobman.store.connection import Store, open_store
from tests.faults.injection import (
    DRIVER,
    expire_offers,
    injected,
    interpreter,
    is_held,
    left_in_run,
    owner_of,
    rows,
    run_with,
    snapshot,
    started,
    traced,
    wrapped_interpreter,
)
from tests.support import Cli, eventually, processes_of

CLOCK = SystemClock()


class Offered(NamedTuple):
    """A job in ``submitting``, and what its only rightful supervisor has to know."""

    store: Store
    job_id: str
    credential: bytes


@pytest.fixture
def offered(state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offered]:
    """A job on offer that nobody has been started for."""
    monkeypatch.setenv("JOBMAN_STATE_DIR", str(state))
    store = open_store(str(state))
    job_id, credential = new_job_id(CLOCK), handshake.new_credential()
    now = Now(CLOCK.wall_ns(), CLOCK.monotonic_ns())
    transition = submission(job_id, "", credential_hash=handshake.digest(credential), now=now)
    commit_submission(store, transition, JobSpec("true", (), "/"))
    yield Offered(store, job_id, credential)
    store.close()


def hand_over(candidate: Candidate, root: str, credential: bytes) -> str:
    """Hand over, then reap the supervisor: a refused one has to end by itself."""
    pid = candidate.pid
    try:
        return candidate.hand_over(root, credential)
    finally:
        candidate.close()
        eventually(lambda: os.waitpid(pid, os.WNOHANG)[0] == pid, f"supervisor {pid} goes on")


def only_job(state: Path) -> tuple[str, str, str]:
    """ID, phase and outcome of the one job in the store."""
    ((job_id, phase, outcome),) = rows(state, "SELECT id, phase, outcome FROM jobs")
    return job_id, phase, outcome


# --- A claim is whole and durable ----------------------------------------------------------------------------------


def test_the_id_is_printed_for_an_owned_job(cli: Cli, state: Path) -> None:
    """M2: phase, lock and identity are true together, as seen from outside, once ``run`` has answered."""
    job_id = cli.run("sleep", "30")

    owner = owner_of(state, job_id)
    assert owner is not None
    assert is_held(state, job_id, owner)
    assert rows(state, "SELECT claim_hash, claim_deadline_ns FROM jobs WHERE phase <> 'submitting'") == [(None, None)]

    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_no_moment_shows_a_claim_without_its_owner(cli: Cli, state: Path, tmp_path: Path) -> None:
    """M4: the supervisor is slowed down at every sync; whoever looks sees an offer, or an owner whose lock is held."""
    cli.finish("true")
    slow = wrapped_interpreter(tmp_path / "slow", injected("fdatasync", 1, "delay_exit=150000"))
    slow.write_text(slow.read_text().replace(":when=1", ""))
    argv = [sys.executable, "-c", DRIVER, str(slow), "run", "--", "true"]

    seen: set[str] = set()
    with started(cli, argv) as client:
        while {"submitting"} >= seen or rows(state, "SELECT 1 FROM jobs WHERE phase <> 'completed'"):
            assert client.poll() in {None, 0}
            for job_id, phase in rows(state, "SELECT id, phase FROM jobs WHERE phase <> 'completed'"):
                owner = owner_of(state, job_id)
                assert owner is not None or phase == "submitting"
                # It may have completed, and gone, since we asked.
                assert owner is None or is_held(state, job_id, owner) or job_is_completed(state, job_id)
                seen.add(phase)
        job_id = client.communicate()[0].decode().strip()

    assert "submitting" in seen
    assert cli.wait(job_id) == "success"


def job_is_completed(state: Path, job_id: str) -> bool:
    return bool(rows(state, "SELECT 1 FROM jobs WHERE id = ? AND phase = 'completed'", job_id))


def test_the_acknowledgement_follows_the_sync_of_the_claim(cli: Cli, tmp_path: Path) -> None:
    """M2: the kernel testifies that the store was synced before the supervisor wrote its first byte to the client."""
    log = tmp_path / "log"
    cli.finish("true")

    done = run_with(cli, wrapped_interpreter(tmp_path / "python", traced("write", "fdatasync", log=log)), "--", "true")

    assert is_id(done.out.strip())
    assert cli.wait(done.out.strip()) == "success"
    eventually(lambda: not processes_of(cli.state))
    before, _, after = log.read_text().partition("write(1<")
    assert re.search(r"fdatasync\(\d+<[^>]*/jobman\.db-wal>\)", before)
    assert after
    assert "write(1<" not in after


def test_nothing_is_printed_while_nobody_has_claimed(cli: Cli, state: Path, tmp_path: Path) -> None:
    """M2: a client whose supervisor hangs before the claim says nothing; the job is on offer and no more."""
    hanging = interpreter(tmp_path / "python", "exec sleep 60")
    argv = [sys.executable, "-c", DRIVER, str(hanging), "run", "--", "true"]
    open_store(str(state)).close()
    with started(cli, argv) as client:
        eventually(lambda: rows(state, "SELECT 1 FROM jobs"))
        assert client.poll() is None
        assert only_job(state)[1] == "submitting"
        client.kill()
        assert client.stdout is not None
        assert client.stdout.read() == b""
    for pid in processes_of(state):
        os.kill(pid, signal.SIGKILL)


# --- The acknowledgement is lost -----------------------------------------------------------------------------------


def test_a_claim_whose_acknowledgement_cannot_be_written_is_reported_as_submitted(cli: Cli, tmp_path: Path) -> None:
    """O.55, G.6: the client reads end of file, asks the store, and prints the ID."""
    broken = wrapped_interpreter(tmp_path / "python", injected("write", 1, "error=EPIPE"))

    done = run_with(cli, broken, "--", "true")

    assert (done.status, done.err) == (0, "")
    assert cli.wait(done.out.strip()) == "success"


def test_a_garbled_acknowledgement_is_resolved_from_the_store(cli: Cli, tmp_path: Path) -> None:
    """G.6: another version of the protocol, say; the claim counts, not what is said of it."""
    garbling = interpreter(tmp_path / "python", f'{sys.executable} "$@" | sed s/schema_version/version/')

    done = run_with(cli, garbling, "--", "true")

    assert (done.status, done.err) == (0, "")
    assert cli.wait(done.out.strip()) == "success"


def test_a_supervisor_outlives_the_reader_of_its_acknowledgement(offered: Offered) -> None:
    """G.6: the client's end of the pipe is closed before the supervisor answers; it must not die of SIGPIPE."""
    candidate = launch.start(offered.job_id, offered.store.root)
    process, candidate._process = candidate._process, Detached(candidate.pid, -1, -1)
    os.close(process.output_fd)

    handshake.send_offer(process.input_fd, handshake.Offer(offered.job_id, offered.credential, offered.store.root))

    state = Path(offered.store.root)
    eventually(lambda: only_job(state) == (offered.job_id, "completed", "success"))
    os.waitpid(process.pid, 0)


def test_a_supervisor_that_dies_of_its_acknowledgement_has_claimed_and_is_lost(cli: Cli, tmp_path: Path) -> None:
    """M4: the job was owned, so the client reports it; the first look afterwards finds the owner dead."""
    dying = wrapped_interpreter(tmp_path / "python", injected("write", 1))

    done = run_with(cli, dying, "--", "true")

    assert (done.status, done.err) == (0, "")
    assert cli.json("status", done.out.strip())["outcome"] == "lost"
    assert left_in_run(cli.state) == set()


# --- A claim that must fail ----------------------------------------------------------------------------------------


def test_a_wrong_credential_claims_nothing(offered: Offered) -> None:
    """G.7: refused without a trace, and the right one still works."""
    state = Path(offered.store.root)
    before = snapshot(state)

    with pytest.raises(HandshakeError, match="ended without acknowledging"):
        hand_over(launch.start(offered.job_id, offered.store.root), offered.store.root, handshake.new_credential())

    assert snapshot(state) == before
    assert left_in_run(state) == set()
    hand_over(launch.start(offered.job_id, offered.store.root), offered.store.root, offered.credential)
    assert only_job(state)[2] == "success"


def test_a_late_claim_fails_and_the_next_look_completes_the_submission(offered: Offered, cli: Cli) -> None:
    """G.7, O.65."""
    state = Path(offered.store.root)
    expire_offers(state)
    before = snapshot(state)

    with pytest.raises(HandshakeError, match="ended without acknowledging"):
        hand_over(launch.start(offered.job_id, offered.store.root), offered.store.root, offered.credential)

    assert snapshot(state) == before
    assert left_in_run(state) == set()
    assert cli.json("status", offered.job_id)["outcome"] == "submission_failed"


def test_an_offer_is_not_withdrawn_before_its_deadline(offered: Offered, cli: Cli) -> None:
    """O.65: whoever looks at a submission under way leaves it alone."""
    assert cli.json("status", offered.job_id)["phase"] == "submitting"
    assert cli("list", "--json").out.count('"submitting"') == 1

    hand_over(launch.start(offered.job_id, offered.store.root), offered.store.root, offered.credential)

    assert cli.json("status", offered.job_id)["outcome"] == "success"


@pytest.mark.parametrize("command", [("status", "{}"), ("show", "{}"), ("list",), ("wait", "{}")])
def test_an_offer_past_its_deadline_ends_when_anything_looks_at_it(
    offered: Offered, cli: Cli, command: tuple[str, ...]
) -> None:
    """G.6."""
    expire_offers(Path(offered.store.root))

    cli(*(word.format(offered.job_id) for word in command), status=None)

    assert only_job(Path(offered.store.root))[1:] == ("completed", "submission_failed")


def test_a_second_claim_leaves_the_owner_alone(cli: Cli, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G.7: a second supervisor with the right credential neither changes the record nor touches the owner's files."""
    monkeypatch.setenv("JOBMAN_STATE_DIR", str(state))
    store = open_store(str(state))
    job_id, credential = new_job_id(CLOCK), handshake.new_credential()
    now = Now(CLOCK.wall_ns(), CLOCK.monotonic_ns())
    spec = JobSpec("sleep", ("60",), "/")
    commit_submission(store, submission(job_id, "", credential_hash=handshake.digest(credential), now=now), spec)
    first = launch.start(job_id, store.root)
    first.hand_over(store.root, credential)
    cli.await_phase(job_id, "running")
    before, files = snapshot(state), left_in_run(state)

    with pytest.raises(HandshakeError):
        hand_over(launch.start(job_id, store.root), store.root, credential)

    owner = owner_of(state, job_id)
    assert owner is not None
    assert is_held(state, job_id, owner)
    assert (snapshot(state), left_in_run(state)) == (before, files)
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"
    os.waitpid(first.pid, 0)
    assert left_in_run(state) == set()
    with pytest.raises(HandshakeError):
        hand_over(launch.start(job_id, store.root), store.root, credential)
    assert left_in_run(state) == set()
    store.close()


# --- The supervisor dies -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("kill -9 $$", id="killed at once"),
        pytest.param("exit 3", id="exits at once"),
        pytest.param("cat >/dev/null; kill -9 $$", id="killed with the offer in hand"),
    ],
)
def test_a_supervisor_that_dies_before_the_claim_fails_the_submission_at_once(
    cli: Cli, tmp_path: Path, script: str
) -> None:
    """G.6 and D24: not at the deadline; one line says so and names the job, and the record tells why."""
    done = run_with(cli, interpreter(tmp_path / "python", script), "--", "true")

    job_id, phase, outcome = only_job(cli.state)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("launch job supervisor: ")
    assert job_id in done.err
    assert done.err.count("\n") == 1
    assert (phase, outcome) == ("completed", "submission_failed")
    assert "supervisor" in cli.json("show", job_id)["diagnostic"]
    assert left_in_run(cli.state) == set()


@pytest.mark.parametrize("syscall", ["mknodat", "flock", "fdatasync"])
def test_a_supervisor_killed_on_its_way_to_the_claim_leaves_no_file(cli: Cli, tmp_path: Path, syscall: str) -> None:
    """M4: its FIFO, its lock and its diagnostics go with the submission."""
    cli.finish("true")

    done = run_with(cli, wrapped_interpreter(tmp_path / "python", injected(syscall, 1)), "--", "true")

    assert done.status == 1
    assert rows(cli.state, "SELECT count(*) FROM jobs WHERE outcome = 'submission_failed'") == [(1,)]
    assert left_in_run(cli.state) == set()


def test_an_interpreter_that_is_missing_is_one_clear_line(cli: Cli, tmp_path: Path) -> None:
    """D24: nothing is stored, since nothing could be started."""
    done = run_with(cli, tmp_path / "absent", "--", "true")

    assert done.status == 1
    assert done.err == f"launch job supervisor: {tmp_path}/absent: no such file or directory\n"
    assert not (cli.state / "jobman.db").exists()


def test_a_supervisor_that_never_answers_is_ended(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G.5, G.6: after the time for an answer the candidate is killed, so that the submission can fail for good."""
    monkeypatch.setattr(launch, "ACKNOWLEDGEMENT_TIMEOUT_MS", 50)
    hanging = interpreter(tmp_path / "python", "exec sleep 60")
    environment = {b"JOBMAN_STATE_DIR": os.fsencode(state), b"PATH": b"/usr/bin:/bin"}
    store = open_store(str(state))
    candidate = Candidate(new_job_id(CLOCK), spawn_detached([str(hanging)], environment))

    with pytest.raises(LaunchError, match=r"did not answer in time; job .* is recorded as submission_failed"):
        submit(store, candidate, JobSpec("true", (), "/"), CLOCK)

    assert only_job(state) == (candidate.job_id, "completed", "submission_failed")
    assert processes_of(state) == {}
    store.close()


def depended_upon(cli: Cli) -> tuple[str, str]:
    """Return a job that runs, and one that waits for it."""
    job_id = cli.run("sleep", "60")
    cli.await_phase(job_id, "running")
    dependent = cli.run("true", flags=["--after-success", job_id])
    cli.await_phase(dependent, "waiting")
    return job_id, dependent


@pytest.mark.parametrize("command", [("status", "{}"), ("show", "{}"), ("list",), ("wait", "{}"), ("logs", "{}")])
def test_the_next_look_finds_a_killed_supervisor(cli: Cli, command: tuple[str, ...]) -> None:
    """M4, H.6: lost at once, not when a lease expires; lock and FIFO are gone, and a dependent is aborted."""
    job_id, dependent = depended_upon(cli)
    ((target,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ?", job_id)
    owner = owner_of(cli.state, job_id)
    assert owner is not None
    os.kill(owner.identity.pid, signal.SIGKILL)
    eventually(lambda: owner.identity.pid not in processes_of(cli.state))

    cli(*(word.format(job_id) for word in command), status=None)

    assert rows(cli.state, "SELECT outcome FROM jobs WHERE id = ?", job_id) == [("lost",)]
    assert not [name for name in left_in_run(cli.state) if job_id in name]
    assert cli.wait(dependent) == "aborted"
    assert str(target) in cli.json("show", job_id)["diagnostic"]
    os.kill(target, signal.SIGKILL)


def test_a_waiting_dependent_finds_a_killed_supervisor_by_itself(cli: Cli) -> None:
    """O.24, field case 34: nobody types a command; the dependent's supervisor looks after the owner it waits for."""
    job_id, dependent = depended_upon(cli)
    ((target,),) = rows(cli.state, "SELECT pid FROM runs WHERE job_id = ?", job_id)
    owner = owner_of(cli.state, job_id)
    assert owner is not None

    os.kill(owner.identity.pid, signal.SIGKILL)

    query = "SELECT outcome FROM jobs WHERE id = ?"
    eventually(lambda: rows(cli.state, query, dependent) == [("aborted",)])
    assert rows(cli.state, query, job_id) == [("lost",)]
    os.kill(target, signal.SIGKILL)
