"""The second step: read the measurements and print their mean; its first run fails, as if a server were busy."""

from __future__ import annotations

import os
import statistics
import sys

INPUT = "measurements.txt"


def main() -> int:
    """Return the exit status: 1 stands for a failure that another run may not meet."""
    if os.environ.get("JOBMAN_RUN_NUMBER") == "1":
        print("temporary analysis failure", file=sys.stderr)
        return 1
    with open(INPUT, encoding="ascii") as lines:
        mean = statistics.fmean(float(line) for line in lines)
    print(f"result: {mean:.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
