"""Every command with every flag, given what it takes and each kind of what it does not (contract, A.0, A.2, C; D16)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobman.cli import flags
from jobman.cli.flags import Command, Flag
from jobman.cli.parser import parse
from tests.in_process import InProcess
from tests.stores import dump_at
from tests.support import Cli, assert_no_process
from tests.usage import (
    CONFIG,
    ID,
    NEED_CONFIG,
    NEED_NO_STORE,
    OPERANDS,
    STATUSES,
    Words,
    command_line,
    flag_words,
    operand_values,
    values_of,
)

EVERY: list[type[Command]] = [flags.Root, *flags.tables()]
# These say what to run, in the place of a target.
_WITHOUT_TARGET = ("job-spec", "rerun")

each_command = pytest.mark.parametrize("command", EVERY, ids=lambda command: " ".join(command.path) or "jobman")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """A store with a job that has ended, two of one name, a pool and a configuration."""
    directory = tmp_path_factory.mktemp("usage")
    (directory / "work").mkdir()
    cli = Cli(directory / "state", directory / "work")
    (cli.cwd / "good.yml").write_text(CONFIG)
    (cli.cwd / "broken.yml").write_text("concurrency: [\n")
    (cli.cwd / "wrong.yml").write_text("retention: {max_jobs: many}\n")
    user = Path(cli.environment["HOME"], ".config", "jobman")
    user.mkdir(parents=True)
    (user / "jobman.yml").write_text(CONFIG)
    done = cli.finish("echo", "text")
    for _ in range(2):
        cli.finish("true", flags=("--name", "twice"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield InProcess(cli, monkeypatch, {"done": done})
    assert_no_process(cli.state)


def everything(jobman: InProcess) -> tuple[Any, ...]:
    """What a command that is refused must not change: all rows, and all files of the state and working directories."""
    files = {str(path): path.stat().st_size for path in jobman.cli.cwd.rglob("*")}
    kept = {str(path) for path in jobman.state.rglob("*") if not path.name.startswith(("jobman.db-", "config-"))}
    return dump_at(jobman.state), files, kept - {str(jobman.state / "cache")}


def own_flags(command: type[Command]) -> list[Flag]:
    """Return the flags of a command without those that all commands share."""
    return [flag for _, group in command.groups for flag in group]


def whole(command: type[Command], flag: Flag, value: str | Words) -> Words:
    """Return a command line in which a flag has a value."""
    return command_line(command, flag_words(flag, value), target=flag.name not in _WITHOUT_TARGET)


def plain_value(command: type[Command], flag: Flag) -> str | Words:
    """Return a value that makes a flag count."""
    return "" if flag.kind.name == "bool" else values_of(command, flag).valid[0]


def test_no_flag_has_been_forgotten() -> None:
    """A new flag is tested as its kind says, or has a row of its own in `tests.usage`."""
    forgotten = []
    for command in EVERY:
        for flag in own_flags(command):
            try:
                assert values_of(command, flag).valid
            except KeyError:
                forgotten.append((*command.path, flag.name))
    assert forgotten == []


@each_command
def test_what_a_flag_does_not_take_is_refused_and_changes_nothing(prepared: InProcess, command: type[Command]) -> None:
    """Status, one line on stderr that names the flag, nothing on stdout, the same rows and the same files."""
    before, wrong = everything(prepared), []
    for flag in own_flags(command):
        values = values_of(command, flag)
        for value in values.invalid:
            wrong += prepared.complaints(*whole(command, flag, value), status=2, says=f"--{flag.name}")
        for status, value in values.refused:
            wrong += prepared.complaints(*whole(command, flag, value), status=status)
        if flag.kind.name != "bool":
            wrong += prepared.complaints(*command.path, f"--{flag.name}", status=2, says=f"--{flag.name} needs a value")
    rows = {flag.name: flag for flag in own_flags(command)}
    for names in command.exclusive:
        words = (word for name in names for word in flag_words(rows[name], plain_value(command, rows[name])))
        wrong += prepared.complaints(*command_line(command, tuple(words)), status=2, says="exclude each other")
    unknown = command_line(command, ("--no-such-flag",))
    wrong += prepared.complaints(*unknown, status=2, says="unknown flag --no-such-flag")
    assert not wrong, "\n".join(wrong)
    assert everything(prepared) == before


@each_command
def test_operands_that_are_not_taken_are_refused_and_change_nothing(
    prepared: InProcess, command: type[Command]
) -> None:
    """Each with each kind of what it does not take; one too few, and one too many."""
    before, wrong, given = everything(prepared), [], OPERANDS.get(command.path, ())
    for place, operand in enumerate(command.operands):
        values = operand_values(operand)
        for status, value in (*((2, value) for value in values.invalid), *values.refused):
            if isinstance(value, str):
                words = (*command.path, *given[:place], value, *given[place + 1 :])
                wrong += prepared.complaints(*words, status=status)
    if given:
        wrong += prepared.complaints(*command.path, *given[:-1], status=2, says=" arg(s), received ")
    if not (command.operands and command.operands[-1].repeated):
        wrong += prepared.complaints(*command.path, *given, "more", "of", "them", status=2)
    assert not wrong, "\n".join(wrong)
    assert everything(prepared) == before


@each_command
def test_a_flag_means_the_same_however_it_is_written_and_the_last_of_two_wins(command: type[Command]) -> None:
    """A.0: with a blank or ``=``, short ones also with nothing between; what may be repeated adds up."""
    for flag in own_flags(command):

        def value(*words: str, flag: Flag = flag) -> Any:
            return parse(command_line(command, words)).value(flag.name)

        long = f"--{flag.name}"
        if flag.kind.name == "bool":
            assert (value(long), value(f"{long}=T"), value(f"{long}=0"), value(long, f"{long}=false")) == (
                *(True, True),
                *(False, False),
            )
            assert not flag.short or (value(f"-{flag.short}"), value(f"-{flag.short}=f")) == (True, False)
            continue
        # What stands for the ID of a job is one here.
        ids = {"done": ID} if flag.kind.name == "id" else {}
        given = [word if isinstance(word, str) else word[0] for word in values_of(command, flag).valid]
        words = [ids.get(word, word) for word in given]
        first, last = words[0], words[-1]
        assert value(long, last) == value(f"{long}={last}")
        both = value(long, first) + value(long, last) if flag.kind.repeated else value(long, last)
        assert value(long, first, f"{long}={last}") == both
        if flag.short:
            written = ((f"-{flag.short}", last), (f"-{flag.short}{last}",), (f"-{flag.short}={last}",))
            assert [value(*form) for form in written] == [value(long, last)] * 3


@each_command
def test_what_a_flag_takes_is_understood(prepared: InProcess, command: type[Command]) -> None:
    """Status 0, or 5 where a job that has ended allows no more; stderr is silent, and documents keep their schema."""
    expected, wrong = STATUSES.get(command.path, 0), []
    for flag in own_flags(command):
        for value in values_of(command, flag).valid:
            words = whole(command, flag, value)
            done = prepared(*words)
            if (done.status, done.err.count("\n")) != (expected, int(expected != 0)) or (expected and done.out):
                wrong.append(f"{words}: {done}")
    assert not wrong, "\n".join(wrong)


@each_command
def test_the_flags_that_all_commands_share(prepared: InProcess, command: type[Command]) -> None:
    """C.1, A.0: help wins; a configuration or a state directory keeps only those from working who need it."""
    before, wrong = everything(prepared), []
    shown = prepared(*command.path, "--help")
    assert (shown.status, shown.err) == (0, "")
    assert shown.out == prepared("help", *command.path).out
    wrong += prepared.complaints(*command.path, "--help=perhaps", status=2, says="--help")
    for name in ("config", "state-dir"):
        wrong += prepared.complaints(*command.path, f"--{name}", status=2, says=f"--{name} needs a value")
    opens = command.path and command.path not in NEED_NO_STORE
    for path in ("good.yml", "good.yml/below", "/proc/none", os.fsdecode(b"\xff")):
        words = command_line(command, ("--state-dir", path))
        if opens and command.path != ("doctor",):
            wrong += prepared.complaints(*words, status=1)
    for path, status in (("broken.yml", 2), ("wrong.yml", 2), ("missing.yml", 1), (".", 1), ("/dev/null", 1)):
        words = command_line(command, ("--config", path))
        if command.path in NEED_CONFIG:
            wrong += prepared.complaints(*words, status=status, says=path.removeprefix("."))
        else:
            done = prepared(*words)
            if done.status != STATUSES.get(command.path, 0):
                wrong.append(f"{words}: {done}")
    assert not wrong, "\n".join(wrong)
    assert everything(prepared) == before
