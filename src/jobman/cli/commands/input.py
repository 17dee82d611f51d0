"""``jobman input``."""

from __future__ import annotations

import os
import select
import stat

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.commands._interrupt import Interruptible
from jobman.cli.output import out
from jobman.live_input import PIECE_BYTES
from jobman.service.live_input import send
from jobman.service.query import find
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobman.cli.parser import Parsed

_STDIN = 0


def run(parsed: Parsed) -> int:
    """Copy standard input to a job, and print how many bytes it took."""
    store, now = store_of(parsed), clock()
    job_id = find(store, parsed.operand("JOB"), now)
    eof = parsed.value("eof")
    # Nobody who closes the input of a job from a terminal wants to be asked for more first (O.10).
    blocks = iter(()) if eof and stat.S_ISCHR(os.fstat(_STDIN).st_mode) else _blocks()
    with Interruptible("send input"):
        delivered = send(store, job_id, blocks, now, eof=eof)
    out(f"{delivered}\n")
    return 0


def _blocks() -> Iterator[bytes]:
    while True:
        try:
            block = os.read(_STDIN, PIECE_BYTES)
        except BlockingIOError:
            select.select((_STDIN,), (), ())  # a shell may have left it non-blocking
            continue
        if not block:
            return
        yield block
