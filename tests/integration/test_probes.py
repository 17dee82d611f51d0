"""Probes under a real supervisor: they never hold its loop, and never outlive their purpose (D7, D30, M14)."""

from __future__ import annotations

import os
import resource
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from jobman.model.spec import JobSpec
from jobman.model.waits import Probe, WaitCondition, WaitKind, WaitMode, Waits
from jobman.policy.conditions import PROBE_TIMEOUT
from jobman.supervisor.probes import ProbeContext, ProbeRun
from jobman.testing import FakeClock
from tests.integration.submitting import submit_spec
from tests.support import Cli, eventually, processes_of, supervisor_pids

SECOND = 10**9


def probing(cli: Cli, script: str, *others: WaitCondition, poll_ns: int = SECOND // 20, mode: str = "all") -> JobSpec:
    """A job that waits for ``script``."""
    probe = WaitCondition(WaitKind.PROBE, probe=Probe("/bin/sh", ("-c", script)), poll_interval_ns=poll_ns)
    waits = Waits(WaitMode(mode), (probe, *others))
    return JobSpec("/bin/sh", ("-c", "echo ran"), str(cli.cwd), waits=waits)


def probes_of(cli: Cli) -> set[int]:
    """Return the processes that are no supervisors."""
    return processes_of(cli.state).keys() - set(supervisor_pids(cli.state))


def cpu_ticks(pid: int) -> int:
    """Return the CPU time that a process has used, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_job_runs_when_its_probe_says_so(cli: Cli) -> None:
    """Traps: it has the submitter's limits, of which the supervisor lifts one for itself."""
    script = "test -e ready && grep 'Max file size' /proc/self/limits | grep ' 1000000000 '"
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (1_000_000_000, 2_000_000_000))
    job_id = submit_spec(cli, probing(cli, script), preexec_fn=limit)
    eventually(lambda: (cli.json("show", job_id)["wait_evaluations"] or [{"attempt_count": 0}])[0]["attempt_count"] > 1)
    assert cli.json("status", job_id)["reason"] == "waiting for a probe to succeed"
    (cli.cwd / "ready").touch()
    assert cli.wait(job_id) == "success"
    assert cli("logs", job_id).out == "ran\n"
    (shown,) = cli.json("show", job_id)["wait_evaluations"]
    assert shown["condition_kind"] == "probe"
    assert "last_diagnostic_code" not in shown


def test_a_probe_that_survives_its_kill_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """D30, C4: one that hangs in the kernel, as on a file server that is away, must not hold the supervisor's loop."""
    clock, killed = FakeClock(), list[int]()
    monkeypatch.setattr("jobman.supervisor.probes.os.killpg", lambda pid, _signal: killed.append(pid))
    context = ProbeContext({}, "/", 0o022, lock_fd=10_000, clock=clock, inherited={})
    open_before = os.listdir("/proc/self/fd")
    probe = ProbeRun(Probe("/bin/sleep", ("60",), timeout_ns=SECOND), context)
    clock.advance(SECOND)
    found = probe.poll()
    try:
        assert found is not None
        assert found.code == PROBE_TIMEOUT
        assert (len(killed), probe.pids()) == (1, [])
        assert os.listdir("/proc/self/fd") == open_before
    finally:
        monkeypatch.undo()
        os.kill(killed[0], signal.SIGKILL)
        os.waitpid(killed[0], 0)


def test_a_cancellation_does_not_wait_for_a_probe(cli: Cli) -> None:
    """D30: the original took as long as the probe."""
    job_id = submit_spec(cli, probing(cli, "trap '' TERM; sleep 30 & sleep 30; sleep 30"))
    eventually(lambda: len(probes_of(cli)) == 3)
    before = time.monotonic()
    cli("cancel", "--wait", job_id)
    assert time.monotonic() - before < 10, "far less than the probe takes"
    assert cli.json("status", job_id)["outcome"] == "cancelled"
    eventually(lambda: not processes_of(cli.state))


def test_a_pause_ends_the_probe_and_costs_nothing(cli: Cli) -> None:
    job_id = submit_spec(cli, probing(cli, "sleep 0.3; exit 1"))
    eventually(lambda: probes_of(cli))
    cli("pause", job_id)
    eventually(lambda: not probes_of(cli))
    (supervisor,) = supervisor_pids(cli.state)
    before, until = cpu_ticks(supervisor), time.monotonic() + 1
    eventually(lambda: time.monotonic() > until)
    assert cpu_ticks(supervisor) - before < 0.25 * os.sysconf("SC_CLK_TCK"), "the loop spins"
    cli("resume", job_id)
    eventually(lambda: probes_of(cli), "asked again")
    cli("cancel", job_id)
    assert cli.wait(job_id) == "cancelled"


def test_the_first_condition_that_holds_overtakes_a_probe(cli: Cli) -> None:
    soon = WaitCondition(WaitKind.DELAY, delay_ns=SECOND // 2)
    job_id = submit_spec(cli, probing(cli, "sleep 60 & sleep 60", soon, mode="any"))
    assert cli.wait(job_id) == "success"
    eventually(lambda: not processes_of(cli.state))


def test_a_probe_that_talks_without_end_is_read_and_does_not_hold_the_loop(cli: Cli) -> None:
    job_id = submit_spec(cli, probing(cli, "exec yes"))
    eventually(lambda: probes_of(cli))
    cli("cancel", "--wait", job_id)
    eventually(lambda: not processes_of(cli.state))


def test_a_target_never_sees_its_probe_nor_its_own_marks_in_it(cli: Cli) -> None:
    """D34: a probe knows its job, but belongs to no run."""
    script = 'echo "${JOBMAN_JOB_ID-none} ${JOBMAN_RUN_ID-none} ${JOBMAN_SUPERVISOR-none}" >seen'
    job_id = submit_spec(cli, probing(cli, script))
    assert cli.wait(job_id) == "success"
    assert (cli.cwd / "seen").read_text() == f"{job_id} none none\n"
