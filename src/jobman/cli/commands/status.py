"""``jobman status``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import out
from jobman.service.query import find, summarize
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Print where a job is."""
    store, now = store_of(parsed), clock()
    summary = summarize(store, find(store, parsed.operand("JOB"), now), now)
    if parsed.value("json"):
        from jobman import documents

        out(documents.envelope(documents.summary(summary)))
    else:
        from jobman.cli.render import status

        out(status(summary))
    return 0
