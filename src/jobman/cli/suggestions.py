"""What somebody may have meant; loaded only when a word was not understood (``difflib`` costs 4 ms)."""

from __future__ import annotations

# The table of distances is as large as the word; no name is nearly so long.
_LONGEST = 40


def suggest(word: str, candidates: tuple[str, ...]) -> str | None:
    """Return the candidate nearest to ``word``, or None when none is near.

    Near is the beginning of a candidate (3 characters at least), or a third of the letters mistyped at most. Of equals,
    the shortest that begins so, or the first.
    """
    if len(word) > _LONGEST:
        return None
    begun = [candidate for candidate in candidates if len(word) >= 3 and candidate.startswith(word)]
    if begun:
        return min(begun, key=len)
    limit = max(1, len(word) // 3)
    distance, _, nearest = min(
        ((edit_distance(word, candidate), place, candidate) for place, candidate in enumerate(candidates)),
        default=(limit + 1, 0, ""),
    )
    return nearest if distance <= limit else None


def edit_distance(left: str, right: str) -> int:
    """Count the letters to insert, delete, replace or swap with their neighbour to turn one word into the other."""
    before: list[int] = []
    above = list(range(len(right) + 1))
    for row, letter in enumerate(left, 1):
        here = [row]
        for column, other in enumerate(right, 1):
            cost = min(above[column] + 1, here[-1] + 1, above[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            here.append(cost)
        before, above = above, here
    return above[-1]
