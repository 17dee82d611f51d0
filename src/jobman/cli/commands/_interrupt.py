"""Commands that wait end in one line when a signal ends them; the job itself goes on (contract, A.0)."""

from __future__ import annotations

from jobman import signals
from jobman.errors import InterruptedClientError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signals.SIGINT, signals.SIGTERM)


class Interruptible:
    """A block that SIGINT and SIGTERM leave with `InterruptedClientError`, naming what was being done."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._before: list[object] = []

    def __enter__(self) -> None:
        self._before = [signals.signal(number, self._interrupt) for number in _SIGNALS]

    def __exit__(self, *_: object) -> None:
        for number, handler in zip(_SIGNALS, self._before, strict=True):
            signals.signal(number, handler)  # type: ignore[arg-type]  # what signals.signal returned

    def _interrupt(self, _number: int, _frame: FrameType | None) -> None:
        raise InterruptedClientError(doing=self._doing)
