"""Whatever is wrong with a configuration: what looks and what ends an emergency works, what needs it refuses (A.0)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.in_process import InProcess
from tests.stores import dump_at
from tests.support import Cli, unprivileged

CONTENTS = {
    "syntax.yml": b"{broken",
    "list.yml": b"- broken\n",
    "type.yml": b"concurrency: {max_active_slots: yes}\n",
    "key.yml": b"concurency: {}\n",
    "lines.yml": b'"a\\nb\\e[1m": 1\n',
    "pattern.yml": b"redaction: {patterns: ['(']}\n",
    "bytes.yml": b"\xff\xfe\0",
    "deep.yml": b"a: " + b"[" * 10_000,
    "long.yml": b"redaction: {names: [" + b"9" * 5_000 + b"]}\n",
}
UNREADABLE = ("missing.yml", "directory.yml", "fifo.yml", "loop.yml", "list.yml/below", "n" * 300)
VARIABLE = "JOBMAN_CONCURRENCY_MAX_ACTIVE_SLOTS"
# Tables in which the supervisor of a living job writes.
LIVING = ("admissions", "supervisors")


def put(directory: Path) -> None:
    """Make every kind of file that cannot be read, and every kind that should not have been written."""
    for name, content in CONTENTS.items():
        (directory / name).write_bytes(content)
    (directory / "directory.yml").mkdir()
    os.mkfifo(directory / "fifo.yml")
    (directory / "loop.yml").symlink_to("loop.yml")


def stored(state: Path) -> object:
    """Return what refused commands must leave as it is while a job lives."""
    return {table: rows for table, rows in dump_at(state).items() if table not in LIVING}


def looking(job: str) -> tuple[tuple[str, ...], ...]:
    """Command lines that only look, at a job that lives and everything else."""
    shown = (("list",), ("status", job), ("show", job), ("show", "run", job, "1"), ("doctor",))
    return (*shown, *((*words, "--json") for words in shown), ("logs", job), ("clean", "done"), ("clean", "--all"))


def test_a_broken_configuration_keeps_nobody_from_a_living_job(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A.0, O.20: the file of --config, that of the user and the variable are broken at once, each in every way."""
    done = cli.finish("echo", "hello")
    job = cli.run("sh", "-c", "echo hello; exec cat", flags=("--name", "held", "--stdin", "live"))
    cli.await_phase(job, "running")
    jobman = InProcess(cli, monkeypatch, {"done": done})
    put(cli.cwd)
    user = Path(cli.environment["HOME"], ".config", "jobman", "jobman.yml")
    user.parent.mkdir(parents=True)
    monkeypatch.setenv(VARIABLE, "broken")
    wrong = []

    for number, name in enumerate((*CONTENTS, *UNREADABLE)):
        # What is missing is a failure, and what is there and wrong a mistake, which would come first.
        user.write_bytes(b"" if name in UNREADABLE else list(CONTENTS.values())[number])
        status = 1 if name in UNREADABLE else 2
        given = ("--config", name)
        before = stored(cli.state)
        for words in looking(job):
            found = jobman(*given, *words)
            wrong += [f"{words} with {name}: {found}"] if (found.status, found.err) != (0, "") else []
        assert jobman(*given, "wait", "--timeout", "0", job).status == 124
        for words in (("run", "--", "true"), ("rerun", "done"), ("config", "apply"), ("clean",), ("clean", "--force")):
            wrong += jobman.complaints(*words, status=2, says="invalid configuration: ")
            wrong += jobman.complaints(*given, *words, status=status)
        assert stored(cli.state) == before, name
        if number % 5 == 0:
            assert jobman(*given, "pause", job).out == f"{job}\tpaused\n"
            assert jobman(*given, "resume", job).out == f"{job}\trunning\n"
        assert jobman(*given, "input", job, stdin=b"x\n").out == "2\n"
    assert not wrong, "\n".join(wrong)

    assert jobman(*given, "clean", "done", "--force").status == 0
    assert jobman(*given, "cancel", "--wait", job).out.startswith(job)
    assert jobman(*given, "wait", job).out == f"{job}\tcancelled\n"


def test_a_file_that_may_not_be_read_keeps_nobody_from_looking(cli: Cli) -> None:
    """C: 1; also where it is the user's own, who did not name it."""
    (cli.cwd / "secret.yml").write_text("")
    (cli.cwd / "secret.yml").chmod(0)

    assert unprivileged(cli, "list", "--config", "secret.yml").status == 0
    for words in (("run", "--config", "secret.yml", "--", "true"), ("config", "apply", "--config", "secret.yml")):
        refused = unprivileged(cli, *words)
        assert (refused.status, refused.out) == (1, "")
        assert refused.err == "configuration file secret.yml: permission denied\n"

    assert cli.has_no_job()
