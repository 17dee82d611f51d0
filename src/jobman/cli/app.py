"""The command line: parse, load the module of the verb, run it, and turn every failure into one message and a status.

On the start-up path of every command; see ``docs/adr/0001-own-flag-parser.md`` for what is not imported here.
"""

from __future__ import annotations

import os
import sys

from jobman.cli.output import discard_output, err, out, printable
from jobman.cli.parser import parse
from jobman.errors import JobmanError
from jobman.process.spawn import ensure_standard_descriptors
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed

_FAILED = 1
# Of a longer message, so many characters from each end.
_ENOUGH = 1_000
# Called by the scripts of ``jobman completion``; the second leaves descriptions out.
_COMPLETE = ("__complete", "__complete_bare")


def main() -> int:
    """Run the command that the process was called with; return its exit status."""
    ensure_standard_descriptors()
    return run(_words(sys.argv[1:]))


def run(words: list[str]) -> int:
    """Run one command line; every failure ends as one message on stderr and an exit status (contract, section C)."""
    if words and words[0] in _COMPLETE:
        from jobman.cli.complete import answer

        return answer(words[1:], described=words[0] == _COMPLETE[0])
    try:
        return _run(parse(words))
    except BrokenPipeError:
        # The reader of our output has seen enough (jobman list | head -1).
        discard_output()
        return 0
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a traceback would tell the user nothing
        from jobman.cli.redacting import message  # after a failure

        # A file or a key may have any name; what says so is one line all the same.
        err(printable(_shortened(message(_told(error), words))))
        return error.exit_status if isinstance(error, JobmanError) else _FAILED


def _told(error: BaseException) -> str:
    if isinstance(error, JobmanError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; jobs go on"
    if isinstance(error, OSError):
        return f"{error.filename or 'jobman'}: {(error.strerror or str(error)).lower()}"
    return "out of memory" if isinstance(error, MemoryError) else _defect(error)


def _shortened(text: str) -> str:
    """Return a message that a terminal can hold, although it repeats a value of any length."""
    return text if len(text) <= 2 * _ENOUGH else f"{text[:_ENOUGH]} [...] {text[-_ENOUGH:]}"


def _run(parsed: Parsed) -> int:
    if parsed.version_requested:
        from jobman import __version__

        out(f"jobman {__version__}\n")
        return 0
    if parsed.help_requested:
        from jobman.cli.help import render

        out(render(parsed.command))
        return 0
    # importlib would be one more module to load; the name comes from the table of commands, never from the user.
    command = __import__(f"jobman.cli.commands.{parsed.command[0]}", fromlist=("run",))
    return int(command.run(parsed))


def _defect(error: BaseException) -> str:
    """Name a defect by its kind and place, without the values that a traceback or its message might show."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    return f"internal error: {type(error).__name__}{place}; please report it"


def _words(argv: list[str]) -> list[str]:
    """Return the words as UTF-8 with surrogate escapes, whatever the locale decoded them with."""
    if sys.getfilesystemencoding() == "utf-8":
        return argv
    return [os.fsencode(word).decode("utf-8", "surrogateescape") for word in argv]
