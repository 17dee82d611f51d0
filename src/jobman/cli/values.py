"""Text of flags and operands to typed values; only syntax and the range that a flag itself states are checked here."""

from __future__ import annotations

from jobman.errors import InvalidValueError

TYPE_CHECKING = False  # typing costs 2.5 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Callable

    from jobman.cli.flags import Kind

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_DECIMAL = frozenset("0123456789")
_INT64_DIGITS = 19


def convert(kind: Kind, text: str, what: str) -> object:
    """Return the value that ``text`` spells; a tuple where the kind is repeated.

    Durations and instants come as integer nanoseconds, ``run or all`` as an integer or ``"all"``.

    Args:
        kind: What the value is.
        text: As given, surrogate escapes and all.
        what: Names the value in the error, such as ``--lines``.

    Raises:
        InvalidValueError: The text is outside the grammar or the range of its kind.
    """
    value = _CONVERSIONS[kind.name](kind, text, what)
    return (value,) if kind.repeated and not isinstance(value, tuple) else value


def _text(_kind: Kind, text: str, _what: str) -> str:
    return text


def _bool(_kind: Kind, text: str, what: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise InvalidValueError(what=what, value=text, expected="true or false")


def _selector(_kind: Kind, text: str, what: str) -> str:
    if not text.strip():
        raise InvalidValueError(what=what, value=text, expected="a job's ID, a prefix of it, or its name")
    return text


def _job_id(_kind: Kind, text: str, what: str) -> str:
    from jobman.model.ids import is_id  # loaded when the value is given

    if not is_id(text):
        raise InvalidValueError(what=what, value=text, expected="a whole job ID as list prints it")
    return text


def _assignment(_kind: Kind, text: str, what: str) -> str:
    # The value may be a secret: the error repeats the name at most.
    name, separator, _ = text.partition("=")
    if not (name and separator):
        raise InvalidValueError(what=what, value=name, expected="NAME=VALUE")
    return text


def _duration(_kind: Kind, text: str, what: str) -> int:
    from jobman.model.scalars import parse_duration  # loaded when a value is given

    return parse_duration(text, what=what)


def _age(kind: Kind, text: str, what: str) -> int | str:
    if text == "unlimited":
        return text
    try:
        return _duration(kind, text, what)
    except InvalidValueError as error:
        raise InvalidValueError(what=what, value=text, expected=f"{error.fields['expected']}, or unlimited") from None


def _size(_kind: Kind, text: str, what: str) -> int:
    from jobman.model.scalars import parse_size  # loaded when a value is given

    return parse_size(text, what=what)


def _timestamp(_kind: Kind, text: str, what: str) -> int:
    from jobman.model.scalars import parse_timestamp  # loaded when a value is given

    return parse_timestamp(text, what=what)


def _integer(kind: Kind, text: str, what: str) -> int:
    from jobman.model.scalars import parse_integer  # loaded when a value is given

    try:
        value = parse_integer(text)
    except InvalidValueError:
        value = None
    if value is None or value < kind.minimum:
        raise InvalidValueError(what=what, value=text, expected=_at_least(kind.minimum))
    return value


def _integers(kind: Kind, text: str, what: str) -> tuple[int, ...]:
    values = []
    for part in text.split(","):
        value = _signed_decimal(part)
        if value is None or value < kind.minimum:
            expected = f"decimal integers separated by commas, each {kind.minimum} or more"
            raise InvalidValueError(what=what, value=text, expected=expected)
        values.append(value)
    return tuple(values)


def _run(_kind: Kind, text: str, what: str) -> int:
    value = _signed_decimal(text)
    if not value:
        expected = "a run number such as 1, or -1 for the latest run"
        raise InvalidValueError(what=what, value=text, expected=expected)
    return value


def _run_or_all(_kind: Kind, text: str, what: str) -> int | str:
    if text == "all":
        return text
    value = _signed_decimal(text)
    if not value:
        expected = "a run number such as 1, -1 for the latest run, or all"
        raise InvalidValueError(what=what, value=text, expected=expected)
    return value


def _choice(kind: Kind, text: str, what: str) -> str:
    if text not in kind.words:
        raise InvalidValueError(what=what, value=text, expected=_one_of(kind.words))
    return text


def _choices(kind: Kind, text: str, what: str) -> tuple[str, ...]:
    return tuple(_choice(kind, part, what) for part in text.split(","))


def _limit(_kind: Kind, text: str, what: str) -> int | str:
    if text == "unlimited":
        return text
    value = _signed_decimal(text) if text.isascii() and text.isdigit() else None
    if not value:
        raise InvalidValueError(what=what, value=text, expected="a positive integer or unlimited")
    return value


def _outcome_requirement(_kind: Kind, text: str, what: str) -> tuple[tuple[str, str], ...]:
    from jobman.model.spec import Predicate  # loaded when a value is given
    from jobman.model.state import JobOutcome

    selector, separator, names = text.partition("=")
    outcomes = sorted(set(names.split(",")))
    if not (selector.strip() and separator) or not frozenset(JobOutcome).issuperset(outcomes):
        words = _one_of(tuple(outcome.value for outcome in JobOutcome))
        raise InvalidValueError(what=what, value=text, expected=f"JOB=OUTCOME,... with the outcomes {words}")
    if len(outcomes) > 1:
        return ((selector, f"outcomes:{','.join(outcomes)}"),)
    return ((selector, Predicate.FAILED.value if outcomes == [JobOutcome.FAILURE] else outcomes[0]),)


def _signal(_kind: Kind, text: str, what: str) -> str:
    from signal import Signals  # loaded when a value is given

    from jobman.process.exits import signal_name
    from jobman.signal_names import full_name

    name = full_name(text)
    if name is None:
        raise InvalidValueError(what=what, value=text, expected="the name of a signal, such as TERM or SIGTERM")
    return signal_name(Signals[name])


def _signed_decimal(text: str) -> int | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or len(digits) > _INT64_DIGITS or not _DECIMAL.issuperset(digits):
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _at_least(minimum: int) -> str:
    return "an integer" if minimum < -1 else f"an integer, {minimum} or more"


def _one_of(words: tuple[str, ...]) -> str:
    return " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


_CONVERSIONS: dict[str, Callable[[Kind, str, str], object]] = {
    "bool": _bool,
    "text": _text,
    "selector": _selector,
    "id": _job_id,
    "assignment": _assignment,
    "duration": _duration,
    "age": _age,
    "size": _size,
    "timestamp": _timestamp,
    "integer": _integer,
    "integers": _integers,
    "run": _run,
    "run or all": _run_or_all,
    "choice": _choice,
    "choices": _choices,
    "limit": _limit,
    "outcome requirement": _outcome_requirement,
    "signal": _signal,
}
