"""The first step: write the measurements that the second one reads."""

from __future__ import annotations

import random

COUNT = 400_000
INPUT = "measurements.txt"


def main() -> None:
    """Draw measurements of a quantity that is 42, with noise, and write them a line each."""
    # The same numbers each time: whoever repeats the example shall see the same result.
    source = random.Random(2026)
    with open(INPUT, "w", encoding="ascii") as lines:
        for number in range(1, COUNT + 1):
            lines.write(f"{source.gauss(42, 5):.6f}\n")
            if number % (COUNT // 4) == 0:
                print(f"{number} of {COUNT} measurements", flush=True)


if __name__ == "__main__":
    main()
