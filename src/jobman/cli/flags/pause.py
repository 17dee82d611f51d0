"""The table of ``pause``."""

from __future__ import annotations

from jobman.cli.flags import SELECTOR, Command, Operand


class COMMAND(Command):
    """``pause``: suspend a job."""

    path = ("pause",)
    summary = "Suspend a job where it is, its processes included."
    synopsis = ("pause JOB",)
    text = (
        "Prints the ID and the phase, separated by a tab.",
        "A job that waits, queues or backs off goes no further; one that runs is stopped with SIGSTOP.",
        "Paused time counts neither for --run-timeout nor for --job-timeout; slots stay held.",
    )
    examples = (("jobman pause train", "Suspend a job; jobman resume train lets it go on."),)
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4, 5)
