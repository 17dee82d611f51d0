"""What supervisors cost that have nothing to do but wait."""

from __future__ import annotations

import os
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
        time.sleep(bed.pick(1, 0))
        bare = proportional([process.pid for process in idle])
    finally:
        for process in idle:
            process.kill()
            process.wait()
    ours = proportional(Crowd(bed).grow(count))
    measured, yardstick = f"{ours / 1e6:.1f} MB", f"python -I -S that sleeps {bare / 1e6:.1f} MB"
    return [
        Row("waiting_memory", f"memory per waiting supervisor, {count} of them", measured, yardstick, ours / bare, 2.6)
    ]


def processor(bed: Bed) -> list[Row]:
    """Measure the processor time of many waiting supervisors together."""
    return [_processor(bed, bed.pick(_WAITERS, 4), name="waiting_cpu", budget=2.5)]


def processor_of_many(bed: Bed) -> list[Row]:
    """Measure the processor time of ten times as many, whose polls share one budget."""
    return [_processor(bed, bed.pick(10 * _WAITERS, 3), name="waiting_cpu_500", budget=10.0)]


def thousand(bed: Bed) -> list[Row]:
    """Measure what a thousand waiting jobs take of the machine, all in all; none may fail."""
    count = bed.pick(20 * _WAITERS, 3)
    before = meminfo("MemAvailable")
    waiting = Crowd(bed).grow(count)
    used_ns, elapsed_ns = spend(waiting, bed.pick(20_000, 100))
    memory = count * proportional(waiting)
    descriptors = sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in waiting)
    figures = (
        f"{memory / 1e9:.1f} GB (free memory {(before - meminfo('MemAvailable')) / 1e9:+.1f} GB less)",
        f"{100 * used_ns / elapsed_ns:.1f} % of a core",
        f"{descriptors / count:.0f} descriptors each",
    )
    what, yardstick = f"{count:,} waiting jobs: failed", f"{os.cpu_count()} cores, {meminfo('MemTotal') / 1e9:.0f} GB"
    return [Row("waiting_thousand", what, ", ".join(figures), yardstick, count - len(waiting), 0, "failed")]


def _processor(bed: Bed, count: int, *, name: str, budget: float) -> Row:
    waiting = Crowd(bed).grow(count)
    used_ns, elapsed_ns = spend(waiting, bed.pick(20_000, 100))
    percent = 100 * used_ns / elapsed_ns
    what, measured = f"CPU of {count} waiting supervisors", f"{used_ns / 1e6:.0f} ms in {elapsed_ns / SECOND_NS:.0f} s"
    return Row(name, what, measured, "one core", percent, budget, "%")


class Crowd:
    """Jobs that wait for one that does not end."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._blocker = bed.submit("sleep", "900")
        self._owner = bed.supervisors()
        self._count = 0

    def grow(self, wanted: int) -> list[int]:
        """Go on until so many wait; return the PIDs of their supervisors."""
        bed = self._bed
        for _ in range(self._count, wanted):
            bed.submit("true", flags=("--after-success", self._blocker))
        self._count = wanted
        await_true(
            lambda: bed.jobman("list", "--phase", "waiting", "--all").count("\n") == wanted + 1, "they do not wait"
        )
        time.sleep(bed.pick(1, 0))  # what they still import after the claim belongs to their start
        return [pid for pid in bed.supervisors() if pid not in self._owner]


def spend(pids: Sequence[int], milliseconds: int) -> tuple[int, int]:
    """Return how much processor time they used in about so many milliseconds, and how many nanoseconds those were."""
    before_ns, began_ns = _used_ns(pids), time.monotonic_ns()
    time.sleep(milliseconds / 1e3)
    return _used_ns(pids) - before_ns, time.monotonic_ns() - began_ns


def proportional(pids: Sequence[int]) -> float:
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


def meminfo(name: str) -> int:
    """Return a size that the kernel tells of the machine's memory, in bytes."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return _KIBIBYTE * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
