from __future__ import annotations

import re
import shlex

import pytest

from jobman.cli import flags
from jobman.cli import help as help_module
from jobman.cli.flags import Command
from jobman.cli.help import render
from jobman.cli.parser import parse
from jobman.cli.values import convert
from jobman.model.state import JobOutcome, JobPhase

COMMANDS = [flags.Root, *flags.tables()]
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path) or "jobman")


# --- Guards: what every table must say -----------------------------------------------------------------------------


@each_command
def test_every_command_says_what_it_is_for(command: type[Command]) -> None:
    for text in (command.summary, *command.text):
        assert text.endswith(".")
    assert command.text
    assert command.synopsis
    for synopsis in command.synopsis:
        assert synopsis.startswith(" ".join(command.path))
    assert len(command.summary) <= 80


@each_command
def test_every_example_is_a_command_line_that_is_understood(command: type[Command]) -> None:
    assert command.examples
    for line, meaning in command.examples:
        program, *argv = shlex.split(line)
        assert program == "jobman"
        parsed = parse(argv)
        assert parsed.command[: len(command.path)] == command.path or parsed.help_requested
        assert meaning.endswith(".")


@each_command
def test_every_flag_says_what_it_does_and_has_a_name_of_its_own(command: type[Command]) -> None:
    rows = flags.flags_of(command)
    for row in rows:
        assert row.summary.endswith(".")
        assert re.fullmatch("[a-z]+(-[a-z]+)*", row.name)
        assert len(row.short) <= 1
        assert bool(row.metavar) == (row.kind is not flags.BOOL)
    spellings = [row.name for row in rows] + [row.short for row in rows if row.short]
    assert len(spellings) == len(set(spellings))


@each_command
def test_every_default_is_a_value_that_its_flag_accepts(command: type[Command]) -> None:
    for row in flags.flags_of(command):
        if row.default:
            convert(row.kind, row.default, row.name)


@each_command
def test_every_exclusion_is_among_flags_of_the_command(command: type[Command]) -> None:
    known = {row.name for row in flags.flags_of(command)}
    assert all(set(names) <= known for names in command.exclusive)


@each_command
def test_every_exit_status_has_a_meaning(command: type[Command]) -> None:
    assert set(command.exits) <= set(help_module.EXITS)


@each_command
def test_a_subcommand_takes_every_flag_of_its_parent(command: type[Command]) -> None:
    mine = {row.name for row in flags.flags_of(command)}
    for nested in command.subcommands:
        assert nested.path[:-1] == command.path
        assert mine <= {row.name for row in flags.flags_of(nested)}


def test_list_knows_the_phases_and_outcomes_of_the_model() -> None:
    rows = {row.name: row for row in flags.flags_of(flags.load("list"))}
    assert rows["phase"].kind.words == tuple(phase.value for phase in JobPhase)
    assert rows["outcome"].kind.words == tuple(outcome.value for outcome in JobOutcome)


def test_a_verb_without_a_table_is_not_found() -> None:
    assert flags.find(["bogus"]) is None
    assert flags.find(["status", "job"]) is None
    assert flags.find(["show", "run", "J"]) is None


# --- What is rendered ----------------------------------------------------------------------------------------------


@each_command
def test_help_mentions_every_flag_with_its_default(command: type[Command]) -> None:
    text = " ".join(render(command.path).split())
    for row in flags.flags_of(command):
        assert f"--{row.name} {row.metavar}".strip() in text
        assert row.summary in text
        assert not row.short or f"-{row.short}, --{row.name}" in text
        assert not row.default or f"default {row.default})" in text


@each_command
def test_help_shows_synopsis_examples_and_exit_statuses(command: type[Command]) -> None:
    lines = render(command.path).splitlines()
    assert lines[0] == command.summary
    for synopsis in command.synopsis:
        assert f"  jobman {synopsis}" in lines
    for line, _ in command.examples:
        assert f"  {line}" in lines
    for status in command.exits:
        assert any(line.split()[:1] == [str(status)] for line in lines)
    for nested in command.subcommands:
        assert any(" ".join(nested.path) in line and nested.summary in line for line in lines)


@each_command
def test_help_fits_100_columns_and_is_always_the_same(command: type[Command]) -> None:
    text = render(command.path)
    assert max(map(len, text.splitlines())) <= 100
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert text == render(command.path)


def test_help_of_jobman_lists_every_command_by_concern() -> None:
    lines = render(()).splitlines()
    for concern, verbs in flags.CONCERNS:
        start = lines.index(f"{concern}:")
        assert tuple(line.split()[0] for line in lines[start + 1 : start + 1 + len(verbs)]) == verbs
        for verb in verbs:
            assert any(flags.load(verb).summary in line for line in lines)


def test_help_of_run_groups_its_flags_by_concern() -> None:
    titles = [line for line in render(["run"]).splitlines() if re.fullmatch("[A-Z][a-z]+:", line)]
    first = [
        "Usage:",
        "Identity:",
        "Repetition:",
        "Execution:",
        "Input:",
        "Prerequisites:",
        "Admission:",
        "Completion:",
        "Delay:",
        "Timeout:",
        "Logging:",
    ]
    assert titles == [*first, "Notification:", "Client:", "Everywhere:", "Examples:"]


def test_a_name_wider_than_its_column_has_a_line_of_its_own() -> None:
    lines = help_module._columns([("x" * 40, "Long."), ("y", "word " * 30)])
    assert lines[:2] == ["  " + "x" * 40, " " * 36 + "Long."]
    assert lines[2].startswith("  y" + " " * 33 + "word word")
    assert lines[3].startswith(" " * 36 + "word")


def test_no_help_of_what_is_not_there() -> None:
    with pytest.raises(KeyError):
        render(["bogus"])
