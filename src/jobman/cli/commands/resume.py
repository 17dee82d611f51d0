"""``jobman resume``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.commands._suspension import report
from jobman.service.control import resume
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Let a paused job go on."""
    store, now = store_of(parsed), clock()
    return report(store, resume(store, find(store, parsed.operand("JOB"), now), now), now)
