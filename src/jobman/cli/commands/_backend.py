"""What the commands share: the store, the clock, the job that a selector means."""

from __future__ import annotations

from jobman.cli.parser import Parsed
from jobman.clock import SystemClock
from jobman.config.paths import state_directory
from jobman.store.connection import Store, open_store


def store_of(parsed: Parsed) -> Store:
    """Open the store that the command line or the environment names."""
    return open_store(state_directory(parsed.value("state-dir")))


def clock() -> SystemClock:
    """Return the clocks of this machine."""
    return SystemClock()
