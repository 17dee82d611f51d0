"""A supervisor's loop in this process, step by step, with a clock that stands still; real store, real children.

Run as a program (``python -m tests.integration.stepped_supervisor STORY STATE``), because a supervisor adopts orphans
and handles signals, which would outlive the story in a test's process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from jobman import handshake
from jobman.model.spec import Completion, Delay, JobSpec, Limit, StopPolicy, Timeouts
from jobman.model.state import Snapshot
from jobman.model.transitions._change import Now
from jobman.model.transitions.submission import submit
from jobman.process.own import own_identity_fields
from jobman.service.launch import new_job_id
from jobman.store.claim import Claimant, claim_job
from jobman.store.commit import commit_submission
from jobman.store.connection import open_store
from jobman.store.jobs import load_runs, load_snapshot
from jobman.supervisor.loop import Loop
from jobman.supervisor.observe import Observer
from jobman.supervisor.ownership import Ownership
from jobman.supervisor.perform import Performer
from jobman.supervisor.run import ActiveRun
from jobman.testing import FakeClock
from tests.faults.injection import assert_sound
from tests.support import clean_environment

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
# Who is left of a tree is looked up anew every 20 ms.
TICK = 25_000_000


class Stepped(Loop):
    """A loop that takes in what is there and never sleeps."""

    def _wait(self, due_in_ns: int | None) -> None:
        del due_in_ns
        self._handle(self._poll(self._clock.monotonic_ns()))


class Story:
    """One job under a loop that is driven by hand."""

    def __init__(self, state: str, spec: JobSpec) -> None:
        self.clock = FakeClock()
        self.store = open_store(state)
        self.job_id = new_job_id(self.clock)
        credential = handshake.digest(handshake.new_credential())
        now = Now(self.clock.wall_ns(), self.clock.monotonic_ns())
        commit_submission(self.store, submit(self.job_id, "", credential_hash=credential, now=now), spec)
        self.owner = Ownership(self.job_id, self.store, 0o022)
        self.owner.claimed_ns = self.clock.monotonic_ns()
        claimant = Claimant(
            new_job_id(self.clock), own_identity_fields(), (self.owner.lock.device, self.owner.lock.inode)
        )
        claim_job(self.store, self.job_id, claimant=claimant, credential_hash=credential, wall_ns=self.clock.wall_ns())
        observer = Observer(self.store, self.job_id, clock=self.clock, claimed_ns=self.owner.claimed_ns)
        self.performer = Performer(self.owner, observer, self.clock)
        self.performer.watch_conditions()
        self._loop = Stepped(self.owner, observer, self.performer, self.clock)

    def settle(self) -> None:
        """Go round until nothing more is due at this moment, however long children take."""
        for _ in range(30):
            self._loop.step()
            time.sleep(0.001)

    def step(self) -> bool:
        """Go round once; return whether to go on."""
        return self._loop.step()

    def until(self, condition: Callable[[], bool], what: str, *, tick_ns: int = 0) -> None:
        """Go round until ``condition`` holds; the clock stands still, or goes on by ``tick_ns`` each time."""
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.snapshot()}"
            self._loop.step()
            self.clock.advance(tick_ns)
            time.sleep(0.001)

    def until_phase(self, phase: str, *, tick_ns: int = 0) -> None:
        """Go round until the job is in ``phase``."""
        self.until(lambda: self.snapshot().job.phase == phase, phase, tick_ns=tick_ns)

    def pass_time(self, ns: int) -> None:
        """Let time pass, then go round."""
        self.clock.advance(ns)
        self.settle()

    def snapshot(self) -> Snapshot:
        """What the store says."""
        return load_snapshot(self.store, self.job_id)

    def phase(self) -> str:
        """The job's phase."""
        return str(self.snapshot().job.phase)

    def stage(self) -> str:
        """How far the active run's child has come."""
        active = self.performer.active
        return "" if active is None else str(active.view().stage)

    def asked_ns(self) -> int | None:
        """When the tree was sent SIGTERM."""
        active = self.performer.active
        return None if active is None else active.ladder.asked_ns

    def alive(self) -> bool:
        """Whether the leader of the active run lives."""
        run = self.snapshot().run
        assert run is not None
        assert run.identity is not None
        with open(f"/proc/{run.identity.pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"


def shell(script: str, **members: object) -> JobSpec:
    """A job that runs ``script``."""
    return JobSpec("/bin/sh", ("-c", script), "/", **members)  # type: ignore[arg-type]  # members of JobSpec


def tell(module: str, story: str, state: Path) -> None:
    """Run a story of ``module`` as a program of its own, and see that it leaves a sound store."""
    argv = [sys.executable, "-m", module, story, str(state)]
    environment, root = clean_environment(state), Path(__file__).parents[2]
    done = subprocess.run(argv, env=environment, cwd=root, capture_output=True, check=False, timeout=18, text=True)
    assert done.returncode == 0, done.stderr
    assert_sound(state)


STUBBORN = "trap '' TERM; while :; do sleep 0.02; done"


def run_timeout(state: str) -> None:
    """D26, M29: neither early nor late, whatever the wall clock does; then the grace period, to the nanosecond."""
    story = Story(state, shell(STUBBORN, timeouts=Timeouts(HOUR, 0), stop=StopPolicy(grace_ns=5 * SECOND)))
    story.until_phase("running")
    reserved_ns = story.clock.monotonic_ns()
    story.clock.set_wall(story.clock.wall_ns() + DAY)
    story.settle()
    assert story.phase() == "running", "a jump of the wall clock fires no timeout"
    story.clock.set_wall(story.clock.wall_ns() - 3 * DAY)
    story.clock.sleep(DAY)
    story.pass_time(HOUR - 1)
    assert story.phase() == "running"
    story.pass_time(1)
    assert story.phase() == "stopping", "a clock set back defers no timeout"
    assert story.clock.monotonic_ns() == reserved_ns + HOUR
    story.pass_time(5 * SECOND - 1)
    assert story.alive()
    story.pass_time(1)
    story.until_phase("completed", tick_ns=TICK)
    (run,) = load_runs(story.store, [story.job_id])[story.job_id]
    assert (run.outcome, run.exit and run.exit.signal) == ("timed_out", "killed")
    assert run.completed_at_ns is not None
    assert run.completed_at_ns >= run.reserved_at_ns, "never a negative duration"


def job_timeout(state: str) -> None:
    """H.5: the job's budget runs from the claim, over a run and the backoff that follows."""
    completion = Completion(max_runs=Limit(9), success_target=Limit(1), failure_limit=Limit(9))
    delay = Delay(base_ns=HOUR)
    spec = shell("exit 1", timeouts=Timeouts(0, 90 * 60 * SECOND), completion=completion, failure_delay=delay)
    story = Story(state, spec)
    story.until_phase("backoff")
    story.pass_time(HOUR)
    story.until(lambda: story.snapshot().job.counters.runs == 2, "the second run")
    story.until_phase("backoff")
    story.pass_time(30 * 60 * SECOND - 1)
    assert story.phase() == "backoff"
    story.pass_time(1)
    assert (story.phase(), story.snapshot().job.outcome) == ("completed", "timed_out")


def backoff(state: str) -> None:
    """Architecture, Clocks: a pause between runs goes on while the machine sleeps, and ignores the wall clock."""
    completion = Completion(max_runs=Limit(3), success_target=Limit(1), failure_limit=Limit(3))
    story = Story(state, shell("exit 1", completion=completion, failure_delay=Delay(base_ns=HOUR)))
    story.until_phase("backoff")
    story.clock.set_wall(story.clock.wall_ns() + DAY)
    story.settle()
    assert story.phase() == "backoff"
    story.clock.set_wall(story.clock.wall_ns() - 2 * DAY)
    story.pass_time(HOUR - 1)
    assert story.phase() == "backoff"
    story.pass_time(1)
    story.until(lambda: story.snapshot().job.counters.runs == 2, "the second run")
    story.until_phase("backoff")
    story.clock.sleep(HOUR)
    story.settle()
    story.until_phase("completed")
    assert story.snapshot().job.counters.runs == 3


def drain(state: str) -> None:
    """D33: what the leader left behind has 10 s to let go of the pipe, then its grace, then it is killed."""
    left = "trap '' TERM; echo left; while :; do sleep 0.02; done"
    story = Story(state, shell(f'setsid sh -c "{left}" & sleep 0.1', stop=StopPolicy(grace_ns=5 * SECOND)))
    story.until(lambda: story.stage() == "exited", "the leader has ended")
    story.settle()
    story.pass_time(10 * SECOND - 1)
    assert story.asked_ns() is None, "asked to end while it may still write"
    story.pass_time(1)
    assert story.asked_ns() == story.clock.monotonic_ns()
    story.pass_time(5 * SECOND - 1)
    assert story.phase() != "completed"
    story.pass_time(1)
    story.until_phase("completed", tick_ns=TICK)
    (ended,) = load_runs(story.store, [story.job_id])[story.job_id]
    assert (ended.outcome, ended.logs.health) == ("success", "degraded")
    assert ended.logs.diagnostic_code == "descendant_holds_output"


def busy_store(state: str) -> None:
    """D23, field case 33: somebody writes for long; the target is drained, its limits hold, all is recorded."""
    fills = "trap '' TERM; while :; do head -c 100000 /dev/zero; echo >&2; sleep 0.01; done"
    limits, stop = Timeouts(HOUR, 0), StopPolicy(grace_ns=5 * SECOND)
    story = Story(state, shell(fills, timeouts=limits, stop=stop))
    story.until_phase("running")
    log = Path(state, "logs", story.job_id, "1", "stdout.log")
    writer = os.open(f"{state}/run/writer.lock", os.O_RDWR)
    fcntl.flock(writer, fcntl.LOCK_EX)
    story.clock.advance(HOUR)
    size = log.stat().st_size
    # Refused for two seconds, it goes on without the store.
    story.until(lambda: story.asked_ns() is not None, "asked to end", tick_ns=SECOND // 4)
    assert log.stat().st_size > size + 200_000, "not drained between two attempts"
    size = log.stat().st_size
    story.until(lambda: log.stat().st_size > size + 500_000, "drained while it has its grace")
    assert story.alive()
    assert story.phase() == "running", "nothing can be recorded"
    story.clock.advance(5 * SECOND)
    story.until(lambda: not story.alive(), "killed after its grace", tick_ns=TICK)
    os.close(writer)
    story.until_phase("completed", tick_ns=TICK)
    (run,) = load_runs(story.store, [story.job_id])[story.job_id]
    assert (run.outcome, run.exit and run.exit.signal, run.logs.integrity) == ("timed_out", "killed", "valid")


def exhausted(state: str) -> None:
    """Issue 5: a system without descriptors for a while costs a target neither its supervisor nor its result."""
    story = Story(state, shell("echo begun; sleep 0.2; exit 3"))
    story.until_phase("running")
    exhaustion = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    with patch.object(ActiveRun, "view", side_effect=exhaustion) as looks:
        story.until(lambda: looks.call_count >= 5, "refused again and again")
    story.until_phase("completed", tick_ns=TICK)
    (run,) = load_runs(story.store, [story.job_id])[story.job_id]
    assert (run.outcome, run.exit and run.exit.exit_code, run.logs.stdout_bytes) == ("failure", 3, 6)


STORIES = {
    "run_timeout": run_timeout,
    "job_timeout": job_timeout,
    "backoff": backoff,
    "drain": drain,
    "busy_store": busy_store,
    "exhausted": exhausted,
}

if __name__ == "__main__":
    os.environ["JOBMAN_STATE_DIR"] = sys.argv[2]
    STORIES[sys.argv[1]](sys.argv[2])
