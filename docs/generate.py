"""Write ``docs/reference/commands.md`` from the tables that feed the parser and the help: ``make docs``.

A test fails when the file is not what this writes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jobman.cli import flags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobman.cli.flags import Command, Flag

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference", "commands.md")
_HEAD = """\
# Commands

<!-- Written by docs/generate.py from the tables in src/jobman/cli/flags; `make docs` writes it anew. -->

A value flag takes the next word whatever it looks like (`logs --run -1 JOB`); `--flag=value` is the same. Flags and
operands may be mixed, except after `run`, whose command follows `--`. Nothing is abbreviated. A JOB is a full ID, at
least 8 characters of the beginning of one, or an exact name; a name that several jobs share is ambiguous.

Every message is one text on standard error. What the exit statuses mean stands in
[Phases, outcomes and exit statuses](../guide/states.md#exit-statuses).
"""


def commands() -> Iterator[type[Command]]:
    """Yield the table of every command, nested ones after the one that holds them."""
    yield flags.Root
    for verb in flags.verbs():
        command = flags.load(verb)
        yield command
        yield from command.subcommands


def page() -> str:
    """Return the whole page."""
    return "\n".join((_HEAD, *(_section(command) for command in commands())))


def _section(command: type[Command]) -> str:
    level = "##" if len(command.path) < 2 else "###"
    parts = [
        f"{level} `{' '.join(('jobman', *command.path))}`",
        command.summary,
        _block(f"jobman {line}" for line in command.synopsis),
        *(paragraph for paragraph in command.text),
        _flags(command),
        _block(line for example, meaning in command.examples for line in (f"# {meaning}", example)),
        "Exit status: " + ", ".join(f"`{status}`" for status in command.exits),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _flags(command: type[Command]) -> str:
    groups = [*command.groups, *([("Everywhere", flags.PERSISTENT)] if command is flags.Root else [])]
    rows = [f"| `{_spelling(flag)}` | {_meaning(flag)} |" for _, group in groups for flag in group]
    return "\n".join(("| Flag | |", "|---|---|", *rows)) if rows else ""


def _spelling(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    # A bar would end the cell, even in code.
    return f"{short}--{flag.name} {flag.metavar}".strip().replace("|", "\\|")


def _meaning(flag: Flag) -> str:
    words = f" One of {', '.join(f'`{word}`' for word in flag.kind.words)}." if flag.kind.words else ""
    notes = ["may be repeated"] if flag.kind.repeated else []
    notes += [f"default `{flag.default}`"] if flag.default else []
    return (flag.summary + words).replace("|", "\\|") + (f" ({', '.join(notes)})" if notes else "")


def _block(lines: Iterator[str]) -> str:
    text = "\n".join(lines)
    return f"```\n{text}\n```" if text else ""


def main() -> None:
    """Write the page."""
    os.makedirs(os.path.dirname(PAGE), exist_ok=True)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page())
    print(PAGE)


if __name__ == "__main__":
    main()
