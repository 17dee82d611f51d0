"""What the commands share: the store, the clock, the job that a selector means."""

from __future__ import annotations

from jobman.cli.redacting import prepare
from jobman.clock import SystemClock
from jobman.config.paths import state_directory
from jobman.store.connection import open_store
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.store.connection import Store


def store_of(parsed: Parsed) -> Store:
    """Open the store that the command line or the environment names, and hide in the output what must not be shown."""
    prepare(parsed.value("config"), parsed.value("state-dir"))
    return open_store(state_directory(parsed.value("state-dir")))


def clock() -> SystemClock:
    """Return the clocks of this machine."""
    return SystemClock()
