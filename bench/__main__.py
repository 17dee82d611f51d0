"""``python -m bench [--quick] [ROW...]``: measure, print the table, write ``bench/results.json``.

``--plot`` measures the curves of `bench.plot` instead, ``--draw`` draws anew what it has measured before.

Every row is measured beside its yardstick, in the same run: machines are noisy, and a ratio holds where a millisecond
does not. The exit status tells whether every budget is kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from bench import admission, capture, dependency, growth, logs, plot, startup, stopping, submissions, waiting
from bench.bed import Bed, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROWS: dict[str, Callable[[Bed], list[Row]]] = {
    "run": startup.run,
    "run_configured": startup.configured,
    "status": startup.status,
    "list": startup.listing,
    "completion": startup.completion,
    "waiting_memory": waiting.memory,
    "waiting_cpu": waiting.processor,
    "waiting_cpu_500": waiting.processor_of_many,
    "waiting_thousand": waiting.thousand,
    "dependency_latency": dependency.latency,
    "admission_attempt": admission.attempts,
    "cancel_latency": stopping.latency,
    "capture_throughput": capture.throughput,
    "capture_lines": capture.lines,
    "logs_memory": capture.reading,
    "logs_start": capture.last_lines,
    "logs_follow": logs.following,
    "logs_combined": logs.combined,
    "logs_syncs": logs.syncs,
    "sequential_submissions": submissions.sequential,
    "concurrent_submissions": submissions.concurrent,
    "shells": submissions.shells,
    "growth_submission": growth.submissions,
    "growth_wal": growth.write_ahead_log,
}
_RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results.json")
_HEADER = ("", "what", "measured", "yardstick", "result", "budget")


def main(words: Sequence[str]) -> int:
    """Measure the rows that were named, all of them if none was."""
    quick = "--quick" in words
    # Who is told to end cleans up behind itself first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if "--plot" in words:
        return plot.main(quick=quick)
    if "--draw" in words:
        return plot.draw()
    chosen = [word for word in words if word != "--quick"] or list(ROWS)
    unknown = [name for name in chosen if name not in ROWS]
    if unknown:
        print(f"unknown row {unknown[0]}; rows are: {', '.join(ROWS)}", file=sys.stderr)
        return 2
    results = []
    for name in chosen:
        print(f"measuring {name} ...", file=sys.stderr)
        with Bed(quick=quick) as bed:
            rows = ROWS[name](bed)
        # At once, for whoever interrupts the rest; the table follows.
        print(*(" ".join(_cells(row)) for row in rows), sep="\n", file=sys.stderr)
        results += rows
    print(table(results), end="")
    if not quick:
        _write(results)
    # Quick figures are of too little to be judged.
    return 0 if quick or all(row.holds() for row in results) else 1


def table(rows: Sequence[Row]) -> str:
    """Return the rows in columns."""
    cells = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(_HEADER))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)
    return "".join(line.rstrip() + "\n" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    bound = ">=" if row.floor else "<="
    digits = 1 if row.unit == "ms" else 2
    return (
        "ok" if row.holds() else "OVER",
        row.what,
        row.measured,
        row.yardstick,
        f"{row.value:.{digits}f} {row.unit}",
        f"{bound} {row.budget:g} {row.unit}",
    )


def _write(rows: Sequence[Row]) -> None:
    document = [row._asdict() | {"holds": row.holds()} for row in rows]
    with open(_RESULTS, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
