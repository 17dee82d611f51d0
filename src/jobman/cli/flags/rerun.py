"""The table of ``rerun``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, SELECTOR, TEXT, Command, Flag, Operand

_IDENTITY = (Flag("name", TEXT, "Display name of the new job instead of the old one's.", metavar="NAME"),)
_CLIENT = (Flag("wait", BOOL, "Wait until the new job has ended; fail unless it succeeded."),)


class COMMAND(Command):
    """``rerun``: submit a job again."""

    path = ("rerun",)
    summary = "Submit a job again, as a new job, and print the new ID."
    synopsis = ("rerun JOB [OPTIONS]",)
    text = (
        "The new job has the whole specification of the old one, with its directory, its times and its dependencies.",
        "It starts from the present environment and umask, and makes the same changes to the environment.",
        "The old job may be in any phase, and stays as it is.",
    )
    examples = (
        ("jobman rerun train", "Run a job again."),
        ("jobman rerun --name train-again --wait train", "Again, under another name, and wait for its end."),
    )
    groups = (("Identity", _IDENTITY), ("Client", _CLIENT))
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4, 5)
