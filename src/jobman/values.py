"""The base of every value, without the price of ``typing``.

``typing`` takes 5 to 8 ms to import on Python 3.11 (it loads ``re`` and ``contextlib``), a third of what a command may
take in all, and its ``NamedTuple`` compiles each annotation. The one here makes the same classes from the same source;
type checkers are shown the original. See ADR 0006.
"""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "NamedTuple", "Protocol"]

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is; checkers know the name
if TYPE_CHECKING:
    from typing import NamedTuple, Protocol
else:
    from collections import namedtuple  # what typing.NamedTuple is made of

    Protocol = object  # protocols are for checkers; nothing inherits from them

    class _NamedTupleMeta(type):
        """Turn the annotations of a class body into the fields of a named tuple, as ``typing.NamedTuple`` does."""

        def __new__(cls, name, bases, body):  # noqa: ANN001, ANN204  # checkers are shown typing.NamedTuple
            if body.get("__module__") == __name__:
                return super().__new__(cls, name, bases, body)
            annotations = body.pop("__annotations__", {})
            fields = tuple(annotations)
            defaults = [body.pop(field) for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024  # see above
            made.__annotations__ = annotations
            for key, value in body.items():
                if key not in ("__module__", "__slots__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTupleMeta):
        """An immutable value with named fields; see ``typing.NamedTuple``."""
