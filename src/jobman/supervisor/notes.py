"""What a supervisor notes of its own troubles: when, and what failed (architecture, State directory; D24).

Notes go to its standard error, which is ``run/<job-id>.log``; a supervisor without troubles leaves none. They name
conditions and places in our code, never a value, a word of the environment or a byte of output.
"""

from __future__ import annotations

import os

from jobman.model.scalars import format_timestamp
from jobman.values import TYPE_CHECKING, counted

if TYPE_CHECKING:
    from types import TracebackType

    from jobman.clock import Clock

LIMIT_BYTES = 64 * 1024
_LAST_WORDS = "further notes are left out\n"
_STANDARD_ERROR = 2
_PLACES = 6


class Notes:
    """A bounded log of a supervisor's troubles.

    Args:
        clock: dates each note.
        descriptor: where notes go.
    """

    def __init__(self, clock: Clock, descriptor: int = _STANDARD_ERROR) -> None:
        self._clock = clock
        self._descriptor = descriptor
        self._left = LIMIT_BYTES - len(_LAST_WORDS)
        self._lasting: dict[str, tuple[str, int]] = {}

    def note(self, text: str) -> None:
        """Write one dated line; never raises: a disk that is full is one of the troubles."""
        if self._left <= 0:
            return
        line = dated(self._clock.wall_ns(), text)
        self._left -= len(line)
        self._write(line if self._left > 0 else _LAST_WORDS)

    def trouble(self, topic: str, text: str) -> None:
        """Note that something fails; while it goes on failing in the same way that is only counted, until `over`."""
        known, times = self._lasting.get(topic, ("", 0))
        if known != text:
            self.note(f"{topic}: {text}")
        self._lasting[topic] = (text, times + 1)

    def over(self, topic: str) -> None:
        """Note that what failed works again, if it did fail."""
        text, times = self._lasting.pop(topic, ("", 0))
        if times:
            # Again in words: when it began there may have been no room for them.
            self.note(f"{topic}: works again, after {counted(times, 'failure')}, the last: {text}")

    def _write(self, line: str) -> None:
        try:
            os.write(self._descriptor, line.encode("ascii", "backslashreplace"))
        except OSError:
            pass


def dated(wall_ns: int, text: str) -> str:
    """Return one line of notes; what could end the line or move a cursor is escaped."""
    shown = text if text.isascii() and text.isprintable() else ascii(text)[1:-1]
    return f"{format_timestamp(wall_ns)} {shown}\n"


def last_words(error: BaseException) -> str:
    """Name an error that ends the supervisor by its kind and the places it came through, innermost first.

    Not by its message, which may hold values, and without reading source files, which may be those of another version.
    """
    places = [f"{_file(trace)}:{trace.tb_lineno}" for trace in _traces(error.__traceback__)]
    return f"ended by {type(error).__name__} at {' < '.join(places[: -_PLACES - 1 : -1])}"


def _traces(trace: TracebackType | None) -> list[TracebackType]:
    found = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith("<"):  # the machinery of imports
            found.append(trace)
        trace = trace.tb_next
    return found


def _file(trace: TracebackType) -> str:
    return os.path.basename(trace.tb_frame.f_code.co_filename)
