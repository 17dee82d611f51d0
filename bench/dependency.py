"""How soon a job runs once the one that it waits for has completed."""

from __future__ import annotations

import os
from statistics import median

from bench.bed import Bed, Row, await_true, milliseconds, nanoseconds


def latency(bed: Bed) -> list[Row]:
    """Measure from the completion of a job to the start of its dependent's run, by the times that are recorded."""
    gaps_ns = [_gap_ns(bed) for _ in range(bed.pick(20, 2))]
    middle_ns = median(gaps_ns)
    measured = f"{milliseconds(min(gaps_ns))} to {milliseconds(max(gaps_ns))}"
    what = "dependency completed to dependent's run started, median"
    return [Row("dependency_latency", what, measured, "a poll of 100 ms", middle_ns / 1e6, 15.0, "ms")]


def _gap_ns(bed: Bed) -> int:
    gate = f"{bed.scratch}/gate"
    first = bed.submit("sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.02; done")
    second = bed.submit("true", flags=("--after-success", first))
    await_true(lambda: "\twaiting\t" in bed.jobman("status", second), "the dependent does not wait")
    with open(gate, "w", encoding="ascii"):
        pass
    bed.jobman("wait", second)
    bed.settle()
    os.unlink(gate)
    return nanoseconds(bed.show(second)["runs"][0]["started_at"]) - nanoseconds(bed.show(first)["completed_at"])
