"""How long a command takes, from its start to its end, beside the bare interpreter."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

from bench.bed import Bed, Row, interleave, milliseconds, p95, take_turns
from bench.filling import Filling

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS = 40
_JOBS = 10_000
_YOUNG_S = 2.5
_CONFIGURATION = """\
concurrency: {max_active_slots: 64, pools: {bench: 8}}
secrets: {token: env:PATH}
redaction: {patterns: ['sk-[a-z0-9]{16,}']}
wait_conditions: {moment: {type: delay, delay: 0s}}
job_specs:
  bench:
    command: ['true']
    environment: {set: {MARK: bench}, secrets: {TOKEN: token}}
    stop: {grace_period: 20s}
    wait: {conditions: [moment]}
    admission: {pool: bench}
profiles: {patient: {job_spec: bench, overrides: {stop: {grace_period: 1m}}}}
"""


def run(bed: Bed) -> list[Row]:
    """Measure ``jobman run -- true``."""
    return [compare(bed, lambda: bed.time_run("--", "true"), name="run", what="jobman run -- true", budget=4.0)]


def configured(bed: Bed) -> list[Row]:
    """Measure what a configuration file that has not changed adds to ``jobman run``."""
    file = f"{bed.scratch}/jobman.yml"
    with open(file, "w", encoding="ascii") as opened:
        opened.write(_CONFIGURATION)
    if not bed.quick:
        time.sleep(_YOUNG_S)  # a younger file is not remembered

    named = ("--config", file, "--job-spec", "bench", "--profile", "patient")
    with_ns, without_ns = interleave(
        bed.pick(_ROUNDS, 3), lambda: bed.time_run(*named), lambda: bed.time_run("--pool", "bench", "--", "true")
    )
    added_ms = (with_ns - without_ns) / 1e6
    measured, yardstick = milliseconds(with_ns), f"without {milliseconds(without_ns)}"
    return [Row("run_configured", "jobman run --job-spec NAME", measured, yardstick, added_ms, 3.0, "ms")]


def status(bed: Bed) -> list[Row]:
    """Measure ``jobman status ID``."""
    job_id = bed.submit("true")
    bed.settle()
    command = bed.words("status", job_id)
    return [compare(bed, lambda: bed.time(command), name="status", what="jobman status ID", budget=3.0)]


def listing(bed: Bed) -> list[Row]:
    """Measure ``jobman list``, which prints 100 jobs of many."""
    jobs = _filled(bed)
    what = f"jobman list (100 of {jobs:,} jobs)"
    return [compare(bed, lambda: bed.time(bed.words("list")), name="list", what=what, budget=4.0)]


def completion(bed: Bed) -> list[Row]:
    """Measure what TAB waits for after ``jobman status``, with many jobs to choose from."""
    jobs = _filled(bed)
    command = bed.words("__complete", "status", "")
    what = f"completion of a JOB ({jobs:,} jobs)"
    return [compare(bed, lambda: bed.time(command), name="completion", what=what, budget=6.0)]


def _filled(bed: Bed) -> int:
    """Fill the store with completed jobs; return how many."""
    jobs = bed.pick(_JOBS, 200)
    Filling(bed).grow(jobs)
    return jobs


def compare(bed: Bed, measure: Callable[[], int], *, name: str, what: str, budget: float) -> Row:
    """Return the row of a command, measured in turns with the bare interpreter."""
    yardstick = (bed.python, "-c", "pass")
    ours, bare = take_turns(bed.pick(_ROUNDS, 3), measure, lambda: bed.time(yardstick))
    measured = f"{milliseconds(median(ours))}, p95 {milliseconds(p95(ours))}"
    ratio = median(ours) / median(bare)
    return Row(name, what, measured, f"python -c pass {milliseconds(median(bare))}", ratio, budget)
