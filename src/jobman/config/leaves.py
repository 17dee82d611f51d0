"""The types of a configuration's values: each a check with its message, and a JSON Schema (contract, K.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import core_schema

from jobman.config import patterns, scalars
from jobman.config.scalars import UNLIMITED
from jobman.model.events import NotifyEvent
from jobman.model.scalars import INT64_MAX
from jobman.model.state import JobOutcome

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SLOTS = 2**32 - 1
EVENTS = tuple(event.value for event in NotifyEvent)


class Leaf:
    """What a scalar may be: the function that checks it, and its JSON Schema."""

    def __init__(self, check: Callable[[object], object], **schema: object) -> None:
        self._check = check
        self._schema = schema

    def __get_pydantic_core_schema__(self, _source: object, _handler: object) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, _schema: object, _handler: object) -> dict[str, Any]:
        return dict(self._schema)


def integer(minimum: int, maximum: int = INT64_MAX, what: str = "a number") -> Leaf:
    """A plain decimal integer within bounds."""
    return Leaf(scalars.integer(minimum, maximum, what), type="integer", minimum=minimum, maximum=maximum)


def integer_limit(minimum: int, maximum: int = INT64_MAX, what: str = "a number") -> Leaf:
    """A plain decimal integer within bounds, or ``unlimited``."""
    bounds = {"type": "integer", "minimum": minimum, "maximum": maximum}
    return Leaf(scalars.integer_limit(minimum, maximum, what), anyOf=[bounds, {"const": UNLIMITED}])


def choice(*words: str) -> Leaf:
    """One of a few words."""
    return Leaf(scalars.choice(*words), enum=list(words))


_DURATION = {"type": "string", "pattern": r"^\+?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|[dD]|[wW]))+)$"}
_BYTES = {"type": "string", "pattern": r"^\d+([KMGTPE]iB|B)?$"}
_NO_LIMIT = {"const": UNLIMITED}
_NAME = {"type": "string", "pattern": scalars.NAME_PATTERN, "maxLength": scalars.NAME_BYTES}
_VARIABLE = {"type": "string", "pattern": scalars.ENVIRONMENT_PATTERN}
_REFERENCE = {"type": "string", "pattern": "^(env:[A-Z_][A-Z0-9_]*|file:/.+)$"}
_REGULAR_EXPRESSION = {"type": "string", "minLength": 1, "maxLength": patterns.MAX_BYTES}
Limit = int | str
Duration = Annotated[str, Leaf(scalars.duration, **_DURATION)]
PositiveDuration = Annotated[str, Leaf(scalars.positive_duration, **_DURATION)]
DurationLimit = Annotated[str, Leaf(scalars.duration_limit, anyOf=[_DURATION, _NO_LIMIT])]
ByteLimit = Annotated[Limit, Leaf(scalars.byte_limit, anyOf=[{"type": "integer", "minimum": 0}, _BYTES, _NO_LIMIT])]
Size = Annotated[int, Leaf(scalars.positive_size, anyOf=[{"type": "integer", "minimum": 1}, _BYTES])]
SlotLimit = Annotated[Limit, integer_limit(1, MAX_SLOTS, "a number of slots")]
CountLimit = Annotated[Limit, integer_limit(0)]
RunLimit = Annotated[Limit, integer_limit(1)]
Bool = Annotated[bool, Leaf(scalars.boolean, type="boolean")]
Text = Annotated[str, Leaf(scalars.text, type="string")]
FilledText = Annotated[str, Leaf(scalars.filled_text, type="string", minLength=1)]
Label = Annotated[str, Leaf(scalars.label, type="string", minLength=1)]
Name = Annotated[str, Leaf(scalars.name, **_NAME)]
EnvironmentName = Annotated[str, Leaf(scalars.environment_name, **_VARIABLE)]
AbsolutePath = Annotated[str, Leaf(scalars.absolute_path, type="string", pattern="^/")]
AnyPath = Annotated[str, Leaf(scalars.path, type="string", minLength=1)]
Time = Annotated[str, Leaf(scalars.timestamp, type="string", format="date-time")]
ExitCode = Annotated[int, integer(0, 255, "an exit code")]
Signal = Annotated[str, Leaf(scalars.signal_name, type="string")]
SecretReference = Annotated[str, Leaf(scalars.secret_reference, **_REFERENCE)]
Pattern = Annotated[str, Leaf(patterns.checked, **_REGULAR_EXPRESSION)]
Event = Annotated[str, choice(*EVENTS)]
Outcome = Annotated[str, choice(*(one.value for one in JobOutcome))]
unique = AfterValidator(scalars.unique)
not_empty = AfterValidator(scalars.not_empty)
UNIQUE = Field(json_schema_extra={"uniqueItems": True})
NOT_EMPTY = Field(json_schema_extra={"minItems": 1})
Command = Annotated[list[Text], not_empty, NOT_EMPTY]
Names = Annotated[list[Name], unique, UNIQUE]
Codes = Annotated[list[ExitCode], unique, UNIQUE]
Events = Annotated[list[Event], unique, UNIQUE]
Variables = dict[EnvironmentName, Text]
SecretVariables = dict[EnvironmentName, Name]
