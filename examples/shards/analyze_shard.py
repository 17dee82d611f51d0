"""The second step, once for each shard: print the mean, and note how many analyses run at the same moment.

Shards 2 and 3 fail in their first run, as if a server were busy: exit status 1, which may be retried. Shard 4 is
damaged: exit status 3, which no other run would change.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

BUSY = {2, 3}
DAMAGED = {4}
SECONDS = 0.5


def main() -> int:
    """Return the exit status: 1 stands for a failure that another run may not meet, 3 for one that it will."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shard", type=int, required=True)
    shard = parser.parse_args().shard
    note(f"begin {shard}")
    try:
        time.sleep(SECONDS)  # the work of an analysis that is worth a slot
        return analyze(shard)
    finally:
        note(f"end {shard}")


def analyze(shard: int) -> int:
    """Print the mean of a shard, or say on standard error why there is none."""
    if shard in BUSY and os.environ["JOBMAN_RUN_NUMBER"] == "1":
        print("the server is busy", file=sys.stderr)
        return 1
    if shard in DAMAGED:
        print(f"shard {shard} is damaged", file=sys.stderr)
        return 3
    with open(f"shard-{shard}.txt", encoding="ascii") as lines:
        mean = statistics.fmean(float(line) for line in lines)
    print(f"shard {shard}: {mean:.0f} (slot {os.environ['JOBMAN_SLOTS']} of pool {os.environ['JOBMAN_POOL']})")
    return 0


def note(event: str) -> None:
    """Append a line to ``moments.txt``; short appends by several processes do not mix."""
    with open("moments.txt", "ab", buffering=0) as moments:
        moments.write(f"{event}\n".encode("ascii"))


if __name__ == "__main__":
    sys.exit(main())
