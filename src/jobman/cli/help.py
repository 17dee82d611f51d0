"""Help of the commands, rendered from their tables; loaded only when somebody asks for it."""

from __future__ import annotations

from jobman.cli import flags

TYPE_CHECKING = False  # typing costs 2.5 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobman.cli.flags import Command, Flag

WIDTH = 100
_INDENT = "  "
# A left column that is wider gets a line of its own.
_LEFT = 32

# Contract, section C.
EXITS = {
    0: "Done.",
    1: "Failed; with --wait, --foreground or wait also: the job did not succeed.",
    2: "The command line, the configuration or a value is not valid.",
    3: "No such job or run, or its logs were pruned.",
    4: "Several jobs answer to the selector.",
    5: "The job is not in a state that allows it.",
    6: "The command of the job did not take all of the input.",
    124: "The time to wait was over.",
}


def render(path: Sequence[str]) -> str:
    """Return the help of a command, at most 100 columns wide, ending with a newline.

    Args:
        path: The words that name the command, as in ``Parsed.command``; empty for ``jobman`` itself.

    Raises:
        KeyError: There is no such command.
    """
    command = flags.find(path)
    if command is None:
        raise KeyError(tuple(path))
    sections = [[command.summary], _usage(command)]
    sections += [_wrap(paragraph, WIDTH) for paragraph in command.text]
    sections += _commands(command)
    sections += _flags(command)
    sections.append(_examples(command))
    sections.append(_exits(command))
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def _usage(command: type[Command]) -> list[str]:
    return ["Usage:", *(f"{_INDENT}jobman {line}" for line in command.synopsis)]


def _commands(command: type[Command]) -> list[list[str]]:
    if command is flags.Root:
        tables = {concern: [flags.load(verb) for verb in verbs] for concern, verbs in flags.CONCERNS}
    else:
        tables = {"Commands": list(command.subcommands)} if command.subcommands else {}
    return [
        [f"{concern}:", *_columns((" ".join(table.path), table.summary) for table in group)]
        for concern, group in tables.items()
    ]


def _flags(command: type[Command]) -> list[list[str]]:
    groups = (*command.groups, ("Everywhere", flags.PERSISTENT))
    return [[f"{title}:", *_columns((_spelling(row), _meaning(row)) for row in rows)] for title, rows in groups]


def _spelling(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    return f"{short}--{flag.name} {flag.metavar}".rstrip()


def _meaning(flag: Flag) -> str:
    notes = []
    if flag.kind.repeated:
        notes.append("may be repeated")
    if flag.default:
        notes.append(f"default {flag.default}")
    words = flag.kind.words if flag.kind.repeated else ()
    vocabulary = f" One of {', '.join(words)}." if words else ""
    return flag.summary + vocabulary + (f" ({', '.join(notes)})" if notes else "")


def _examples(command: type[Command]) -> list[str]:
    lines = ["Examples:"]
    for line, meaning in command.examples:
        lines += [f"{_INDENT}# {meaning}", f"{_INDENT}{line}"]
    return lines


def _exits(command: type[Command]) -> list[str]:
    return ["Exit status:", *_columns((str(status), EXITS[status]) for status in command.exits)]


def _columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Lay out pairs in two columns, the right one wrapped."""
    pairs = list(rows)
    left = min(_LEFT, max((len(name) for name, _ in pairs), default=0))
    margin = " " * (len(_INDENT) + left + 2)
    lines = []
    for name, meaning in pairs:
        wrapped = _wrap(meaning, WIDTH - len(margin))
        if len(name) > left:
            lines.append(_INDENT + name)
            lines += [margin + line for line in wrapped]
        else:
            lines.append(f"{_INDENT}{name:{left}}  {wrapped[0]}")
            lines += [margin + line for line in wrapped[1:]]
    return lines


def _wrap(text: str, width: int) -> list[str]:
    """Break a paragraph at blanks; ``textwrap`` would load ``re``."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines
