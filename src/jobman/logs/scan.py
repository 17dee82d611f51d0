"""What is left of a capture whose supervisor died, for whoever reconciles the job (differences, D1)."""

from __future__ import annotations

import errno

from jobman.errors import CorruptIndexError, MissingLogError, UnsafeLogError
from jobman.logs import layout
from jobman.logs.combined import check_index, unindexed_bytes
from jobman.logs.runfiles import take_inventory
from jobman.model.state import LogIntegrity
from jobman.values import NamedTuple

_SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))


class ScanResult(NamedTuple):
    """The worth of an abandoned capture.

    ``integrity`` is ``valid`` when every byte has its record, ``corrupt`` when the index contradicts itself or the
    streams, else ``partial``; ``detail`` says why it is not valid. Sizes are the bytes in the stream files, ``None``
    when they cannot be told. ``index_version`` is ``None`` when there is no valid record.
    """

    integrity: LogIntegrity
    detail: str | None = None
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    index_version: int | None = None


def scan(path: str) -> ScanResult:
    """Judge the logs of a run that nobody writes any more; damage is a result and never an exception.

    Args:
        path: the run's directory.

    Raises:
        OSError: this process, or the system, is short of something: nothing can be told of the logs now.
    """
    try:
        with layout.LogDirectory(path) as directory:
            return _scan(directory)
    except (MissingLogError, UnsafeLogError) as error:
        return ScanResult(LogIntegrity.PARTIAL, str(error))
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise
        # A bad sector in one log must not keep a job from being reconciled, and with it every list of jobs.
        return ScanResult(LogIntegrity.PARTIAL, f"{path} cannot be read: {(error.strerror or str(error)).lower()}")


def _scan(directory: layout.LogDirectory) -> ScanResult:
    inventory = take_inventory(directory)
    sizes = (sum(inventory.stdout), sum(inventory.stderr))
    try:
        chain = check_index(directory, inventory)
    except CorruptIndexError as error:
        return ScanResult(LogIntegrity.CORRUPT, str(error), *sizes)
    flaws = []
    unindexed = sum(unindexed_bytes(chain, inventory, stream) for stream in layout.STREAMS)
    if unindexed:
        flaws.append(f"{unindexed} bytes have no record")
    if inventory.index_bytes > chain.position:
        flaws.append("the last record lacks its end")
    integrity = LogIntegrity.PARTIAL if flaws else LogIntegrity.VALID
    return ScanResult(integrity, "; ".join(flaws) or None, *sizes, chain.version)


def close_abandoned(path: str) -> None:
    """Remove ``.active`` from a run whose supervisor is proven dead, so that its logs can be cleaned.

    A directory or marker that is missing already is no error.

    Raises:
        UnsafeLogError: the directory is not ours alone.
        OSError: the file system refuses.
    """
    try:
        with layout.LogDirectory(path) as directory:
            directory.remove_marker()
    except MissingLogError:
        pass
