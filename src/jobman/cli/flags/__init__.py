"""What a command is: the shape of the flag tables, and where the table of each command lies.

The tables are data that feed the parser, the help and whatever else describes the command line. Each top-level command
has one module in this package, named after it, whose ``COMMAND`` is its table; only the table of the command that was
called is loaded. A new command is a module and a name in ``CONCERNS``; a new flag is a row. Kinds of values stand here
and not in a module of their own because every module costs each command 0.15 ms; ``jobman.cli.values`` converts them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing costs 2.5 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# --- Kinds of values ---

_EMPTY: dict[str, object] = {"bool": False, "text": "", "selector": "", "id": "", "choice": ""}


class Kind:
    """What a value is.

    Attributes:
        name: Selects the conversion.
        verbatim: A text that is not blank needs no conversion, so that ``status JOB`` need not load any.
        metavar: What help calls the value, unless the flag says it better; "" for a boolean.
        empty: The value of an absent flag without a default: ``()``, ``False``, ``""`` or None.
        repeated: The flag may be given again, and its value is a tuple.
        minimum: The smallest integer.
        words: The vocabulary of a choice.
    """

    __slots__ = ("empty", "metavar", "minimum", "name", "repeated", "verbatim", "words")

    def __init__(
        self, name: str, metavar: str, *, repeated: bool = False, minimum: int = 0, words: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.empty: object = () if repeated else _EMPTY.get(name)
        self.verbatim = name in ("text", "selector")
        self.metavar = metavar
        self.repeated = repeated
        self.minimum = minimum
        self.words = words


BOOL = Kind("bool", "")
TEXT = Kind("text", "TEXT")
TEXTS = Kind("text", "TEXT", repeated=True)
SELECTOR = Kind("selector", "JOB")
SELECTORS = Kind("selector", "JOB", repeated=True)
JOB_ID = Kind("id", "ID")
ASSIGNMENTS = Kind("assignment", "NAME=VALUE", repeated=True)
DURATION = Kind("duration", "DUR")
TIMESTAMP = Kind("timestamp", "TIME")
TIMESTAMPS = Kind("timestamp", "TIME", repeated=True)
DURATIONS = Kind("duration", "DUR", repeated=True)
LIMIT = Kind("limit", "N|unlimited")
SIZE = Kind("size", "BYTES")
AGE = Kind("age", "DUR|unlimited")
OUTCOME_REQUIREMENTS = Kind("outcome requirement", "JOB=OUTCOME,...", repeated=True)
SIGNALS = Kind("signal", "NAME", repeated=True)
RUN = Kind("run", "RUN")
RUN_OR_ALL = Kind("run or all", "N|-N|all")
COMMAND_NAME = Kind("text", "COMMAND")


def integer(minimum: int) -> Kind:
    """An integer in Go's base-0 syntax, ``minimum`` to 2**63 - 1."""
    return Kind("integer", "N", minimum=minimum)


def integers(minimum: int) -> Kind:
    """Decimal integers, repeated and separated by commas."""
    return Kind("integers", "N,...", repeated=True, minimum=minimum)


def choice(*words: str) -> Kind:
    """One of a few words."""
    return Kind("choice", "|".join(words), words=words)


def choices(metavar: str, *words: str) -> Kind:
    """Some of a few words, repeated and separated by commas."""
    return Kind("choices", metavar, repeated=True, words=words)


# --- Rows and tables ---


class Flag:
    """One row: a flag, what it takes, and what it does.

    Attributes:
        name: The long name, without dashes.
        short: The letter of its short form, or "".
        kind: What its value is.
        summary: One sentence of help.
        default: The value that stands for an absent flag, in the flag's own grammar; "" is the empty value of the kind.
        metavar: What help calls the value.
    """

    __slots__ = ("default", "kind", "metavar", "name", "short", "summary")

    def __init__(self, names: str, kind: Kind, summary: str, *, default: str = "", metavar: str = "") -> None:
        self.name, _, self.short = names.partition(",")
        self.kind = kind
        self.summary = summary
        self.default = default
        self.metavar = metavar or kind.metavar


class Operand:
    """A positional argument, required unless ``optional``; the last one may be ``repeated``."""

    __slots__ = ("kind", "name", "optional", "repeated")

    def __init__(self, name: str, kind: Kind, *, optional: bool = False, repeated: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.optional = optional
        self.repeated = repeated


class Command:
    """The table of one command: a class whose attributes are the data; it is never instantiated.

    Attributes:
        path: The words that call it: ``("show", "run")``; empty for the root.
        summary: One line.
        synopsis: What follows ``jobman`` in each way to call it.
        text: Paragraphs of help.
        examples: Command lines, each with what it does: ``(command line, sentence)``.
        groups: Flags by concern: ``(title, (flag, ...))``.
        operands: Positional arguments in order.
        exclusive: Groups of flag names of which at most one may be given; a boolean that is false does not count.
        subcommands: Tables of the nested commands, which the first positional argument may name.
        target: What must follow ``--``, such as ``COMMAND [ARG...]``; such a command ends its flags at the first
            positional argument. "": ``--`` only ends the flags.
        supplies_target: Flags that may say what to run in the place of a target.
        signed_operands: After the first positional argument, ``-1`` is one too.
        exits: The exit statuses worth naming.
    """

    path: tuple[str, ...] = ()
    summary: str = ""
    synopsis: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, tuple[Flag, ...]], ...] = ()
    operands: tuple[Operand, ...] = ()
    exclusive: tuple[tuple[str, ...], ...] = ()
    subcommands: tuple[type[Command], ...] = ()
    target: str = ""
    supplies_target: tuple[str, ...] = ()
    signed_operands: bool = False
    exits: tuple[int, ...] = (0, 1, 2)


# --- The commands ---

HELP = Flag("help,h", BOOL, "Show this help.")
VERSION = Flag("version,v", BOOL, "Show the version.")
# Accepted before and after the name of every command.
PERSISTENT = (
    Flag("state-dir", TEXT, "Keep jobs and logs here instead of in $JOBMAN_STATE_DIR.", metavar="DIR"),
    Flag("config", TEXT, "Read this configuration file too; it wins over the others.", metavar="FILE"),
    HELP,
)
CONCERNS = (
    ("Submit", ("run", "rerun")),
    ("Observe", ("list", "status", "show", "logs", "wait")),
    ("Control", ("cancel", "pause", "resume", "input")),
    ("Configure", ("config", "notify")),
    ("Maintain", ("clean", "doctor")),
    ("About", ("help", "completion")),
)


class Root(Command):
    """``jobman`` itself."""

    summary = "Run commands in the background, without a daemon, and know how they ended."
    synopsis = ("COMMAND [OPTIONS] [ARG...]",)
    text = ("Every job has a supervisor of its own, which ends with it; nothing else stays resident.",)
    examples = (
        ("jobman run --name train -- python train.py", "Start a job; prints its ID."),
        ("jobman logs --follow train", "Watch its output."),
        ("jobman wait train", "Wait for it; the exit status tells how it ended."),
    )
    groups = (("General", (VERSION,)),)


def verbs() -> tuple[str, ...]:
    """Return the names of the top-level commands, in the order of help."""
    return tuple(name for _, names in CONCERNS for name in names)


def load(verb: str) -> type[Command]:
    """Return the table of a top-level command, which must be one of ``verbs()``."""
    # importlib would be one more module to load; the name comes from CONCERNS, never from the user.
    table: type[Command] = __import__(f"jobman.cli.flags.{verb}", fromlist=("COMMAND",)).COMMAND
    return table


def tables() -> Iterator[type[Command]]:
    """Yield the table of every command but the root, nested ones after the one that holds them."""
    for verb in verbs():
        command = load(verb)
        yield command
        yield from command.subcommands


def find(path: Sequence[str]) -> type[Command] | None:
    """Return the table of the command that ``path`` names, the root for an empty one, or None."""
    if not path:
        return Root
    found = load(path[0]) if path[0] in verbs() else None
    for word in path[1:]:
        found = next((table for table in found.subcommands if table.path[-1] == word), None) if found else None
    return found


def flags_of(command: type[Command]) -> tuple[Flag, ...]:
    """Return every flag of a command, its own before the persistent ones."""
    return (*(flag for _, flags in command.groups for flag in flags), *PERSISTENT)
