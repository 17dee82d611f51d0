"""How soon a line can be followed, how fast both streams are put together again, how often a chatty job is synced."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from statistics import median

from bench.bed import Bed, Row, await_true, interleave, milliseconds, p95

_LINES = "import os, time\nfor _ in range({count}):\n    time.sleep(0.02)\n    os.write(1, b'%d\\n' % time.time_ns())\n"
_CHATTY = (
    "import os, time\nuntil = time.monotonic() + {seconds}\n"
    "while time.monotonic() < until:\n    os.write(1, b'out\\n')\n    os.write(2, b'err\\n')\n    time.sleep(0.001)\n"
)
_BOTH = "yes 'a line of output' | head -c {size} & yes 'a line of errors' | head -c {size} >&2; wait"
_SYNCS = ("fsync", "fdatasync", "sync_file_range", "syncfs", "sync")


def following(bed: Bed) -> list[Row]:
    """Measure from the moment a line is written to that at which ``logs --follow`` prints it."""
    job_id = bed.submit(bed.python, "-c", _LINES.format(count=bed.pick(200, 5)))
    command = bed.words("logs", "--follow", job_id)
    gaps_ns: list[int] = []
    with subprocess.Popen(command, env=bed.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as follower:
        if follower.stdout is None:
            raise SystemExit("there is nothing to read from")
        gaps_ns += [time.clock_gettime_ns(time.CLOCK_REALTIME) - int(line) for line in follower.stdout]
    measured = f"median {milliseconds(median(gaps_ns))}, p95 {milliseconds(p95(gaps_ns))}"
    what = "line written to its appearance in logs --follow"
    return [Row("logs_follow", what, measured, "a batch of 50 ms", median(gaps_ns) / 1e6, 150.0, "ms")]


def combined(bed: Bed) -> list[Row]:
    """Measure reading both streams of a large log in the order of their arrival, beside ``cat`` of their files."""
    size = bed.pick(500_000_000, 2_000_000)
    job_id = bed.submit("sh", "-c", _BOTH.format(size=size))
    bed.jobman("wait", job_id)
    bed.settle()
    directory = f"{bed.state}/logs/{job_id}/1"
    cat = ("cat", f"{directory}/stdout.log", f"{directory}/stderr.log")
    command = bed.words("logs", job_id)
    ours_ns, bare_ns = interleave(bed.pick(3, 1), lambda: bed.time(command), lambda: bed.time(cat))
    measured = f"{milliseconds(ours_ns)}, {2 * size / ours_ns:.2f} GB/s"
    what = f"logs of {2 * size / 1e9:g} GB in two streams, in order"
    return [Row("logs_combined", what, measured, f"cat {milliseconds(bare_ns)}", ours_ns / bare_ns, 30.0)]


def syncs(bed: Bed) -> list[Row]:
    """Count how often a second what is recorded of a chatty job is synced."""
    what, yardstick = "syncs of a job that writes 2,000 lines a second", "3 files in a batch of 50 ms"
    if shutil.which("strace") is None:
        return [Row("logs_syncs", what, "strace is not installed", yardstick, 0, 65.0, "/s")]
    seconds, trace = bed.pick(5_000, 200) / 1e3, f"{bed.scratch}/syncs"
    tracer = ("strace", "-f", "-qq", "-e", f"trace={','.join(_SYNCS)}", "-o", trace)
    # Traced from its start: who would be attached to later may have other plans for the signal that it takes.
    command = (*tracer, *bed.words("run", "--", bed.python, "-c", _CHATTY.format(seconds=seconds)))
    began_ns = time.monotonic_ns()
    subprocess.run(command, env=bed.environment, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    await_true(lambda: not bed.processes(), "the job does not end")
    elapsed = (time.monotonic_ns() - began_ns) / 1e9
    with open(trace, encoding="utf-8", errors="replace") as lines:
        count = sum(any(f"{name}(" in line for name in _SYNCS) for line in lines)
    os.unlink(trace)
    return [Row("logs_syncs", what, f"{count} in {elapsed:.1f} s", yardstick, count / seconds, 65.0, "/s")]
