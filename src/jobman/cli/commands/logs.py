"""``jobman logs``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import err, write_bytes
from jobman.errors import UsageError
from jobman.logs.layout import Labels, View
from jobman.service.output import Request, follow, read
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Print captured output, byte for byte."""
    wanted = _request(parsed)
    store, now = store_of(parsed), clock()
    job_id = find(store, parsed.operand("JOB"), now)
    if parsed.value("follow"):
        # Who only reads does not need the module of signals: 2 ms.
        from jobman.cli.commands._interrupt import Interruptible

        with Interruptible("follow logs"):
            notices = follow(store, job_id, wanted, write_bytes, clock=now)
    else:
        notices = read(store, job_id, wanted, write_bytes)
    for notice in notices:
        err(notice)
    return 0


def _request(parsed: Parsed) -> Request:
    number = parsed.value("run")
    if parsed.value("all") and parsed.given("run") and number != "all":
        raise UsageError(detail=f"--all and --run {number} exclude each other")
    labels = Labels(timestamps=parsed.value("timestamps"), prefix=parsed.value("prefix"))
    every = parsed.value("all") or number == "all"
    return Request(
        run=None if every else number,
        view=View(parsed.value("stream")),
        lines=parsed.value("lines"),
        headers=not parsed.value("raw"),
        labels=labels if any(labels) else None,
    )
