"""The lean bases of values do what ``typing.NamedTuple`` and ``enum.StrEnum`` would (ADR 0006)."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from jobman.values import NamedTuple, StrEnum, counted


class Colour(StrEnum):
    """Two words."""

    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    """Two numbers, the second with a default."""

    x: int
    y: int = 2

    def total(self) -> int:
        """Both together."""
        return self.x + self.y


def test_a_named_tuple_has_fields_defaults_and_methods() -> None:
    point = Point(1)

    assert point == (1, 2)
    assert (point.x, point.y, point.total()) == (1, 2, 3)
    assert point._replace(x=5) == Point(5, 2)
    assert repr(point) == "Point(x=1, y=2)"
    assert Point.__doc__ == "Two numbers, the second with a default."


@pytest.mark.parametrize(
    "point", [Point(1, 3), Point(1, y=3), Point(y=3, x=1), Point._make([1, 3]), Point(0, 3)._replace(x=1)]
)
def test_a_named_tuple_is_made_in_every_way(point: Point) -> None:
    assert point == (1, 3)
    assert type(point) is Point
    assert point._asdict() == {"x": 1, "y": 3}
    assert hash(point) == hash((1, 3))
    match point:
        case Point(x, y):
            assert (x, y) == (1, 3)


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1,), {"z": 3}), ((1, 2, 3), {}), ((1,), {"x": 1})])
def test_a_named_tuple_refuses_missing_unknown_and_repeated_fields(
    values: tuple[int, ...], named: dict[str, int]
) -> None:
    with pytest.raises(TypeError, match="Point: expected the fields x, y, got"):
        Point(*values, **named)


def test_a_named_tuple_refuses_to_replace_what_it_does_not_have() -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(1)._replace(z=3)  # type: ignore[call-arg]  # what is tested


def test_named_tuples_survive_copies_and_pickles() -> None:
    for again in (copy.deepcopy(Point(1)), copy.copy(Point(1)), pickle.loads(pickle.dumps(Point(1)))):  # noqa: S301  # ours
        assert again == Point(1)
        assert type(again) is Point


def test_a_named_tuple_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Point(1).x = 3  # type: ignore[misc]  # what is tested


def test_words_are_text_with_a_name_and_one_instance_each() -> None:
    word: str = Colour.RED
    assert word == "red"
    assert f"{Colour.RED}" == "red"
    assert Colour("red") is Colour.RED
    assert (Colour.RED.name, Colour.RED.value) == ("RED", "red")
    assert type(Colour.RED.value) is str
    assert {"red": 1}[Colour.RED] == 1
    assert repr(Colour.BLUE) == "<Colour.BLUE: 'blue'>"


def test_the_words_of_a_set_come_in_their_order() -> None:
    assert list(Colour) == ["red", "blue"]
    assert len(Colour) == 2
    assert "red" in tuple(Colour)
    assert "green" not in tuple(Colour)


@pytest.mark.parametrize("value", ["green", "RED", "", None, 3])
def test_a_word_outside_the_set_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a valid Colour"):
        Colour(value)  # type: ignore[arg-type]  # what is tested


def test_a_set_of_words_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Colour.RED = "x"  # type: ignore[misc]  # what is tested


def test_words_survive_copies_and_pickles() -> None:
    assert copy.deepcopy(Colour.RED) is Colour.RED
    assert copy.copy(Colour.RED) is Colour.RED
    assert pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED  # noqa: S301  # our own bytes


def test_the_model_loads_neither_typing_nor_enum() -> None:
    program = "import sys, jobman.model.transitions.running, jobman.store.commit; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    assert "jobman.model.state" in loaded
    assert not {"typing", "enum", "re", "json", "contextlib"}.intersection(loaded)


def test_what_is_counted_stands_in_the_plural_unless_it_is_one() -> None:
    assert [counted(number, "job") for number in (0, 1, 2)] == ["0 jobs", "1 job", "2 jobs"]
