r"""Writing to the caller's standard output and error, whatever they are and whatever the locale.

Output is UTF-8 bytes; control characters and bytes that are not UTF-8 come out as ``\xNN``, so that no field can move
the cursor or change the title of a terminal. On the start-up path of every command.
"""

from __future__ import annotations

import os

from jobman.errors import OutputError


def out(text: str) -> None:
    """Write text to standard output at once."""
    write_bytes(text.encode("utf-8", "backslashreplace"))


def tell(text: str) -> bool:
    """Write what a command has done, or learnt; return whether anybody reads it.

    A reader that has gone changes neither what is still to be done nor the exit status.
    """
    try:
        out(text)
    except BrokenPipeError:
        discard_output()
        return False
    return True


def discard_output() -> None:
    """Let whatever is still written to standard output go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def err(text: str) -> None:
    """Write one message to standard error, with a newline."""
    data = printable(text, keep="\n").encode("utf-8", "backslashreplace") + b"\n"
    try:
        _write_all(2, data)
    except OSError:
        pass  # there is nobody to tell


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output, unchanged.

    Raises:
        BrokenPipeError: the reader has gone.
        OutputError: the output cannot be written to: a full disk, say.
    """
    try:
        _write_all(1, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(detail=(error.strerror or str(error)).lower()) from error


def write_error_bytes(data: bytes) -> None:
    """Write bytes to standard error, unchanged; they are lost if it cannot be written to."""
    try:
        _write_all(2, data)
    except OSError:
        pass


def printable(text: str, keep: str = "") -> str:
    r"""Return ``text`` with control characters and undecodable bytes as ``\xNN``, except those in ``keep``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if char in keep or not _is_control(char) else _escaped(char) for char in text)


def _is_control(char: str) -> bool:
    return char < " " or "\x7f" <= char < "\xa0" or "\udc80" <= char <= "\udcff"


def _escaped(char: str) -> str:
    return f"\\x{ord(char) & 0xFF:02x}"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            _wait_until_writable(descriptor)


def _wait_until_writable(descriptor: int) -> None:
    # A shell may have left the terminal or a pipe non-blocking.
    import select

    select.select((), (descriptor,), ())
