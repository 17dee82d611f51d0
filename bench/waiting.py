"""What supervisors cost that have nothing to do but wait."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from bench.bed import SECOND_NS, Bed, Row, await_true

if TYPE_CHECKING:
    from collections.abc import Sequence

_WAITERS = 50
_IDLE = "import time; time.sleep(600)"
_KIBIBYTE = 1024


def memory(bed: Bed) -> list[Row]:
    """Measure the proportional memory of each waiting supervisor, and of as many bare interpreters that sleep."""
    count = bed.pick(_WAITERS, 4)
    argv = (bed.python, "-I", "-S", "-c", _IDLE)
    idle = [subprocess.Popen(argv) for _ in range(count)]
    try:
        time.sleep(1)
        bare = _proportional([process.pid for process in idle])
    finally:
        for process in idle:
            process.kill()
            process.wait()
    ours = _proportional(_wait_together(bed, count))
    measured, yardstick = f"{ours / 1e6:.1f} MB", f"python -I -S that sleeps {bare / 1e6:.1f} MB"
    return [
        Row("waiting_memory", f"memory per waiting supervisor, {count} of them", measured, yardstick, ours / bare, 2.6)
    ]


def processor(bed: Bed) -> list[Row]:
    """Measure the processor time of many waiting supervisors together."""
    return [_processor(bed, bed.pick(_WAITERS, 4), name="waiting_cpu", budget=2.5)]


def processor_of_many(bed: Bed) -> list[Row]:
    """Measure the processor time of ten times as many, whose polls share one budget."""
    return [_processor(bed, bed.pick(10 * _WAITERS, 8), name="waiting_cpu_500", budget=10.0)]


def _processor(bed: Bed, count: int, *, name: str, budget: float) -> Row:
    waiting = _wait_together(bed, count)
    seconds = bed.pick(20, 1)
    before_ns, began_ns = _used_ns(waiting), time.monotonic_ns()
    time.sleep(seconds)
    used_ns, elapsed_ns = _used_ns(waiting) - before_ns, time.monotonic_ns() - began_ns
    percent = 100 * used_ns / elapsed_ns
    what, measured = f"CPU of {count} waiting supervisors", f"{used_ns / 1e6:.0f} ms in {elapsed_ns / SECOND_NS:.0f} s"
    return Row(name, what, measured, "one core", percent, budget, "%")


def _wait_together(bed: Bed, count: int) -> list[int]:
    """Let ``count`` jobs wait for one that does not end; return the PIDs of their supervisors."""
    blocker = bed.submit("sleep", "600")
    owner = bed.supervisors()
    for _ in range(count):
        bed.submit("true", flags=("--after-success", blocker))
    await_true(lambda: bed.jobman("list", "--phase", "waiting", "--all").count("\n") == count + 1, "they do not wait")
    time.sleep(1)  # what they still import after the claim belongs to their start
    return [pid for pid in bed.supervisors() if pid not in owner]


def _proportional(pids: Sequence[int]) -> float:
    """Return the mean proportional set size, in bytes."""
    sizes = []
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
            sizes.append(next(int(line.split()[1]) for line in lines if line.startswith("Pss:")))
    return _KIBIBYTE * sum(sizes) / len(sizes)


def _used_ns(pids: Sequence[int]) -> int:
    """Return the processor time used so far; in ``stat`` it would be rounded to ticks, per process."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as numbers:
            total += int(numbers.read().split()[0])
    return total
