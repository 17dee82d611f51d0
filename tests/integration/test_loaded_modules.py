"""What a command and a supervisor load, module by module, and keep: a newcomer costs every job (ADR 0016).

Who adds a module to a list has measured it: ``make bench ROW=run`` and ``ROW=waiting_memory``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.faults.injection import interpreter, run_with, traced, wrapped_interpreter
from tests.support import Cli, eventually, installed_command, processes_of


def named(listing: str) -> set[str]:
    """Return the modules of lines ``package: modules``, the package itself included."""
    found: set[str] = set()
    for line in listing.split("\n"):
        package, _, names = line.strip().partition(":")
        found.update({package} | {f"{package}.{name}" for name in names.split()} if package else names.split())
    return found


def loaded(*traces: str) -> set[str]:
    """Return the modules in what ``-X importtime`` wrote."""
    return {name for trace in traces for name in re.findall(r"^import time:.*\| +(\S+)$", trace, re.MULTILINE)}


@cache
def bare(*flags: str) -> set[str]:
    """Return what the interpreter loads to start, which another environment may have more of."""
    argv = [sys.executable, *flags, "-X", "importtime", "-c", "pass"]
    return loaded(subprocess.run(argv, capture_output=True, text=True, check=True).stderr)


def loaded_by_command(cli: Cli, *words: str) -> set[str]:
    """Return what the installed command loads beyond that."""
    argv = [sys.executable, "-X", "importtime", installed_command(), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env=cli.environment, cwd=cli.cwd)
    return loaded(done.stderr) - bare()


def test_status_loads_what_it_needs(cli: Cli) -> None:
    job_id = cli.run("true")

    assert loaded_by_command(cli, "status", job_id) - STATUS == set()


def test_run_loads_what_it_needs(cli: Cli) -> None:
    cli.run("true")  # which may be writing: who waits for it needs the numbers of signals

    assert loaded_by_command(cli, "run", "--name", "x", "--", "true") - RUN == set()


def test_supervisors_load_what_they_need(cli: Cli, tmp_path: Path) -> None:
    """One that waits and one that runs, from their start on; after it nothing is loaded (test_supervisor_imports)."""
    first = tmp_path / "first"
    # Standard error is /dev/null until the claim, then the supervisor's own log.
    python = interpreter(tmp_path / "python", f'exec {sys.executable} -X importtime "$@" 2>{first}')

    def loaded_by_supervisor(phase: str, *words: str) -> set[str]:
        job_id = run_with(cli, python, *words).out.strip()
        cli.await_phase(job_id, phase)
        traces = (first.read_text(), (cli.state / "run" / f"{job_id}.log").read_text())
        assert all(traces)
        return loaded(*traces) - bare("-I", "-S") - SUPERVISOR

    running = loaded_by_supervisor("running", "--name", "first", "--", "sleep", "60")
    waiting = loaded_by_supervisor("waiting", "--after-success", "first", "--", "true")
    cli("cancel", "first")
    eventually(lambda: not processes_of(cli.state))

    assert (running, waiting) == (set(), set())


def test_a_supervisor_that_waits_gives_back_what_its_start_left_free(cli: Cli, tmp_path: Path) -> None:
    """ADR 0016: once, when nothing has happened up to a look."""
    log = tmp_path / "log"
    python = wrapped_interpreter(tmp_path / "python", traced("madvise", "poll", log=log))
    job_id = run_with(cli, python, "--wait-delay", "1h", "--", "true").out.strip()

    eventually(lambda: "MADV_DONTNEED" in log.read_text())
    looks = log.read_text().count("poll(")
    eventually(lambda: log.read_text().count("poll(") > looks + 1)
    cli("cancel", job_id)
    eventually(lambda: not processes_of(cli.state))

    _, _, later = log.read_text().partition("MADV_DONTNEED")
    assert "MADV_DONTNEED" not in later.partition("poll(")[2]


STATUS = named("""
    : __future__ _collections apsw errno fcntl gc
    jobman: __main__ clock errors private recovery values
    jobman.cli: app flags output parser redacting render
    jobman.cli.commands: _backend status
    jobman.cli.flags: status
    jobman.config: load paths redaction
    jobman.model: identity ids invariants scalars state
    jobman.policy: explain limits liveness
    jobman.process: liveness own spawn
    jobman.service: notify query
    jobman.store: binding connection jobs live_input migrations rows safety selectors transaction
""")
RUN = named("""
    : __future__ _collections _json _sha2 _sha256 apsw errno fcntl gc itertools resource select
    jobman: __main__ clock errors handshake private signals values
    jobman.cli: app output parser values
    jobman.cli.commands: _spec _waits run
    jobman.cli.flags: run
    jobman.config: load paths
    jobman.model: canonical events identity ids invariants scalars secrets spec spec_json spec_rules state strict
    jobman.model: waits waits_json
    jobman.model.transitions: _change submission
    jobman.policy: limits
    jobman.process: spawn
    jobman.service: launch submit
    jobman.store: binding commit connection migrations rows safety selectors transaction
""")
SUPERVISOR = named("""
    : __future__ _collections _collections_abc _ctypes _json _sha2 _sha256 _stat _struct apsw errno fcntl
    : gc genericpath google_crc32c google_crc32c.__config__ google_crc32c._checksum google_crc32c._crc32c
    : google_crc32c.cext itertools os posixpath resource select stat struct warnings
    jobman: clock errors handshake private signals values
    jobman.config: secrets
    jobman.logs: capture combined durable index layout runfiles scan
    jobman.model: canonical events identity ids invariants scalars secrets spec spec_json spec_rules state strict
    jobman.model: waits waits_json
    jobman.model.transitions: _change recovery running stopping submission
    jobman.policy: admission backoff classify completion conditions deadline decide ladder liveness
    jobman.policy: notices observation polling waiting
    jobman.process: _api _linux _linux_library exits launch liveness lookup own senders spawn tree wake
    jobman.recovery: losing
    jobman.store: admissions binding claim commit conditions connection dependencies jobs live_input
    jobman.store: migrations outbox rows safety specs transaction
    jobman.supervisor: admission commits conditions deliveries ending environment loop notes observe ownership
    jobman.supervisor: perform probes run stdin stop tree
""")
