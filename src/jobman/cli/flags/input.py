"""The table of ``input``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, SELECTOR, Command, Flag, Operand

_INPUT = (Flag("eof", BOOL, "Let the command see the end of its input afterwards; a terminal is not read then."),)


class COMMAND(Command):
    """``input``: write to the standard input of a job."""

    path = ("input",)
    summary = "Copy standard input to the command of a job."
    synopsis = ("input JOB [OPTIONS]",)
    text = (
        "Prints the number of bytes that the command's pipe took, once it has taken all.",
        "Only jobs of run --stdin live take input; one whose run has not begun yet is waited for.",
        "Each run has an input of its own: what was sent to one is never sent to the next.",
    )
    examples = (
        ("jobman input server", "Send what is typed or piped."),
        ("jobman input --eof import", "The same, and nothing after it."),
    )
    groups = (("Input", _INPUT),)
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4, 5, 6)
