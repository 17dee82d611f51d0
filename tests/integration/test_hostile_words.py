"""Random bytes and hostile values at every command and flag: one line at most, a known status, a sound store (A.0, C).

A few hundred command lines by default, always the same ones. To look for more: ``JOBMAN_FUZZ_SEED=7
JOBMAN_FUZZ_LINES=100000 pytest tests/integration/test_hostile_words.py``.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from jobman.cli import flags
from jobman.cli.flags import Command, Flag, Operand
from tests.in_process import InProcess
from tests.stores import dump_at, fast_store
from tests.support import Cli
from tests.usage import CONFIG, KINDS, Words, values_of

SEED, LINES = int(os.environ.get("JOBMAN_FUZZ_SEED", "1")), int(os.environ.get("JOBMAN_FUZZ_LINES", "300"))
# Those that take the most, more often.
EVERY: list[type[Command]] = [flags.Root, *flags.tables(), *[flags.load("run")] * 8, *[flags.load("logs")] * 3]
# What somebody may put where something else is expected: of other grammars, other alphabets, other sizes.
HOSTILE = (
    *(
        "",
        " ",
        "-",
        "--",
        "---",
        "-1",
        "0",
        "00",
        "1_000",
        "0x10",
        "1e3",
        ".5d",
        "07",
        "yes",
        "null",
        "~",
        "nan",
        "inf",
    ),
    *("%s%n", "*", "[", "]", "{", "}", "'", '"', "\\", "`", "$(x)", ";", "\n", "\r", "\t", "\x1b[2J", "\x7f", "\x9b"),
    *("\u2028", "\u202e", "\ufeff", "\ufffe", "\U0010ffff", "\u0661", "\u0130", "e\u0301", "\udcff", "\udc80\udcff"),
    *("../..", ".", "con.yml", "a=" * 100, "=", "==", ",", ",,", "a,b", "done"),
    *("twice", "good.yml", "broken.yml", str(2**63), str(-(2**63)), str(2**64), "1" + "0" * 400, "unlimited", "all"),
)
VARIABLES = (
    *("JOBMAN_STATE_DIR", "JOBMAN_CONCURRENCY_MAX_ACTIVE_SLOTS", "JOBMAN_RETENTION_COMPLETED_METADATA_MAX_AGE"),
    *("JOBMAN_RETENTION_COMPLETED_LOG_MAX_AGE", "JOBMAN_RETENTION_MAX_JOBS", "JOBMAN_RETENTION_MAX_RUNS_PER_JOB"),
    *("JOBMAN_RETENTION_MAX_LOG_BYTES_PER_JOB", "JOBMAN_RETENTION_MAX_TOTAL_LOG_BYTES", "JOBMAN_NOTHING"),
    *("JOBMAN_JOB_ID", "JOBMAN_RUN_ID", "JOBMAN_RUN_NUMBER", "JOBMAN_SUPERVISOR", "JOBMAN_EVENT_ID", "JOBMAN_SLOTS"),
    *("XDG_CONFIG_HOME", "TZ", "LANG", "LC_ALL", "PATH", "TMPDIR", "COLUMNS", "TERM"),
)
PLAIN: tuple[Words, ...] = (
    *(("list", "--show-runs"), ("status", "done"), ("show", "done", "--json"), ("logs", "done"), ("doctor",)),
    *(("run", "--", "true"), ("rerun", "done"), ("clean",), ("config", "show", "--json"), ("config", "paths")),
    *(("config", "validate"), ("config", "apply"), ("__complete", "status", ""), ("cancel", "done"), ("wait", "done")),
)
_ANY_STATUS = {("run",), ("wait",)}
"""With ``--exit-code`` they end as the command did."""
_COMPLETE = (("__complete",), ("__complete_bare",))
# Where these point, something is written: not outside the directories of the test.
_WRITTEN = ("state-dir", "backup")


class Author:
    """Writes command lines at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  # no secret

    def line(self) -> tuple[type[Command], Words]:
        """Return a command and words that call it, or something like it."""
        command = self.random.choice(EVERY)
        words = [word for _ in range(self._few()) for word in self._flag(command)]
        words += [self._operand(operand) for operand in command.operands if self.random.random() < 0.9]
        if self.random.random() < 0.2:
            words.insert(self.random.randrange(len(words) + 1), self._text())
        if command.target and self.random.random() < 0.8:
            words += ["--", *(self._text() for _ in range(self._few()))]
        begin = self.random.choice(_COMPLETE) if self.random.random() < 0.05 else ()
        return command, (*begin, *command.path, *words)

    def environment(self) -> dict[str, str]:
        """Return values for some of the variables that mean something to us; where a store may lie, below here."""
        named = self.random.sample(VARIABLES, self._few())
        values = {name: self._text().replace("\0", "") for name in named}
        if "JOBMAN_STATE_DIR" in values:
            values["JOBMAN_STATE_DIR"] = "below-" + values["JOBMAN_STATE_DIR"].replace("/", "_")[:50]
        return values

    def configuration(self) -> bytes:
        """Return a configuration in which something was cut, doubled, or replaced by something else."""
        content = bytearray(CONFIG.encode())
        for _ in range(1 + self._few()):
            start, size = self.random.randrange(len(content)), self.random.randrange(30)
            found = bytes(content[start : start + size])
            other = (b"", found * 2, self._text().encode("utf-8", "surrogateescape"), self.random.randbytes(4))
            content[start : start + size] = self.random.choice(other)
        return bytes(content)

    def _few(self) -> int:
        return self.random.choice((0, 1, 1, 1, 2, 3))

    def _flag(self, command: type[Command]) -> Words:
        flag = self.random.choice([flag for flag in flags.flags_of(command) if flag is not flags.HELP])
        if flag.name == "force" and self.random.random() < 0.9:
            return ()  # without a job there is little to be asked
        value = self._text() if self.random.random() < 0.3 else self._typical(command, flag)
        if flag.name in _WRITTEN:
            value = "below-" + value.replace("/", "_")[:50]
        if flag.kind.name == "bool":
            return (self.random.choice((f"--{flag.name}", f"--{flag.name}={value}")),)
        if flag.short and self.random.random() < 0.3:
            return (f"-{flag.short}{value}",)
        return (f"--{flag.name}={value}",) if self.random.random() < 0.5 else (f"--{flag.name}", value)

    def _typical(self, command: type[Command], flag: Flag) -> str:
        try:
            values = values_of(command, flag)
        except KeyError:
            return self._text()
        value = self.random.choice(values.valid if self.random.random() < 0.7 else values.valid + values.invalid)
        return value if isinstance(value, str) else value[0]

    def _operand(self, operand: Operand) -> str:
        known = KINDS[operand.kind.name].valid if operand.kind.name in KINDS else operand.kind.words
        if known and self.random.random() < 0.6:
            value = self.random.choice(known)
            return value if isinstance(value, str) else value[0]
        return self._text()

    def _text(self) -> str:
        kind = self.random.random()
        if kind < 0.1:
            return "[" * 10_000 if kind < 0.01 else "x" * 70_000 if kind < 0.02 else "9" * 5_000
        if kind < 0.5:
            return self.random.choice(HOSTILE)
        if kind < 0.7:
            return "".join(self.random.choice(HOSTILE)[:9] for _ in range(3))
        raw = bytes(self.random.randrange(1, 256) for _ in range(self.random.randrange(12)))
        # The kernel hands over no NUL.
        return raw.decode("utf-8", "surrogateescape")


@pytest.fixture
def jobman(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """A store with a job that has ended and two of one name, and files that may be read."""
    for name, content in (("good.yml", CONFIG), ("broken.yml", "a: [\n"), ("con.yml", "[" * 10_000)):
        (cli.cwd / name).write_text(content)
    jobman = InProcess(cli, monkeypatch, {"done": cli.finish("echo", "text")})
    for _ in range(2):
        assert jobman("run", "--name", "twice", "--", "true").status == 0
    return jobman


def test_nothing_that_is_typed_does_any_harm(jobman: InProcess) -> None:
    """No defect shows, whatever the words: `InProcess` looks at what is said, this at the status and the store."""
    author = Author(SEED)
    for number in range(LINES):
        command, words = author.line()
        before = dump_at(jobman.state)
        done = jobman(*words, stdin=b"\0\xff")
        where = f"line {number} of seed {SEED}: {words}: {done}"
        assert done.status in command.exits or command.path in _ANY_STATUS, where
        assert len(done.err) < 20_000, where
        if done.status == 2:
            assert (done.out, done.err.count("\n")) == ("", 1), where
            assert dump_at(jobman.state) == before, where
    store = fast_store(jobman.state)
    assert store.execute("PRAGMA integrity_check") == [("ok",)]
    assert store.execute("PRAGMA foreign_key_check") == []
    store.close()
    assert jobman("doctor").out.startswith("healthy")
    assert {path.name for path in Path(jobman.cli.cwd).iterdir() if not path.name.startswith("below-")} == {
        *("good.yml", "broken.yml", "con.yml")
    }


def test_no_variable_does_any_harm(jobman: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """D.1, K.7: one line and a known status, whatever the environment says."""
    author = Author(SEED)
    for number in range(LINES // 4):
        words, values = author.random.choice(PLAIN), author.environment()
        with monkeypatch.context() as changed:
            for name, value in values.items():
                changed.setenv(name, value)
            done = jobman(*words)
        where = f"line {number} of seed {SEED}: {values} {words}: {done}"
        assert done.status in {0, 1, 2, 3}, where
        assert done.status == 0 or words == ("doctor",) or (done.out, done.err.count("\n")) == ("", 1), where
    assert jobman("doctor").out.startswith("healthy")


def test_no_configuration_does_any_harm(jobman: InProcess) -> None:
    """K: it is understood, or refused in one line before anything is stored."""
    author = Author(SEED)
    for number in range(LINES // 4):
        words, content = author.random.choice(PLAIN), author.configuration()
        (Path(jobman.cli.cwd) / "con.yml").write_bytes(content)
        before = dump_at(jobman.state)
        done = jobman(*words, "--config", "con.yml") if words[0] != "run" else jobman("run", "--config=con.yml", "true")
        where = f"line {number} of seed {SEED}: {content!r} {words}: {done}"
        assert done.status in {0, 1, 2, 5}, where
        if done.status and words != ("doctor",):
            assert (done.out, done.err.count("\n")) == ("", 1), where
            assert dump_at(jobman.state) == before, where
    assert jobman("doctor").out.startswith("healthy")
