from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.cli.suggestions import edit_distance, suggest

VERBS = ("run", "list", "status", "show", "logs", "wait", "cancel", "help")
LETTERS = st.text("abc", max_size=6)


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("ab", "ba", 1), ("kitten", "sitting", 3), ("cancle", "cancel", 1)],
)
def test_distance_counts_letters_mistyped(left: str, right: str, distance: int) -> None:
    assert edit_distance(left, right) == distance


@given(LETTERS, LETTERS)
def test_distance_is_symmetric_and_bounded(left: str, right: str) -> None:
    distance = edit_distance(left, right)
    assert distance == edit_distance(right, left)
    assert (distance == 0) == (left == right)
    assert abs(len(left) - len(right)) <= distance <= max(len(left), len(right))


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [
        ("statsu", "status"),
        ("stat", "status"),
        ("lst", "list"),
        ("log", "logs"),
        ("cancle", "cancel"),
        ("frobnicate", None),
        ("x", None),
        ("", None),
        ("r" * 10_000, None),
    ],
)
def test_a_near_miss_is_suggested(word: str, suggestion: str | None) -> None:
    assert suggest(word, VERBS) == suggestion


def test_a_word_too_long_to_be_a_name_is_not_compared() -> None:
    assert suggest("a" * 40, ("b" + "a" * 40,)) is not None
    assert suggest("a" * 41, ("b" + "a" * 41,)) is None


def test_nothing_is_suggested_where_there_is_nothing() -> None:
    assert suggest("status", ()) is None
