"""Values for every flag of every command: some that are understood, and each kind that is not.

The kind of a flag says most of it; what is in a name, a path or a pattern, only the flag itself knows. A flag whose
kind or name has no row here fails `tests.integration.test_command_line`, so that none is forgotten.
"""

from __future__ import annotations

from typing import NamedTuple

from jobman.cli.flags import Command, Flag, Operand

Path = tuple[str, ...]
Words = tuple[str, ...]

CONFIG = """\
job_specs: {said: {command: ['true']}}
profiles: {louder: {overrides: {tags: [loud]}}}
wait_conditions: {soon: {type: delay, delay: 1ms}}
secrets: {key: env:HOME}
concurrency: {pools: {gpu: 1}}
notifiers: {desk: {type: command, command: {command: [/bin/true]}, events: [job_failed]}}
"""
ID = "01a2b3c4-d5e6-7f80-9a1b-2c3d4e5f6071"
NOT_UTF_8 = "\udcff"
HUGE = "9" * 5_000
# Digits, letters and spaces that only look like those of ASCII, and line ends that only some programs know.
LOOK_ALIKE = ("\u0661", "\uff11", "1\u2028", "\u00a01", "1\n", "\x1b[1m")


class Values(NamedTuple):
    """What a flag is given: each a value, or the words of several (``("1", "--other", "2")``).

    Attributes:
        valid: Understood, the first with nothing else beside it.
        invalid: Refused with status 2.
        refused: Understood, and refused for what it asks: by exit status.
    """

    valid: tuple[str | Words, ...]
    invalid: tuple[str | Words, ...] = ()
    refused: tuple[tuple[int, str | Words], ...] = ()


_DURATION = Values(
    ("1h30m", "0", ".5d", "1.5W", "2562047h47m16.854775807s"),
    ("", "1", "07", "-1s", "-0s", "1 s", "1y", "s", ".s", "1_0s", "0x1s", "1e3s", "99999999999h", HUGE, *LOOK_ALIKE),
)
_INTEGER = Values(
    ("0x10", "1_000", "07", "1"), ("", "x", "1.5", "-9", "0b2", "08", "1__0", str(2**63), HUGE, *LOOK_ALIKE)
)
_INTEGERS = Values(("3", "3,4", ("3", "+5")), ("", "a", "-1", "0x1", "1_0", "1,", "1,1", "1.0", HUGE, *LOOK_ALIKE))
_TIME = Values(
    ("2026-11-29T15:19:20Z", "1970-01-01T01:00:00.5+01:00"),
    ("", "now", "2026-11-29", "1795965560", "2026-02-30T00:00:00Z", "9999-01-01T00:00:00Z", HUGE, *LOOK_ALIKE),
)
_SELECTOR = Values(("done",), ("", " ", "\t"), ((3, "nobody"), (3, NOT_UTF_8), (3, "%"), (4, "twice")))
_RUN = Values(("-1", "1", "+1"), ("", "0", "x", "0x1", "1_0", "1.0", "-", str(2**63), HUGE, *LOOK_ALIKE), ((3, "7"),))
_NAME = Values(("a", "\u00fc b", "-x", "a\u2028b"), ("", " ", "a\nb", "\x1b", "\x7f", NOT_UTF_8))
_LABEL = Values(("a", ("a", "b")), ("", " a", "a ", "a\tb", ("a", "a"), NOT_UTF_8))
_CONFIGURED = ("", " ", "none", "said ", NOT_UTF_8)
# What does not only look for a name may look for one that nothing has.
_SOUGHT = Values(("a", "", "\x1b"), (NOT_UTF_8,))

KINDS: dict[str, Values] = {
    "bool": Values(("", "=true", "=F", "=0"), ("=", "=perhaps", "=yes", "=2", "=tRUE", "=\u2028")),
    "duration": _DURATION,
    "age": Values((*_DURATION.valid, "unlimited"), (*_DURATION.invalid, "Unlimited", "never")),
    "integer": _INTEGER,
    "integers": _INTEGERS,
    "limit": Values(
        ("1", "unlimited", "07"), ("", "0", "-1", "1.5", "0x10", "1_000", "never", str(2**63), HUGE, *LOOK_ALIKE)
    ),
    "size": Values(
        ("0", "4KiB", "1048576"), ("", "x", "-1", "1.5KiB", "4K", "0x10", "1_000", "8EiB", HUGE, *LOOK_ALIKE)
    ),
    "timestamp": _TIME,
    "run": _RUN,
    "run or all": Values((*_RUN.valid, "all"), (*_RUN.invalid, "latest"), _RUN.refused),
    "selector": _SELECTOR,
    "id": Values(("done",), ("", ID[:8], ID.upper(), f"{ID} ", ID.replace("0", "\u0660"), NOT_UTF_8), ((3, ID),)),
    "signal": Values(
        ("TERM", "sigterm", "RTMIN"),
        ("", "15", "SIG", "BOGUS", "TERM ", "SIG_DFL", "\u017figterm", "s\u0131gint", NOT_UTF_8, HUGE),
    ),
    "outcome requirement": Values(
        ("done=success", "done=success,failure"),
        ("", "done", "=success", "done=", "done=x", "done=success,", "done=Success", NOT_UTF_8),
        ((3, "nobody=success"), (4, "twice=success"), (5, ("done=success", "done=failure"))),
    ),
}

_JOB_FLAGS: dict[str, Values] = {
    "name": _NAME,
    "group": _LABEL,
    "tag": _LABEL,
    "job-spec": Values(("said",), _CONFIGURED),
    "profile": Values(("louder", ("louder", "louder")), _CONFIGURED),
    "rerun": Values(_SELECTOR.valid, (*_SELECTOR.invalid, ("done", "--slots", "1")), _SELECTOR.refused),
    "cwd": Values(("/", "", "not/there", NOT_UTF_8)),
    "env": Values(("A=1", "A=", "A==\u2028", f"A={NOT_UTF_8}"), ("", "A", "=x", "1A=x", "A-B=x", "A B=1", "\u00e9=1")),
    "unset-env": Values(("A", ("A", "A")), ("", "A=", "A B", ("A", "--env", "A=1"), NOT_UTF_8)),
    "secret-env": Values(("A=key",), ("", "A", "=key", "A=", "A=none", "1A=key", f"A={NOT_UTF_8}")),
    "stdin": Values(("null", "live"), ("inherit", "file")),
    "stdin-file": Values(("/dev/null", "not/there"), ("", ("x", "--stdin", "null"))),
    "wait-until": _TIME,
    "wait-file": Values(("/", "not/there", NOT_UTF_8), ("",)),
    "wait-condition": Values(("soon", ("soon", "soon")), _CONFIGURED),
    "wait-poll": Values((("1s", "--wait-file", "/"),), ("1s", ("0", "--wait-file", "/"), *_DURATION.invalid)),
    "wait-mode": Values((("any", "--wait-file", "/"),), ("any",)),
    "wait-abort-at": Values(
        (("2027-01-31T08:00:00Z", "--wait-file", "/"),),
        ("2027-01-31T08:00:00Z", ("1969-01-01T00:00:00Z", "--wait-file", "/"), *_TIME.invalid),
    ),
    "pool": Values(("gpu",), ("", " ", "a\nb", NOT_UTF_8), ((5, "none"), (5, ("gpu", "--slots", "2")))),
    "notify": Values(("desk",), _CONFIGURED),
    "notify-on": Values(
        (("job_failed", "--notify", "desk"),),
        ("job_failed", *((name, "--notify", "desk") for name in ("", "none", "job_failed ", NOT_UTF_8))),
    ),
    "slots": Values(_INTEGER.valid, ("0", *_INTEGER.invalid)),
    "retries": Values(("0", *_INTEGER.valid), (str(2**63 - 1), ("1", "--max-runs", "1"), *_INTEGER.invalid)),
    "retryable-exit-code": Values(("3", "3,4"), ("0", ("7", "--success-exit-code", "7"), *_INTEGERS.invalid)),
    "log-segments": Values(
        (("2", "--log-segment-bytes", "1"),),
        ("2", "0", ("65536", "--log-segment-bytes", "1"), ("2", "--log-segment-bytes", "0"), *_INTEGER.invalid),
    ),
    # A job that has succeeded at once has left no output to be shown.
    "foreground": Values(("=F",), (("", "--stdin", "null"), *KINDS["bool"].invalid)),
    "exit-code": Values((("", "--wait"), "=false"), ("", *KINDS["bool"].invalid)),
}
FLAGS: dict[tuple[Path, str], Values] = {
    **{(("run",), name): values for name, values in _JOB_FLAGS.items()},
    # An empty one keeps the old name.
    (("rerun",), "name"): Values(("", *_NAME.valid), _NAME.invalid[1:]),
    **{(("list",), name): _SOUGHT for name in ("name", "group", "tag")},
    (("list",), "name-match"): Values(
        ("a*", "[a-z]?", "", "[", "\\", "\u00fc" * 25_000), (NOT_UTF_8, "\u00fc" * 25_001)
    ),
    (("list",), "limit"): Values(_INTEGER.valid, ("0", *_INTEGER.invalid)),
    (("logs",), "lines"): Values(("-1", "0", *_INTEGER.valid), _INTEGER.invalid),
    (("wait",), "exit-code"): Values(KINDS["bool"].valid, (("", "done"), *KINDS["bool"].invalid)),
    (("clean",), "dry-run"): Values(("", "=true"), ("=false", *KINDS["bool"].invalid)),
    (("doctor",), "backup"): Values(("copy", "not/there/copy"), ("",), ((1, "."), (1, "good.yml"))),
}

# The same for operands, where the kind does not say it.
OPERAND_VALUES: dict[str, Values] = {
    "PATH": Values(("good.yml",), ("", "broken.yml", "wrong.yml"), ((1, "missing.yml"), (1, "."), (1, NOT_UTF_8))),
    "NOTIFIER": Values(("desk",), _CONFIGURED),
    "COMMAND": Values(("run",), ("", "runn", "run ", NOT_UTF_8)),
}

# What makes a command line complete; what is asked for has been done already or changes nothing.
_OF_A_JOB = ("rerun", "status", "show", "logs", "wait", "cancel", "pause", "resume", "input")
OPERANDS: dict[Path, Words] = {
    **{(verb,): ("done",) for verb in _OF_A_JOB},
    ("show", "job"): ("done",),
    ("show", "run"): ("done", "1"),
    ("cancel", "job"): ("done",),
    ("cancel", "run"): ("done", "1"),
    ("completion",): ("bash",),
    ("notify", "test"): ("desk",),
}
# A job that has ended can neither be suspended nor written to, and no run of it be cancelled.
STATUSES: dict[Path, int] = dict.fromkeys((("cancel", "run"), ("pause",), ("resume",), ("input",)), 5)
# Those that read the whole configuration, and so refuse one that is broken; the rest must work (A.0).
NEED_CONFIG = {
    ("run",),
    ("rerun",),
    ("clean",),
    ("notify", "test"),
    *(("config", name) for name in ("show", "paths", "validate", "apply")),
}
_NEED_NO_STORE = ("show", "paths", "validate", "schema")
NEED_NO_STORE = {
    ("help",),
    ("completion",),
    ("config",),
    ("notify",),
    ("notify", "test"),
    *(("config", name) for name in _NEED_NO_STORE),
}


def values_of(command: type[Command], flag: Flag) -> Values:
    """Return what a flag is given; KeyError tells that nobody has thought of it."""
    own = FLAGS.get((command.path, flag.name))
    if own is not None:
        return own
    if flag.kind.name in ("choice", "choices"):
        words = flag.kind.words
        lists = (",".join(words),) if flag.kind.repeated else ()
        return Values((*words, *lists), ("", words[0].upper(), f"{words[0]} ", f"{words[0]},", NOT_UTF_8))
    return KINDS[flag.kind.name]


def operand_values(operand: Operand) -> Values:
    """Return what an operand is given; KeyError tells that nobody has thought of it."""
    if operand.kind.name == "choice":
        words = operand.kind.words
        return Values(words, ("", words[0].upper(), f"{words[0]} ", NOT_UTF_8))
    return OPERAND_VALUES.get(operand.name) or KINDS[operand.kind.name]


def flag_words(flag: Flag, value: str | Words) -> Words:
    """Return the words that give a flag a value; a repeated one comes again for each that is no flag itself."""
    first, *more = (value,) if isinstance(value, str) else value
    name = f"--{flag.name}"
    head = (f"{name}{first}",) if flag.kind.name == "bool" else (name, first)
    if more and not more[0].startswith("--") and flag.kind.name != "bool":
        return (*head, *(word for again in more for word in (name, again)))
    return (*head, *more)


def command_line(command: type[Command], words: Words, *, target: bool = True) -> Words:
    """Return a whole command line with these flags."""
    line = (*command.path, *words, *OPERANDS.get(command.path, ()))
    return (*line, "--", "true") if command.target and target else line
