"""How soon a target hears that it is to end."""

from __future__ import annotations

from statistics import median

from bench.bed import Bed, Row, await_true, milliseconds, nanoseconds

_TARGET = (
    "import os, signal, time\n"
    "def end(*_):\n"
    "    os.write(1, b'%d' % time.time_ns())\n"
    "    os._exit(0)\n"
    "signal.signal(signal.SIGTERM, end)\n"
    "os.write(2, b'ready')\n"
    "while True:\n"
    "    signal.pause()\n"
)


def latency(bed: Bed) -> list[Row]:
    """Measure from the recorded request to the moment at which the target's handler runs."""
    gaps_ns = [_gap_ns(bed) for _ in range(bed.pick(20, 2))]
    middle_ns = median(gaps_ns)
    measured = f"{milliseconds(min(gaps_ns))} to {milliseconds(max(gaps_ns))}"
    what = "cancel to the target's SIGTERM, median"
    return [Row("cancel_latency", what, measured, "a poll of 100 ms", middle_ns / 1e6, 15.0, "ms")]


def _gap_ns(bed: Bed) -> int:
    job_id = bed.submit(bed.python, "-c", _TARGET)
    await_true(lambda: bed.show(job_id)["summary"]["phase"] == "running", "the target does not start")
    await_true(lambda: bed.jobman("logs", "--stream", "stderr", job_id) == "ready", "the target is never ready")
    bed.jobman("cancel", "--wait", job_id)
    bed.settle()
    heard_ns = int(bed.jobman("logs", "--stream", "stdout", job_id))
    return heard_ns - nanoseconds(bed.show(job_id)["cancellation_requested_at"])
