"""``jobman config``."""

from __future__ import annotations

from jobman.cli.commands._backend import store_of
from jobman.cli.output import out
from jobman.config.load import load_concurrency
from jobman.store.limits import apply_all
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed


def run(parsed: Parsed) -> int:
    """Put the configured limits in force."""
    store = store_of(parsed)
    concurrency = load_concurrency(parsed.value("config"))
    apply_all(store, concurrency.limits)
    out(f"applied\t{concurrency.sources} sources\n")
    return 0
