"""What readers of logs are told of runs whose logs are gone (contract, A.7; D17)."""

from __future__ import annotations

from jobman.errors import LogsBeingPrunedError, LogsPrunedError, MissingLogError
from jobman.model.scalars import format_timestamp
from jobman.store.jobs import load_run
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from jobman.model.state import Run
    from jobman.store.connection import Store


def pruned_error(run: Run) -> LogsPrunedError:
    """Return the error for a run that has a tombstone."""
    at_ns = run.pruning.at_ns if run.pruning else 0
    return LogsPrunedError(job=run.job_id, run=run.number, pruned_at=format_timestamp(at_ns))


def require_present(run: Run) -> Run:
    """Return ``run`` if its logs have not been removed.

    Raises:
        LogsPrunedError: they have.
    """
    if run.pruning is not None:
        raise pruned_error(run)
    return run


def keep_present(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """Return the runs that have logs, and what is to be said of the others."""
    present = [run for run in runs if run.pruning is None]
    return present, [str(pruned_error(run)) for run in runs if run.pruning is not None]


def without_logs(store: Store, runs: Sequence[Run]) -> frozenset[int]:
    """Return the numbers of the runs whose logs ought to be there and are not: somebody else has removed them."""
    from jobman.logs.layout import is_complete  # for those who read of logs

    present = (run for run in runs if run.pruning is None)
    return frozenset(run.number for run in present if not is_complete(store.root, run.job_id, run.number))


class telling_of_pruning:  # noqa: N801  # reads as a statement: ``with telling_of_pruning(store, runs):``
    """A block that reads logs: a file that is missing because they are being removed is told as that."""

    def __init__(self, store: Store, runs: Sequence[Run]) -> None:
        self._store = store
        self._runs = runs

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, MissingLogError):
            for run in self._runs:
                self._tell(run, error)

    def _tell(self, run: Run, error: MissingLogError) -> None:
        from jobman.logs.cleanup import is_claimed  # only after an error

        now = load_run(self._store, run.id)
        if now is not None and now.pruning is not None:
            raise pruned_error(now) from error
        if is_claimed(self._store.root, run.job_id, run.number):
            raise LogsBeingPrunedError(job=run.job_id, run=run.number) from error
