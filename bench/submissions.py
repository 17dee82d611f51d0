"""How long many submissions take, one after the other, until all have completed."""

from __future__ import annotations

import time

from bench.bed import Bed, Row, await_true, milliseconds


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
    succeeded = bed.jobman("list", "--outcome", "success", "--all").count("\n") - 1
    if succeeded != count + 1:
        raise SystemExit(f"{count + 1 - succeeded} of {count + 1} jobs have not succeeded")
    what = f"{count} submissions one after the other, all completed"
    yardstick = f"{count} x python -c pass {milliseconds(bare_ns)}"
    return [Row("sequential_submissions", what, milliseconds(ours_ns), yardstick, ours_ns / bare_ns, 4.5)]


def _bare_ns(bed: Bed, count: int) -> int:
    return sum(bed.time((bed.python, "-c", "pass")) for _ in range(count))
