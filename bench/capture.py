"""What it costs to have output captured, durably, and to read it again."""

from __future__ import annotations

import os
import subprocess
from statistics import median
from typing import TYPE_CHECKING

from bench.bed import Bed, Row, milliseconds, nanoseconds
from bench.startup import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINES = "import os\nfor number in range({count}):\n    os.write(1, b'line %d\\n' % number)\n"
# A helper that is smaller than what it measures: a process starts with the peak of the one that started it.
_PEAK = (
    "import os, sys\n"
    "actions = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]\n"
    "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)\n"
    "_, status, usage = os.wait4(pid, 0)\n"
    "print(usage.ru_maxrss)\n"
    "sys.exit(status != 0)\n"
)


def throughput(bed: Bed) -> list[Row]:
    """Measure a run that writes 100 MB, from its start to its recorded end, beside ``dd`` that syncs once."""
    mebibytes = bed.pick(95, 2)
    block = ("dd", "if=/dev/zero", "bs=1M", f"count={mebibytes}", "status=none")
    target = f"{bed.scratch}/dd"
    ours, bare = [], []
    for _ in range(bed.pick(5, 1)):
        bare.append(bed.time((*block, f"of={target}", "conv=fdatasync")))
        ours.append(_run_ns(bed, block, os.path.getsize(target)))
    ours_ns, bare_ns = median(ours), median(bare)
    what = f"{mebibytes * 1048576 / 1e6:.0f} MB of output captured"
    yardstick = f"dd conv=fdatasync {milliseconds(bare_ns)}"
    return [Row("capture_throughput", what, milliseconds(ours_ns), yardstick, bare_ns / ours_ns, 0.4, floor=True)]


def lines(bed: Bed) -> list[Row]:
    """Measure a program that writes many lines, each by a system call, beside the same program writing to a file."""
    count = bed.pick(200_000, 2_000)
    program = (bed.python, "-c", _LINES.format(count=count))
    target = f"{bed.scratch}/lines"
    ours, bare = [], []
    for _ in range(bed.pick(5, 1)):
        bare.append(bed.time(program, output=target))
        ours.append(_run_ns(bed, program, os.path.getsize(target)))
    ours_ns, bare_ns = median(ours), median(bare)
    what, yardstick = f"{count:,} unbuffered lines captured", f"straight to a file {milliseconds(bare_ns)}"
    return [Row("capture_lines", what, milliseconds(ours_ns), yardstick, ours_ns / bare_ns, 1.5)]


def reading(bed: Bed) -> list[Row]:
    """Measure the peak memory of ``logs``, for all of a large log and for its last line; the larger counts."""
    job_id, what = _large_log(bed)
    all_of_it, last_line = (_peak(bed, *bed.words("logs", *flags, job_id)) for flags in ((), ("-n", "1")))
    bare = _peak(bed, bed.python, "-c", "pass")
    ours = max(all_of_it, last_line)
    measured, yardstick = f"{ours / 1e3:.0f} MB", f"python -c pass {bare / 1e3:.0f} MB"
    return [Row("logs_memory", f"logs of {what}, peak memory", measured, yardstick, ours / bare, 3.0)]


def last_lines(bed: Bed) -> list[Row]:
    """Measure ``logs -n 20`` of a large log."""
    job_id, what = _large_log(bed)
    command = bed.words("logs", "-n", "20", job_id)
    return [compare(bed, lambda: bed.time(command), name="logs_start", what=f"logs -n 20 of {what}", budget=3.0)]


def _large_log(bed: Bed) -> tuple[str, str]:
    """Let a job write a lot; return its ID, and what it is called in the table."""
    size = bed.pick(1_000_000_000, 5_000_000)
    job_id = bed.submit("sh", "-c", f"yes 'a line of the log' | head -c {size}")
    bed.jobman("wait", job_id)
    bed.settle()
    return job_id, f"a {size / 1e9:g} GB log"


def _run_ns(bed: Bed, words: Sequence[str], size: int) -> int:
    """Return how long a run took that wrote ``size`` bytes, from its start to its recorded end."""
    job_id = bed.submit(*words)
    bed.jobman("wait", job_id)
    bed.settle()
    run = bed.show(job_id)["runs"][0]
    if run["logs"]["recording_health"] != "healthy" or run["logs"]["stdout_size"] != size:
        raise SystemExit(f"the output of job {job_id} was not recorded: {run['logs']}")
    return nanoseconds(run["completed_at"]) - nanoseconds(run["started_at"])


def _peak(bed: Bed, *argv: str) -> int:
    """Return the largest resident set of a process, in KiB."""
    helper = (bed.python, "-I", "-S", "-c", _PEAK, *argv)
    done = subprocess.run(helper, env=bed.environment, capture_output=True, text=True, check=True)
    return int(done.stdout)
