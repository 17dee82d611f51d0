"""The manual pages, ``jobman(1)`` and one for each command, from the tables that feed the parser and the help.

The wheel carries them (``hatch_build.py``); ``python docs/manpages.py DIRECTORY`` writes them for a look. Needs nothing
but the package's own source, so that a build has no more dependencies than before.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from jobman import __version__
from jobman.cli import flags
from jobman.cli.help import EXITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jobman.cli.flags import Command, Flag

_FILES = (
    ("$XDG_STATE_HOME/jobman, ~/.local/state/jobman", "Jobs and logs, unless JOBMAN_STATE_DIR or --state-dir says."),
    ("/etc/jobman/jobman.yml", "The configuration of the system."),
    ("$XDG_CONFIG_HOME/jobman/jobman.yml, ~/.config/jobman/jobman.yml", "The configuration of the user."),
)
_ESCAPES = {"\\": "\\e", "-": "\\-", "'": "\\(aq", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"}


def pages() -> dict[str, str]:
    """Return the text of every page by its file name, such as ``jobman-show-run.1``."""
    commands: list[type[Command]] = [flags.Root, *flags.tables()]
    return {f"{_name(command)}.1": page(command) for command in commands}


def page(command: type[Command]) -> str:
    """Return the page of one command, in the macros of man(7)."""
    sections = [
        ("NAME", [f"{_text(_name(command))} \\- {_text(_lowered(command.summary))}"]),
        ("SYNOPSIS", _synopsis(command)),
        ("DESCRIPTION", _paragraphs((command.summary, *command.text))),
        ("COMMANDS", _commands(command)),
        ("OPTIONS", _options(command)),
        ("EXIT STATUS", _exits(command)),
        ("FILES", [] if command.path else _pairs(_FILES)),
        ("EXAMPLES", _examples(command)),
        ("SEE ALSO", _see_also(command)),
    ]
    lines = [line for title, body in sections if body for line in (f".SH {title}", *body)]
    return "\n".join((_title(command), *lines)) + "\n"


def _title(command: type[Command]) -> str:
    # Builds that are to be the same every time say when they are; others have the day on which they are made.
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    day = time.strftime("%Y-%m-%d", time.gmtime(int(stated) if stated else None))
    return f'.TH {_text(_name(command).upper())} 1 {day} "jobman {__version__}" "Jobman manual"'


def _name(command: type[Command]) -> str:
    return "-".join(("jobman", *command.path))


def _synopsis(command: type[Command]) -> list[str]:
    lines = [line for synopsis in command.synopsis for line in (".br", f"\\fBjobman\\fR {_text(synopsis)}")]
    return lines[1:]


def _paragraphs(texts: Iterable[str]) -> list[str]:
    return [line for text in texts for line in (".PP", _text(text))][1:]


def _commands(command: type[Command]) -> list[str]:
    nested = command.subcommands if command.path else _tops()
    return _pairs((f"jobman {' '.join(table.path)}", table.summary) for table in nested)


def _tops() -> tuple[type[Command], ...]:
    return tuple(flags.load(verb) for verb in flags.verbs())


def _options(command: type[Command]) -> list[str]:
    lines = []
    for title, group in (*command.groups, ("Everywhere", flags.PERSISTENT)):
        lines += [f".SS {_text(title)}", *_pairs((_spelling(flag), _meaning(flag)) for flag in group)]
    return lines


def _spelling(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    return f"{short}--{flag.name} {flag.metavar}".rstrip()


def _meaning(flag: Flag) -> str:
    words = f" One of {', '.join(flag.kind.words)}." if flag.kind.words else ""
    repeated = " May be repeated." if flag.kind.repeated else ""
    default = f" Default: {flag.default}." if flag.default else ""
    return flag.summary + words + repeated + default


def _exits(command: type[Command]) -> list[str]:
    return _pairs((str(status), EXITS[status]) for status in command.exits)


def _examples(command: type[Command]) -> list[str]:
    lines = []
    for example, meaning in command.examples:
        lines += [".PP", _text(meaning), ".PP", ".RS 4", ".nf", _text(example), ".fi", ".RE"]
    return lines[1:]


def _see_also(command: type[Command]) -> list[str]:
    related = (*_parents(command), *command.subcommands) if command.path else _tops()
    names = [f"\\fB{_text(_name(table))}\\fR(1)" for table in related]
    return [",\n".join(names)]


def _parents(command: type[Command]) -> Iterator[type[Command]]:
    for length in range(len(command.path)):
        parent = flags.find(command.path[:length])
        if parent is not None:
            yield parent


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Lay out terms, each with what it means below it."""
    return [line for term, meaning in pairs for line in (".TP", f"\\fB{_text(term)}\\fR", _text(meaning))]


def _text(text: str) -> str:
    """Return text in which roff finds nothing of its own; a dash is the character that is typed."""
    plain = "".join(_ESCAPES.get(char, char) for char in text)
    return f"\\&{plain}" if plain.startswith(".") else plain


def _lowered(summary: str) -> str:
    return summary[:1].lower() + summary[1:].rstrip(".")


def main() -> None:
    """Write every page into a directory."""
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    for name, text in pages().items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
