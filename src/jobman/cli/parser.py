"""From the words of a command line to typed values, by the rules of GNU and pflag (contract A.0).

Driven by the tables of ``jobman.cli.flags``. ADR 0001 tells why this is not ``argparse``. Only syntax is checked here:
words are known, values have their type and the range that their flag states, operands are as many as asked for, and
flags that exclude each other are not given together.
"""

from __future__ import annotations

from jobman.cli import flags
from jobman.errors import InvalidValueError, UsageError

TYPE_CHECKING = False  # typing costs 2.5 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from jobman.cli.flags import Command, Flag, Operand


# Flags that add to what a configuration says instead of replacing it.
_ADDED = ("env", "after-outcome")


class Parsed:
    """What a command line says.

    Attributes:
        command: The words that name the command: ``("show", "run")``; empty for ``jobman`` alone.
        positionals: The operands as given.
        trailing: The words after ``--`` of a command that takes a target there, None when there was no ``--``; for
            other commands they are among ``positionals``, and this is None.
        help_requested: Show the help of ``command`` and do nothing else; operands were not checked.
        version_requested: Print the version and do nothing else.
    """

    __slots__ = (
        "_flags",
        "_given",
        "_operands",
        "command",
        "help_requested",
        "positionals",
        "trailing",
        "version_requested",
    )

    def __init__(
        self, command: tuple[str, ...], known: dict[str, Flag], given: dict[str, object], operands: dict[str, object]
    ) -> None:
        self.command = command
        self.positionals: tuple[str, ...] = ()
        self.trailing: tuple[str, ...] | None = None
        self.help_requested = False
        self.version_requested = False
        self._flags = known
        self._given: dict[str, Any] = given
        self._operands: dict[str, Any] = operands

    def given(self, name: str) -> bool:
        """Say whether the flag ``name`` (without dashes) stands on the command line."""
        return name in self._given

    def over(self, defaults: dict[str, str | tuple[str, ...]]) -> Parsed:
        """Return the same command line over values that a configuration gives to flags, in the flags' own grammar.

        What stands on the command line wins, or comes after them where ``_ADDED`` says so; all count as given.

        Raises:
            KeyError: the command has no such flag.
            UsageError: a value is outside the grammar of its flag.
        """
        values: dict[str, Any] = {}
        for name, text in defaults.items():
            flag = self._flags[name]
            words = (text,) if isinstance(text, str) else text
            for value in (_convert(flag, word, "--" + name) for word in words):
                before = values.get(name, ())
                values[name] = (*before, *value) if isinstance(value, tuple) and isinstance(before, tuple) else value
        added = {name: (*values[name], *self._given.get(name, ())) for name in _ADDED if name in values}
        laid = Parsed(self.command, self._flags, {**values, **self._given, **added}, self._operands)
        laid.positionals, laid.trailing = self.positionals, self.trailing
        return laid

    def value(self, name: str) -> Any:  # the kind of the flag decides
        """Return the value of the flag ``name`` (without dashes), or its default.

        Text is ``str``, a boolean ``bool``, an integer ``int``, durations and instants are ``int`` nanoseconds; what
        may be repeated is a tuple of these in the order given. Not given and without default: ``()``, ``False``,
        ``""``, or None for numbers and times.

        Raises:
            KeyError: The command has no such flag.
        """
        if name in self._given:
            return self._given[name]
        return _default(self._flags[name])

    def operand(self, name: str) -> Any:  # the kind of the operand decides
        """Return the value of the operand ``name``, such as ``JOB``; a repeated one is a tuple, an absent one None.

        ``RUN`` is a nonzero ``int``.
        """
        return self._operands.get(name)


def parse(argv: Sequence[str]) -> Parsed:
    """Understand a command line.

    Args:
        argv: The words after the program's name; surrogate escapes pass unchanged.

    Returns:
        What it says; a request for help or version before anything else.

    Raises:
        UsageError: A word is not understood; the message names it and says what is valid.
    """
    return Parser(argv).parse()


def _default(flag: Flag) -> object:
    return _convert(flag, flag.default, "--" + flag.name) if flag.default else flag.kind.empty


class Parser:
    """One pass over the words; ``command`` descends as words name subcommands.

    Completion reads by the same rules; it replaces what is done with a value.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.words = list(argv)
        self.place = 0
        self.command: type[Command] = flags.Root
        self.known: dict[str, Flag] = {}
        self.given: dict[str, object] = {}
        self.positionals: list[str] = []
        self.trailing: list[str] | None = None
        self._descend(flags.Root)

    def parse(self) -> Parsed:
        """Return what the words say."""
        self.read()
        return self._result()

    def read(self) -> None:
        """Go through the words."""
        while self.place < len(self.words):
            word = self.words[self.place]
            self.place += 1
            if word == "--":
                self._end_of_flags()
            elif self._is_flag(word):
                self._flag(word)
            else:
                self._positional(word)

    def _is_flag(self, word: str) -> bool:
        if not word.startswith("-") or word == "-":
            return False
        return not (self.command.signed_operands and self.positionals and word[1] in "0123456789")

    def _end_of_flags(self) -> None:
        rest = self.words[self.place :]
        self.place = len(self.words)
        if self.command.target:
            self.trailing = rest
        elif self.command is flags.Root:
            raise self._error("a command must come before --")
        else:
            self.positionals += rest

    def _positional(self, word: str) -> None:
        if self.command is flags.Root:
            self._verb(word)
            return
        nested = {} if self.positionals else {table.path[-1]: table for table in self.command.subcommands}
        if word in nested:
            self._descend(nested[word])
            return
        if self.command.subcommands and not self.command.operands:
            raise self._error(f"unknown command {word!r}{_hint(self.command, word, tuple(nested))}")
        if self.command.target:
            raise self._error(
                f"{word!r} is out of place: the command must follow --: jobman {self.command.synopsis[0]}"
            )
        self.positionals.append(word)

    def _verb(self, word: str) -> None:
        if word not in flags.verbs():
            raise self._error(f"unknown command {word!r}{_hint(flags.Root, word, flags.verbs())}")
        self._descend(flags.load(word))

    def _descend(self, command: type[Command]) -> None:
        self.command = command
        self.known = {flag.name: flag for flag in flags.flags_of(command)}
        for name in self.given:
            self._long_flag(name)

    # --- Flags ---

    def _flag(self, word: str) -> None:
        if word.startswith("--"):
            name, separator, value = word[2:].partition("=")
            self._take(self._long_flag(name), "--" + name, value if separator else None)
        else:
            self._short_flags(word[1:])

    def _long_flag(self, name: str) -> Flag:
        flag = self.known.get(name)
        if flag is None:
            hint = _hint(self.command, f"--{name}", tuple(f"--{known}" for known in self.known))
            raise self._error(f"unknown flag {_printable('--' + name)}{hint}")
        return flag

    def _short_flags(self, cluster: str) -> None:
        """Read ``-abc``: booleans up to the first flag that takes a value, which is the rest or the next word."""
        while cluster:
            letter, cluster = cluster[0], cluster[1:]
            flag = next((flag for flag in self.known.values() if flag.short == letter), None)
            if flag is None:
                raise self._error(f"unknown flag {_printable('-' + letter)}{_hint(self.command)}")
            attached = cluster[1:] if cluster.startswith("=") else cluster or None
            if flag.kind is flags.BOOL and not cluster.startswith("="):
                self._take(flag, "-" + letter, None)
            else:
                self._take(flag, "-" + letter, attached)
                return

    def _take(self, flag: Flag, spelling: str, text: str | None) -> None:
        """Store the value of a flag; ``text`` is what was attached to it."""
        if text is None and flag.kind is flags.BOOL:
            self.given[flag.name] = True
            return
        if text is None:
            if self.place == len(self.words):
                raise self._error(f"{spelling} needs a value: {spelling} {flag.metavar}")
            text = self.words[self.place]
            self.place += 1
        value = _convert(flag, text, spelling)
        if isinstance(value, tuple):
            before = self.given.get(flag.name, ())
            value = (*before, *value) if isinstance(before, tuple) else value
        self.given[flag.name] = value

    # --- The whole ---

    def _result(self) -> Parsed:
        version = bool(self.given.get("version"))
        # A command that only has subcommands, called alone, asks what there is.
        alone = bool(self.command.subcommands) and not self.command.operands
        if self.given.get("help") or alone or (self.command is flags.Root and not version):
            return self._help(self.command)
        if self.command.path == ("help",):
            return self._help(self._topic())
        parsed = Parsed(self.command.path, self.known, self.given, {} if version else self._operands())
        parsed.version_requested = version
        parsed.positionals = tuple(self.positionals)
        if not version:
            self._check_exclusions()
            parsed.trailing = self._target()
        return parsed

    def _help(self, topic: type[Command]) -> Parsed:
        parsed = Parsed(topic.path, self.known, self.given, {})
        parsed.help_requested = True
        return parsed

    def _topic(self) -> type[Command]:
        topic = flags.find(self.positionals)
        if topic is None:
            word = " ".join(self.positionals)
            raise self._error(f"unknown command {word!r}{_hint(flags.Root, word, flags.verbs())}")
        return topic

    def _operands(self) -> dict[str, object]:
        """Check the number of positional arguments and convert each."""
        expected, words = self.command.operands, self.positionals
        repeated = bool(expected) and expected[-1].repeated
        minimum = sum(not operand.optional for operand in expected)
        if len(words) < minimum or (len(words) > len(expected) and not repeated):
            exact = minimum == len(expected)
            count = f"at least {minimum}" if repeated else str(minimum) if exact else f"at most {len(expected)}"
            raise self._error(f"accepts {count} arg(s), received {len(words)}: jobman {self.command.synopsis[0]}")
        values: dict[str, object] = {}
        for place, operand in enumerate(expected):
            if operand.repeated:
                values[operand.name] = tuple(_convert(operand, word, operand.name) for word in words[place:])
            elif place < len(words):
                values[operand.name] = _convert(operand, words[place], operand.name)
        return values

    def _check_exclusions(self) -> None:
        for names in self.command.exclusive:
            together = [f"--{name}" for name in names if self.given.get(name, False) is not False]
            if len(together) > 1:
                raise self._error(" and ".join(together) + " exclude each other")

    def _target(self) -> tuple[str, ...] | None:
        if not self.command.target:
            return None
        if not self.trailing and not any(name in self.given for name in self.command.supplies_target):
            raise self._error(f"there is no command to run: jobman {self.command.synopsis[0]}")
        return tuple(self.trailing or ())

    def _error(self, detail: str) -> UsageError:
        path = " ".join(self.command.path)
        return UsageError(detail=f"{path}: {detail}" if path else detail)


def _printable(word: str) -> str:
    """Return a word that can stand in a message of one line."""
    return word if word.isprintable() else repr(word)


def _convert(taker: Flag | Operand, text: str, spelling: str) -> object:
    kind = taker.kind
    if kind.verbatim and text.strip():
        return (text,) if kind.repeated else text
    from jobman.cli.values import convert  # loaded when there is something to convert

    try:
        return convert(kind, text, spelling)
    except InvalidValueError as error:
        raise UsageError(detail=str(error)) from None


def _hint(command: type[Command], word: str = "", candidates: tuple[str, ...] = ()) -> str:
    from jobman.cli.suggestions import suggest  # loaded after a mistake

    nearest = suggest(word, candidates)
    program = " ".join(("jobman", *command.path))
    return f": did you mean {nearest}?" if nearest else f": {program} --help lists what there is"
