"""Reading JSON strictly: every member is asked for by name and type, and what is left over is refused."""

from __future__ import annotations

from jobman.errors import InvalidSpecError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Self

    Document = dict[str, Any]


class Reader:
    """Takes the members of one object in a ``with`` statement; what is left at its end is unknown, and refused.

    Raises:
        InvalidSpecError: it is no object, or has a member that nobody took.
    """

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise InvalidSpecError(detail=f"stored document: expected an object, found {type(value).__name__}")
        self._members: Document = dict(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._members:
            raise InvalidSpecError(detail=f"stored document: unknown member {min(self._members)}")

    def take(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """Remove and return a member that must exist and be of ``kind``; bool is no int here."""
        value = self._members.pop(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise InvalidSpecError(detail=f"stored document: {name} has the wrong type")
        return value

    def take_optional(self, name: str, kind: type) -> Any:
        """Remove and return a member that may be absent."""
        return self.take(name, kind) if name in self._members else None

    def expect(self, constants: Mapping[str, object]) -> None:
        """Remove members that can have one value only."""
        for name, value in constants.items():
            found = self._members.pop(name)
            if found != value or type(found) is not type(value):
                raise InvalidSpecError(detail=f"stored document: {name} asks for what this version does not offer")


def unique(pairs: list[tuple[str, object]]) -> Document:
    """Return the members of an object, refusing a duplicate key; for `canonical.load`."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidSpecError(detail="stored document: duplicate key")
    return members


def strings(values: list[object]) -> tuple[str, ...]:
    """Return a list that must hold text only."""
    if not all(isinstance(value, str) for value in values):
        raise InvalidSpecError(detail="stored document: expected text")
    return tuple(str(value) for value in values)


def texts(document: Document) -> tuple[tuple[str, str], ...]:
    """Return the members of an object that must hold text only, by name."""
    strings(list(document.values()))
    return tuple(sorted(document.items()))


def integers(values: list[object]) -> tuple[int, ...]:
    """Return a list that must hold integers only."""
    integers = tuple(value for value in values if isinstance(value, int) and not isinstance(value, bool))
    if len(integers) != len(values):
        raise InvalidSpecError(detail="stored document: expected integers")
    return integers
