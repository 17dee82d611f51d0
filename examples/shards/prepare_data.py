"""The first step: write the measurements, one file for each shard."""

from __future__ import annotations

import random

SHARDS = 4
COUNT = 20_000


def main() -> None:
    """Draw measurements of quantities that are 10, 20, 30 and 40, with noise, and write them a line each."""
    # The same numbers each time: whoever repeats the example shall see the same results.
    source = random.Random(2026)
    for shard in range(1, SHARDS + 1):
        with open(f"shard-{shard}.txt", "w", encoding="ascii") as lines:
            lines.writelines(f"{source.gauss(10 * shard, 2):.6f}\n" for _ in range(COUNT))
        print(f"shard {shard}: {COUNT} measurements", flush=True)


if __name__ == "__main__":
    main()
