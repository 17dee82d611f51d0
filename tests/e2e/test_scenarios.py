"""Guards: every command and every flag of the tables has an end-to-end scenario that mentions it (house style, 14)."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobman.cli import flags
from jobman.cli.flags import Command, Flag
from tests.support import SCHEMAS

HERE = Path(__file__).parent


def commands() -> Iterator[type[Command]]:
    """Yield the table of every command, nested ones included."""
    pending = [flags.load(verb) for verb in flags.verbs()]
    while pending:
        command = pending.pop(0)
        pending += command.subcommands
        yield command


def words_of(node: ast.AST, verb: str) -> Iterator[tuple[str, str]]:
    """Yield every string of a scenario with the verb to which it belongs: ``("logs", "--lines")``.

    A call or a tuple that begins with a verb belongs to that one, ``Cli.run`` and ``flags=`` to ``run``.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield verb, node.value
    if isinstance(node, ast.Call):
        verb = "run" if getattr(node.func, "attr", "") in ("run", "finish") else verb_in(node.args, verb)
    elif isinstance(node, ast.Tuple | ast.List):
        verb = verb_in(node.elts, verb)
    elif isinstance(node, ast.keyword) and node.arg == "flags":
        verb = "run"
    for child in ast.iter_child_nodes(node):
        yield from words_of(child, verb)


def verb_in(elements: list[ast.expr], otherwise: str) -> str:
    """Return the verb with which a list of expressions begins."""
    first = elements[0] if elements else None
    word = first.value if isinstance(first, ast.Constant) else None
    return word if isinstance(word, str) and word in flags.verbs() else otherwise


@functools.cache
def scenarios() -> tuple[tuple[str, str], ...]:
    """Return the strings of all scenarios but these guards, each with its verb: by default that of the file's name."""
    found: list[tuple[str, str]] = []
    for path in HERE.glob("test_*.py"):
        if path != Path(__file__):
            found += words_of(ast.parse(path.read_text("utf-8")), path.stem.split("_")[1])
    return tuple(found)


def is_mentioned(verb: str, flag: Flag) -> bool:
    """Say whether a scenario gives this flag, in its long or its short form, to this verb."""
    spelling = re.compile(rf"--{flag.name}(=|$)" + (rf"|-{flag.short}" if flag.short else ""))
    return any(owner == verb and spelling.match(word) for owner, word in scenarios())


ROWS = [
    pytest.param(command, flag, id=f"{' '.join(command.path)} --{flag.name}")
    for command in commands()
    for flag in flags.flags_of(command)
    if flag.name != "help"  # test_help.py asks every command of the tables
]


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: " ".join(command.path))
def test_every_command_is_called(command: type[Command]) -> None:
    pattern = r'\(\s*"' + r'",\s*"'.join(command.path) + '"'
    files = [path.read_text("utf-8") for path in HERE.glob("test_*.py") if path != Path(__file__)]
    assert any(re.search(pattern, text) for text in files)


@pytest.mark.parametrize(("command", "flag"), ROWS)
def test_every_flag_is_given_to_its_command(command: type[Command], flag: Flag) -> None:
    verbs = flags.verbs() if flag in flags.PERSISTENT else (command.path[0],)
    assert any(is_mentioned(verb, flag) for verb in verbs)


def test_every_command_that_prints_documents_has_a_schema() -> None:
    printing = {command.path for command in commands() if "json" in {flag.name for flag in flags.flags_of(command)}}
    names = {"-".join(path) for path in printing if path != ("show",)}
    without_a_flag = {"config-show", "config-show-origins"}
    schemas = {path.name.removesuffix(".schema.json") for path in SCHEMAS.glob("*.json")} - {"common"}
    assert names | without_a_flag == schemas
