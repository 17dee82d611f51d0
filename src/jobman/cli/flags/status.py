"""The table of ``status``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, SELECTOR, Command, Flag, Operand


class COMMAND(Command):
    """``status``: one line about one job."""

    path = ("status",)
    summary = "Print where a job is, in one line."
    synopsis = ("status JOB [OPTIONS]",)
    text = ("The fields are ID, name, phase, outcome and reason, separated by tabs; unknown ones are empty.",)
    examples = (("jobman status train", "Ask for a job by its name."),)
    groups = (("Output", (Flag("json", BOOL, "Print a JSON document."),)),)
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4)
