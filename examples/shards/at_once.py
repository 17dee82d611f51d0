"""Print the highest number of analyses that ran at the same moment, as they have noted it in ``moments.txt``."""

from __future__ import annotations


def main() -> None:
    """Count up at each beginning, down at each end."""
    now = most = 0
    with open("moments.txt", encoding="ascii") as moments:
        for moment in moments:
            now += 1 if moment.startswith("begin ") else -1
            most = max(most, now)
    print(most)


if __name__ == "__main__":
    main()
