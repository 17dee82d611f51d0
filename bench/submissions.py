"""How long many submissions take, one after the other, until all have completed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor, wait

from bench.bed import SECOND_NS, Bed, Row, await_true, milliseconds

_PATIENCE_S = 120


def sequential(bed: Bed) -> list[Row]:
    """Measure submissions in a loop; half of the yardstick before and half after, as the machine may change."""
    count = bed.pick(200, 4)
    bed.submit("true")
    bed.settle()
    bare_ns = _bare_ns(bed, count // 2)
    began_ns = time.monotonic_ns()
    for _ in range(count):
        bed.time(bed.words("run", "--", "true"))
    await_true(lambda: not bed.supervisors(), "jobs do not end")
    ours_ns = time.monotonic_ns() - began_ns
    bare_ns += _bare_ns(bed, count - count // 2)
    if lost := count + 1 - _succeeded(bed):
        raise SystemExit(f"{lost} of {count + 1} jobs have not succeeded")
    what = f"{count} submissions one after the other, all completed"
    yardstick = f"{count} x python -c pass {milliseconds(bare_ns)}"
    return [Row("sequential_submissions", what, milliseconds(ours_ns), yardstick, ours_ns / bare_ns, 4.5)]


def concurrent(bed: Bed) -> list[Row]:
    """Measure many submitters at once; no job may be lost or stuck, the speed is printed and not judged."""
    submitters, jobs = bed.pick(100, 4), bed.pick(10, 2)
    argv = bed.words("run", "--", "true")
    began_ns = time.monotonic_ns()
    pool = ThreadPoolExecutor(submitters)
    try:
        # Refused submissions are counted below: what they say would hide the table.
        tries = [
            pool.submit(subprocess.run, argv, env=bed.environment, stdin=subprocess.DEVNULL, capture_output=True)
            for _ in range(jobs * submitters)
        ]
        wait(tries, timeout=_PATIENCE_S)
    finally:
        pool.shutdown(cancel_futures=True)
    await_true(lambda: not bed.supervisors(), "jobs do not end")
    seconds = (time.monotonic_ns() - began_ns) / SECOND_NS
    count = submitters * jobs
    what, measured = f"{submitters} concurrent submitters x {jobs} jobs", f"{count / seconds:.0f} jobs/s"
    return [Row("concurrent_submissions", what, measured, "all succeed", count - _succeeded(bed), 0, "lost")]


def shells(bed: Bed) -> list[Row]:
    """Measure a thousand submissions from loops in sixteen shells, beside GNU parallel running the same commands."""
    shells, count = bed.pick(16, 3), bed.pick(1_000, 6)
    numbers = range(count)
    jobman = shlex.join(bed.words("run", "--", "true"))
    began_ns = time.monotonic_ns()
    loops = [
        f"for _ in {' '.join(map(str, numbers[place::shells]))}; do {jobman} || exit 1; done" for place in range(shells)
    ]
    running = [
        subprocess.Popen(("sh", "-c", loop), env=bed.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for loop in loops
    ]
    for shell in running:
        shell.wait()
    await_true(lambda: not bed.supervisors(), "jobs do not end")
    seconds = (time.monotonic_ns() - began_ns) / SECOND_NS
    what, measured = f"{count:,} submissions from {shells} shells", f"{count / seconds:.0f} jobs/s"
    return [Row("shells", what, measured, _parallel(bed, shells, count), count - _succeeded(bed), 0, "lost")]


def _parallel(bed: Bed, places: int, count: int) -> str:
    """Return how fast GNU parallel runs as many commands: it keeps nothing of them, and ends with its terminal."""
    program = shutil.which("parallel")
    if program is None:
        return "GNU parallel is not installed"
    argv = (program, "--will-cite", f"-j{places}", "true", ":::", *map(str, range(count)))
    return f"GNU parallel {count / (bed.time(argv) / SECOND_NS):.0f} commands/s"


def _succeeded(bed: Bed) -> int:
    return bed.jobman("list", "--outcome", "success", "--all").count("\n") - 1


def _bare_ns(bed: Bed, count: int) -> int:
    return sum(bed.time((bed.python, "-c", "pass")) for _ in range(count))
