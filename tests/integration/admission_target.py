"""A target that says what it holds, and how many hold slots at the same time: run as a program.

``admission_target.py LABEL SLOTS [SECONDS]`` enters the ring of those that live, notes what it sees there, and waits:
until a file ``open-LABEL`` or ``open`` exists, or for so many seconds. Its place in the ring is a lock that the kernel
drops when it ends, however it ends; nobody has to tidy up after it.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time

LIMIT_S = 60.0


def main() -> int:
    """Enter, note, wait."""
    label, slots = sys.argv[1], int(sys.argv[2])
    os.makedirs("ring", exist_ok=True)
    with open("ring.lock", "a") as ring, open(f"ring/{os.getpid()}", "a+") as place:
        fcntl.flock(ring, fcntl.LOCK_EX)
        fcntl.flock(place, fcntl.LOCK_EX)
        pool, indexes = os.environ.get("JOBMAN_POOL", ""), os.environ.get("JOBMAN_SLOTS", "")
        place.write(json.dumps({"label": label, "pool": pool, "slots": slots, "indexes": indexes}))
        place.flush()
        with open("seen", "a") as seen:
            seen.write(json.dumps({"label": label, "alive": _alive()}) + "\n")
        fcntl.flock(ring, fcntl.LOCK_UN)
        _wait(label)
    return 1 if label.startswith("failing") else 0


def _alive() -> list[dict[str, object]]:
    """Return what everybody holds whose lock is taken, ourselves included."""
    found = []
    for name in os.listdir("ring"):
        with open(f"ring/{name}") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                found.append(json.load(other))
    return found


def _wait(label: str) -> None:
    deadline = time.monotonic() + (float(sys.argv[3]) if len(sys.argv) > 3 else LIMIT_S)
    while time.monotonic() < deadline and not (os.path.exists(f"open-{label}") or os.path.exists("open")):
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
