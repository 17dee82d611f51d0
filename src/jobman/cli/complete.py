"""What may follow on a command line: the hidden ``jobman __complete WORD...`` that the scripts of the shells call.

The last word is the one in progress, without quotes. Printed are candidates for the whole of it, one per line, with a
tab and a description where there is one; then a line that says what the shell shall do (contract, A.14; D47):

    :0         complete files; after ``--flag=`` too
    :4         nothing else
    :6         the same, and no blank after the candidate
    :16        complete directories
    :64 PLACE  the words from PLACE on, counted from 0, are a command line of its own: complete that
"""

from __future__ import annotations

from jobman.cli import flags
from jobman.cli.candidates import WORDS, candidates
from jobman.cli.output import printable, write_bytes
from jobman.cli.parser import Parser
from jobman.errors import OutputError
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jobman.cli.flags import Command, Flag, Operand

_COMMAND_LINE = 64


class Completion(NamedTuple):
    """Candidates, each with its description or "", what else the shell shall do, and where a command line begins."""

    candidates: tuple[tuple[str, str], ...] = ()
    directive: int = WORDS
    place: int = 0


class Line(Parser):
    """The words before the one in progress, read by the parser's own rules; values stay text.

    Attributes:
        pending: The flag whose value the word in progress is.
        ended: ``--`` has ended the flags.
        texts: The values of each flag that was given, in order.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.pending: Flag | None = None
        self.ended = False
        self.texts: dict[str, list[str]] = {}
        super().__init__(words)

    def _take(self, flag: Flag, spelling: str, text: str | None) -> None:  # noqa: ARG002  # the parser's signature
        if text is None and flag.kind is not flags.BOOL:
            if self.place == len(self.words):
                self.pending = flag
                return
            text = self.words[self.place]
            self.place += 1
        self.given[flag.name] = True
        self.texts.setdefault(flag.name, []).append(text or "")

    def _end_of_flags(self) -> None:
        self.ended = True
        super()._end_of_flags()

    def text(self, name: str) -> str:
        """Return the last value of a flag, "" if it was not given."""
        return self.texts.get(name, [""])[-1]


def answer(words: Sequence[str], *, described: bool) -> int:
    """Print what may follow; whatever is wrong, nothing may follow, and nobody is told."""
    try:
        found = complete(words)
        about = {word: f"\t{printable(text)}" for word, text in found.candidates if text and described}
        lines = [word + about.get(word, "") for word, _ in found.candidates]
        lines.append(f":{found.directive} {found.place}" if found.directive == _COMMAND_LINE else f":{found.directive}")
    except (Exception, KeyboardInterrupt):  # noqa: BLE001  # a message would land in the line that is being typed
        lines = [f":{WORDS}"]
    try:
        write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    except (OSError, OutputError):
        pass  # the shell did not wait
    return 0


def complete(words: Sequence[str]) -> Completion:
    """Return what the last of the words may become.

    Raises:
        UsageError: A word before it is not understood.
    """
    *before, current = words or ("",)
    line = Line(before)
    line.read()
    if line.trailing is not None:
        return Completion((), _COMMAND_LINE, len(before) - len(line.trailing))
    if line.pending:
        return _values(line, line.pending, current)
    if line.ended or not current.startswith("-"):
        return _positional(line, current)
    name, equals, text = current.partition("=")
    if not equals:
        return Completion((*_signed(line, current), *_flags(line, current)))
    flag = line.known.get(name[2:]) if name.startswith("--") else None
    return _values(line, flag, text, prefix=f"{name}=") if flag else Completion()


def _positional(line: Line, current: str) -> Completion:
    if line.command is flags.Root:
        return Completion(_beginning(current, _summaries(flags.load(verb) for verb in flags.verbs())))
    if line.command.path == ("help",):
        return Completion(_beginning(current, _topics(line.positionals)))
    operand = _operand(line)
    nested = () if line.positionals else _beginning(current, _summaries(line.command.subcommands))
    if operand is not None:
        values = _values(line, operand, current)
        taken = line.positionals if operand.repeated else ()
        fresh = (pair for pair in values.candidates if pair[0] not in taken)
        return values._replace(candidates=(*nested, *fresh))
    rest = () if line.ended or line.command.subcommands else _flags(line, current)
    return Completion((*nested, *rest))


def _operand(line: Line) -> Operand | None:
    operands, place = line.command.operands, len(line.positionals)
    if place < len(operands):
        return operands[place]
    return operands[-1] if operands and operands[-1].repeated else None


def _signed(line: Line, current: str) -> tuple[tuple[str, str], ...]:
    """Return operands that begin with a dash, where the command takes such."""
    operand = _operand(line)
    if not (line.command.signed_operands and line.positionals and operand):
        return ()
    return _values(line, operand, current).candidates


def _flags(line: Line, current: str) -> tuple[tuple[str, str], ...]:
    """Return the flags that may still be given, and what ends them where something must follow."""
    excluded = {name for names in line.command.exclusive if any(name in line.given for name in names) for name in names}
    pairs = [
        (f"--{flag.name}", flag.summary)
        for flag in line.known.values()
        if flag.kind.repeated or (flag.name not in line.given and flag.name not in excluded)
    ]
    if line.command.target:
        pairs.insert(0, ("--", f"What follows is the command: {line.command.target}."))
    return _beginning(current, pairs)


def _values(line: Line, taker: Flag | Operand, text: str, prefix: str = "") -> Completion:
    found, directive = candidates(line, taker, text)
    # A word that begins with a dash would be a flag, unless it is the value of one or comes after --.
    dashed = bool(line.pending or prefix or line.ended or line.command.signed_operands)
    words = [(f"{prefix}{word}", about) for word, about in found if dashed or not word.startswith("-")]
    return Completion(_beginning(prefix + text, words), directive)


def _topics(path: Sequence[str]) -> list[tuple[str, str]]:
    if not path:
        return _summaries(flags.load(verb) for verb in flags.verbs())
    command = flags.find(path)
    return _summaries(command.subcommands) if command else []


def _summaries(commands: Iterable[type[Command]]) -> list[tuple[str, str]]:
    return [(command.path[-1], command.summary) for command in commands]


def _beginning(text: str, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the pairs whose word begins with ``text`` and can stand on a line."""
    return tuple((word, about) for word, about in pairs if word.startswith(text) and word.isprintable())
