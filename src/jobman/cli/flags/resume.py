"""The table of ``resume``."""

from __future__ import annotations

from jobman.cli.flags import SELECTOR, Command, Operand


class COMMAND(Command):
    """``resume``: let a paused job go on."""

    path = ("resume",)
    summary = "Let a paused job go on from where it was."
    synopsis = ("resume JOB",)
    text = ("Prints the ID and the phase, separated by a tab.",)
    examples = (("jobman resume train", "Let a paused job go on."),)
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4, 5)
