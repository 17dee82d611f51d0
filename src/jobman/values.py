"""The bases of every value, without the price of ``typing`` and ``enum``.

On Python 3.11 importing the two takes 8 ms, and making the classes of the model with them 5 ms more: half of what a
command may take in all. The bases here make the same classes from the same source and do what the model needs of them;
type checkers are shown the originals. See ADR 0006.
"""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "NamedTuple", "Protocol", "StrEnum"]

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is; checkers know the name
if TYPE_CHECKING:
    from enum import StrEnum
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

    class _StrEnumMeta(type):
        """Turn the text constants of a class body into its only instances, as ``enum.StrEnum`` does."""

        def __new__(cls, name, bases, body):  # noqa: ANN001, ANN204  # checkers are shown enum.StrEnum
            texts = {key: value for key, value in body.items() if isinstance(value, str) and not key.startswith("_")}
            made = super().__new__(cls, name, bases, {key: body[key] for key in body if key not in texts})
            made._by_value = {}
            for key, value in texts.items():
                member = str.__new__(made, value)
                member.__dict__.update(name=key, value=value)
                made._by_value[value] = member
                type.__setattr__(made, key, member)
            return made

        def __call__(cls, value):  # noqa: ANN001, ANN204  # as above
            try:
                return cls._by_value[value]
            except (KeyError, TypeError):
                raise ValueError(f"{value!r} is not a valid {cls.__name__}") from None

        def __iter__(cls):  # noqa: ANN204  # as above
            return iter(cls._by_value.values())

        def __len__(cls):  # noqa: ANN204  # as above
            return len(cls._by_value)

        def __contains__(cls, value):  # noqa: ANN001, ANN204  # as above
            return value in cls._by_value

        def __setattr__(cls, name, value):  # noqa: ANN001, ANN204  # as above
            if name != "_by_value" or "_by_value" in cls.__dict__:
                raise AttributeError(f"cannot change {cls.__name__}.{name}")
            type.__setattr__(cls, name, value)

    class StrEnum(str, metaclass=_StrEnumMeta):
        """A closed set of words, each a ``str`` with a ``name`` and a ``value``; see ``enum.StrEnum``."""

        __slots__ = ("__dict__",)

        def __repr__(self) -> str:
            return f"<{type(self).__name__}.{self.name}: {self.value!r}>"

        def __reduce__(self) -> tuple[object, tuple[str]]:
            return type(self), (self.value,)

        def __copy__(self) -> StrEnum:
            return self

        def __deepcopy__(self, _memo: object) -> StrEnum:
            return self
