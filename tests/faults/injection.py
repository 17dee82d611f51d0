"""Killing a client or a supervisor at a chosen system call, and looking at what is left, from outside.

``strace`` counts the calls of one process and delivers the signal on entry, so that the call itself does not happen. It
runs as a detached grandchild (``-DDD``): the traced process keeps its parent, its session and its PID.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from jobman import process
from jobman.model.identity import Presence, ProcessIdentity
from jobman.process import liveness
from tests.support import DEADLINE_S, Cli, Result, eventually, installed_command, processes_of, require_tool

ALL_POINTS = os.environ.get("JOBMAN_FAULTS") == "all"
DRIVER = """\
import sys
sys.executable = sys.argv.pop(1)
sys.argv[0] = "jobman"
from jobman.__main__ import main
sys.exit(main())
"""


def injected(
    syscall: str, number: int, fault: str = "signal=KILL", *, log: str = "/dev/null", every: str = ""
) -> list[str]:
    """The words before a command that suffers ``fault`` at its ``number``-th ``syscall``; its children do not.

    With ``every`` ``"+"`` it suffers it at each one after that, too.
    """
    strace = require_tool("strace")
    inject = f"inject={syscall}:{fault}:when={number}{every}"
    return [strace, "-DDD", "-qq", "-o", log, "-e", f"trace={syscall}", "-e", inject, "--"]


def traced(*syscalls: str, log: Path) -> list[str]:
    """The words before a command whose ``syscalls`` are written to ``log``; its children's are not."""
    return [require_tool("strace"), "-DDD", "-qq", "-y", "-o", str(log), "-e", "trace=" + ",".join(syscalls), "--"]


def with_threads(words: Sequence[str], *, executes: bool) -> list[str]:
    """``words`` of one of the above for a process and its threads, each counted by itself.

    If the process executes nothing, it is stopped by those calls only that are traced; on a busy machine the others
    take their time. Otherwise strace, which cannot do both, leaves alone what is executed.
    """
    return [words[0], "-f", *(("-b", "execve") if executes else ("--seccomp-bpf",)), *words[1:]]


def interpreter(path: Path, script: str) -> Path:
    """Write a stand-in for the interpreter that a client starts as supervisor; ``script`` is of ``sh``."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def wrapped_interpreter(path: Path, words: Sequence[str]) -> Path:
    """Write an interpreter that is the real one behind ``words``."""
    return interpreter(path, f'exec {" ".join(words)} {sys.executable} "$@"')


def run_with(cli: Cli, supervisor_interpreter: Path, *words: str, **options: Any) -> Result:
    """Run ``jobman run WORDS`` whose supervisor is executed by ``supervisor_interpreter``."""
    argv = [sys.executable, "-c", DRIVER, str(supervisor_interpreter), "run", *words]
    return _finished(cli, argv, **options)


def run_under(cli: Cli, prefix: Sequence[str], *words: str, **options: Any) -> Result:
    """Run ``jobman WORDS`` behind ``prefix``."""
    return _finished(cli, [*prefix, installed_command(), *words], **options)


def _finished(cli: Cli, argv: Sequence[str], **options: Any) -> Result:
    options.setdefault("env", cli.environment)
    options.setdefault("cwd", cli.cwd)
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(argv, capture_output=True, check=False, timeout=DEADLINE_S, **options)
    out, err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return Result(done.returncode, out, err, done.stdout)


@contextmanager
def started(cli: Cli, argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start ``argv`` in the environment of ``cli`` with its output in a pipe; it is killed at the end."""
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    with subprocess.Popen(argv, env=cli.environment, cwd=cli.cwd, **options) as client:
        try:
            yield client
        finally:
            client.kill()


# --- The store from outside ----------------------------------------------------------------------------------------


def rows(state: Path, statement: str, *bindings: object) -> list[tuple[Any, ...]]:
    """Run a statement in the store of ``state`` on a connection of its own."""
    connection = apsw.Connection(str(state / "jobman.db"))
    try:
        connection.set_busy_timeout(10_000)
        return connection.execute(statement, bindings).fetchall()
    finally:
        connection.close()


def snapshot(state: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything the store says of jobs, their owners and their history."""
    tables = ("jobs", "runs", "supervisors", "admissions", "dependencies", "state_events")
    return {table: rows(state, f"SELECT * FROM {table}") for table in tables}  # noqa: S608  # names of our own


def expire_offers(state: Path) -> None:
    """Let the deadline of every submission that nobody has claimed have passed, an hour ago."""
    hour = 3_600_000_000_000
    statement = (
        "UPDATE jobs SET submitted_at_ns = submitted_at_ns - ?1, claim_deadline_ns = claim_deadline_ns - ?1"
        " WHERE phase = 'submitting'"
    )
    rows(state, statement, hour)


class Owner(NamedTuple):
    """The recorded supervisor of a job."""

    identity: ProcessIdentity
    lock: tuple[int, int]


def owner_of(state: Path, job_id: str) -> Owner | None:
    """The owner that the store names, past or present."""
    columns = "pid, creation_id, boot_id, pid_namespace, lock_device, lock_inode"
    found = rows(state, f"SELECT {columns} FROM supervisors WHERE job_id = ?", job_id)  # noqa: S608  # ours
    if not found:
        return None
    pid, creation, boot, namespace, device, inode = found[0]
    return Owner(ProcessIdentity(pid, creation, boot, namespace), (device, inode))


def is_held(state: Path, job_id: str, owner: Owner) -> bool:
    """Whether the recorded lock is held and the recorded process lives."""
    held = liveness.probe(f"{state}/run/{job_id}.lock", *owner.lock) == liveness.HELD
    return held and process.presence(owner.identity) == Presence.ALIVE


def left_in_run(state: Path) -> set[str]:
    """The files in ``run/`` that some job left there."""
    return set(os.listdir(state / "run")) - {"writer.lock"}


def assert_sound(state: Path) -> None:
    """The database keeps its own rules, and a finished job holds nothing."""
    assert rows(state, "PRAGMA integrity_check") == [("ok",)]
    assert rows(state, "PRAGMA foreign_key_check") == []
    held = "SELECT job_id FROM admissions JOIN jobs ON jobs.id = job_id WHERE released_at_ns IS NULL"
    assert rows(state, f"{held} AND phase = 'completed'") == []
    claimed = "SELECT job_id FROM supervisors JOIN jobs ON jobs.id = job_id WHERE supervisors.phase = 'claimed'"
    assert rows(state, f"{claimed} AND jobs.phase = 'completed'") == []
    assert rows(state, "SELECT runs.id FROM runs JOIN jobs ON jobs.id = job_id"
                       " WHERE runs.phase <> 'completed' AND jobs.phase = 'completed'") == []  # fmt: skip


def outcomes(cli: Cli) -> dict[str, str]:
    """The outcome of every job, once each has one."""
    eventually(lambda: not cli("list", "--active", "--json", "--all").out.count('"id"'), "a job is stuck")
    return dict(rows(cli.state, "SELECT id, outcome FROM jobs"))


def settled(cli: Cli) -> dict[str, str]:
    """What became of the jobs once offers are past their deadline and somebody has looked; nothing else is left."""
    cli("list")  # finishes a store that was being created
    # A supervisor that has got its offer decides within moments; one that has not is gone with its client.
    eventually(lambda: not processes_of(cli.state), f"{processes_of(cli.state)}")
    expire_offers(cli.state)
    found = outcomes(cli)
    assert rows(cli.state, "SELECT id FROM jobs WHERE phase <> 'completed'") == []
    assert_sound(cli.state)
    assert left_in_run(cli.state) == set()
    return found


# What an interpreter says of an interruption before it has come to our first line.
_INTERPRETER = re.compile(
    r"Fatal Python error|Failed checking if argv|\AKeyboardInterrupt$|/bin/jobman\", line \d+, in <module>"
)
_INTERRUPTED = re.compile(r"\A([a-z ]+: )?interrupted; (jobs go|the job goes) on\n\Z")


def assert_interrupted(done: Result) -> None:
    """A command that got SIGINT has done what it was to do, or says in one line that it has not."""
    if not _INTERPRETER.search(done.err):  # the interpreter's own start-up, before any line of ours
        said = _INTERRUPTED.sub("interrupted", done.err)
        assert (done.status, said) in {(0, ""), (-signal.SIGINT, ""), (1, "interrupted")}


@contextmanager
def no_leftover(pid_file: Path) -> Iterator[None]:
    """Kill the process that a target wrote its PID of to ``pid_file``, whatever became of its job."""
    try:
        yield
    finally:
        if pid_file.exists():
            for pid in pid_file.read_text().split():
                try:
                    os.kill(int(pid), 9)
                except ProcessLookupError:
                    pass
