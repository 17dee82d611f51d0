"""The table of ``help``."""

from __future__ import annotations

from jobman.cli.flags import COMMAND_NAME, Command, Operand


class COMMAND(Command):
    """``help``: about a command."""

    path = ("help",)
    summary = "Show help about a command."
    synopsis = ("help [COMMAND...]",)
    text = ("The same as jobman COMMAND --help.",)
    examples = (("jobman help show run", "Help about a nested command."),)
    operands = (Operand("COMMAND", COMMAND_NAME, optional=True, repeated=True),)
    exits = (0, 2)
