"""The bases of every value, without the price of ``typing`` and ``enum``.

On Python 3.11 importing the two takes 8 ms, and making the classes of the model with them 5 ms more: half of what a
command may take in all. The bases here make the same classes from the same source and do what the model needs of them;
type checkers are shown the originals. See ADR 0006.
"""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "NamedTuple", "Protocol", "StrEnum", "counted"]

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is; checkers know the name
if TYPE_CHECKING:
    from enum import StrEnum
    from typing import NamedTuple, Protocol
else:
    from _collections import _tuplegetter  # what makes the fields of collections.namedtuple, too

    Protocol = object  # protocols are for checkers; nothing inherits from them

    class _NamedTupleMeta(type):
        """Turn the annotations of a class body into the fields of a tuple, as ``typing.NamedTuple`` does."""

        def __new__(cls, name, bases, body):  # noqa: ANN001, ANN204  # checkers are shown typing.NamedTuple
            if body.get("__module__") == __name__:
                return super().__new__(cls, name, bases, body)
            fields = tuple(body.get("__annotations__", ()))
            defaults = {field: body.pop(field) for field in fields if field in body}
            getters = {field: _tuplegetter(place, "") for place, field in enumerate(fields)}
            shared = {"__slots__": (), "__match_args__": fields, "_fields": fields, "_field_defaults": defaults}
            return type(name, (_NamedTuple,), {**body, **getters, **shared})

    class NamedTuple(metaclass=_NamedTupleMeta):
        """An immutable value with named fields; see ``typing.NamedTuple``."""

    class _NamedTuple(tuple):
        """What all named tuples share; ``collections.namedtuple`` compiles it anew for each of them, for 40 us."""

        __slots__ = ()

        def __new__(cls, *values, **named):  # noqa: ANN002, ANN003, ANN204  # as above
            if named or len(values) != len(cls._fields):
                values = cls._complete(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _complete(cls, values, named):  # noqa: ANN001, ANN206  # as above
            left = cls._fields[len(values) :]
            given = {**cls._field_defaults, **named}
            if len(values) > len(cls._fields) or not given.keys() >= set(left) or not set(left) >= named.keys():
                problem = f"expected the fields {', '.join(cls._fields)}, got {len(values)} values and {sorted(named)}"
                raise TypeError(f"{cls.__name__}: {problem}")
            return (*values, *[given[field] for field in left])

        def _replace(self, **named):  # noqa: ANN003, ANN202  # as above
            # Every transition comes here several times: field by field, without a dictionary in between.
            values = [named.pop(field, value) for field, value in zip(self._fields, self, strict=True)]
            if named:
                raise TypeError(f"{type(self).__name__}: there are no fields {', '.join(sorted(named))}")
            return tuple.__new__(type(self), values)

        def _asdict(self):  # noqa: ANN202  # as above
            return dict(zip(self._fields, self, strict=True))

        @classmethod
        def _make(cls, values):  # noqa: ANN001, ANN206  # as above
            return cls(*values)

        def __getnewargs__(self):  # noqa: ANN204  # as above
            return tuple(self)

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

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


def counted(number: int, noun: str) -> str:
    """Return a number with what it counts, in the plural if that is not one: ``1 job``, ``2 jobs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
