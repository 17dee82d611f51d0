"""``--help``, ``jobman help`` and ``--version``: on stdout, with status 0, without a store (contract, A.0)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import pytest

from jobman.cli import flags
from jobman.cli.flags import Command
from tests.support import Cli


def paths() -> Iterator[tuple[str, ...]]:
    """Yield the words of every command, nested ones included."""

    def below(command: type[Command]) -> Iterator[tuple[str, ...]]:
        yield command.path
        for nested in command.subcommands:
            yield from below(nested)

    for verb in flags.verbs():
        yield from below(flags.load(verb))


@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
def test_every_command_tells_of_itself_in_every_way(cli: Cli, path: tuple[str, ...]) -> None:
    done = cli(*path, "--help")
    assert done.err == ""
    assert f"jobman {' '.join(path)}" in done.out
    for words in ((*path, "-h"), ("--help", *path), ("help", *path)):
        # "help" without a topic is about the program.
        if words != ("help", "help") or path != ("help",):
            assert cli(*words).out == done.out, words
    for flag in flags.flags_of(flags.find(path) or flags.Root):
        assert f"--{flag.name}" in done.out
    assert not cli.state.exists()


def test_the_program_tells_of_its_commands(cli: Cli) -> None:
    done = cli()
    assert done.err == ""
    for words in (("--help",), ("-h",), ("help",)):
        assert cli(*words).out == done.out
    for verb in flags.verbs():
        assert f"  {verb} " in done.out
    assert not cli.state.exists()


def test_help_needs_neither_a_home_nor_valid_words(cli: Cli) -> None:
    """Field case 15."""
    homeless = {"PATH": cli.environment["PATH"]}
    assert cli("run", "--help", env=homeless, cwd="/").err == ""
    assert cli("logs", "--help", "--", "x", "y").err == ""
    assert cli("--state-dir", "/proc/nowhere", "list", "--help").err == ""


def test_the_version_is_that_of_the_package(cli: Cli) -> None:
    for word in ("--version", "-v"):
        done = cli(word)
        assert done.err == ""
        assert done.out.startswith(f"jobman {version('jobman')}")
        assert done.out.count("\n") == 1
    assert not cli.state.exists()
    cli.refuses("version", status=2, says="invalid command usage: unknown command 'version'")
    cli.refuses("list", "--version", status=2, says="unknown flag --version")
