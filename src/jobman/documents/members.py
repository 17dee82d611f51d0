"""What the documents share: members that may be missing, and processes."""

from __future__ import annotations

from jobman.model.scalars import format_timestamp
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from jobman.process import Member

    Document = dict[str, Any]


def timestamp(time_ns: int | None) -> str | None:
    """Return a time as text, ``None`` for none."""
    return None if time_ns is None else format_timestamp(time_ns)


def without_empty(members: Document) -> Document:
    """Return the members that say something: not ``None``, 0, and no empty text or list."""
    return {name: value for name, value in members.items() if value not in (None, "", 0, [])}


def survivor(member: Member) -> Document:
    """Return a living process of a lost job."""
    return {"pid": member.identity.pid, "creation_id": member.identity.creation_id, "name": member.name}
