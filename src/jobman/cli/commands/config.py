"""``jobman config``."""

from __future__ import annotations

from jobman.cli.commands._backend import store_of
from jobman.cli.output import out
from jobman.config.load import load_concurrency
from jobman.process.wake import wake_jobs
from jobman.store.admissions import requests_to_wake
from jobman.store.limits import apply_all
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


_AT_ONCE = 32


def _wake_those_that_fit(store: Store) -> None:
    """Wake requests that may fit into the new limits; the rest find out by looking."""
    wake_jobs(store.root, requests_to_wake(store, _AT_ONCE))


def run(parsed: Parsed) -> int:
    """Put the configured limits in force."""
    store = store_of(parsed)
    concurrency = load_concurrency(parsed.value("config"))
    if apply_all(store, concurrency.limits):
        _wake_those_that_fit(store)
    out(f"applied\t{concurrency.sources} sources\n")
    return 0
