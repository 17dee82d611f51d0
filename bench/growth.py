"""Whether what has been slows down what is: commands in stores of a few jobs, and of very many."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from bench.bed import Bed, Row, interleave, milliseconds
from bench.filling import Filling
from jobman.store.connection import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

_SIZES = (10, 10_000, 200_000)
_ROUNDS = 25
_WRITERS = 64
_MERGED = 4 << 20
# One of the processes that write: so many jobs, each from its submission to its claim.
_WRITER = """\
import os, sys
from bench.admission import queued
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
store.patience_ns = 120_000_000_000
for number in range(int(sys.argv[3])):
    with store.write():
        queued(store, int(sys.argv[2]) * 1000 + number)
"""
_READER = """\
import sys, time
from jobman.store.connection import open_store
store = open_store(sys.argv[1])
while True:
    store.execute("BEGIN")
    store.execute("SELECT count(*) FROM jobs")
    time.sleep(0.01)
    store.execute("ROLLBACK")
"""


def submissions(bed: Bed) -> list[Row]:
    """Measure ``jobman run`` in turns in stores that hold ever more jobs that have ended, and their events."""
    sizes = _SIZES if not bed.quick else (10, 200)
    beds = [_filled(bed, size) for size in sizes]
    medians = interleave(bed.pick(_ROUNDS, 1), *(partial(one.time_run, "--", "true") for one in beds))
    told = ", ".join(f"{milliseconds(taken)} of {size:,}" for taken, size in zip(medians[1:], sizes[1:], strict=True))
    yardstick = f"of {sizes[0]} jobs {milliseconds(medians[0])}"
    what = "jobman run -- true in a store of many jobs"
    return [Row("growth_submission", what, told, yardstick, max(medians[1:]) / medians[0], 1.3)]


def write_ahead_log(bed: Bed) -> list[Row]:
    """Measure the largest size of the write-ahead log while many write and at every moment somebody reads."""
    writers, jobs = bed.pick(_WRITERS, 2), bed.pick(60, 3)
    open_store(bed.state).close()
    readers = [_python(bed, _READER, bed.state) for _ in range(bed.pick(4, 1))]
    try:
        pending = [_python(bed, _WRITER, bed.state, str(place), str(jobs)) for place in range(writers)]
        peak = _peak_while(lambda: any(writer.poll() is None for writer in pending), f"{bed.state}/jobman.db-wal")
        if any(writer.returncode for writer in pending):
            raise SystemExit("a writer has failed")
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    count = writers * jobs
    what, measured = f"{writers} writers, write-ahead log at its largest", f"{peak / 1e6:.1f} MB, {count:,} jobs"
    return [Row("growth_wal", what, measured, f"merged from {_MERGED / 1e6:.1f} MB on", peak / _MERGED, 4.0)]


def _filled(bed: Bed, size: int) -> Bed:
    other = bed.beside(f"of-{size}")
    Filling(other).grow(size)
    return other


def _python(bed: Bed, program: str, *words: str) -> subprocess.Popen[bytes]:
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return subprocess.Popen([sys.executable, "-c", program, *words], env=bed.environment, cwd=root)


def _peak_while(condition: Callable[[], bool], path: str) -> int:
    peak = 0
    while condition():
        try:
            peak = max(peak, os.stat(path).st_size)
        except OSError:
            pass  # not there yet
        time.sleep(0.005)
    return peak
