"""The table of ``clean``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, DURATION, SELECTOR, Command, Flag, Operand

_SELECTION = (
    Flag("all", BOOL, "Every completed run, and every completed job that nothing depends on any more."),
    Flag("older-than", DURATION, "Only what has completed at least so long ago."),
)
_ACTION = (
    Flag("force", BOOL, "Remove. Without it nothing is."),
    Flag("dry-run", BOOL, "Only say what would be removed, even with --force.", default="true"),
)
_OUTPUT = (Flag("json", BOOL, "Print a JSON document."),)


class COMMAND(Command):
    """``clean``: remove logs of completed runs, and completed jobs."""

    path = ("clean",)
    summary = "Remove the logs of completed runs, and completed jobs."
    synopsis = ("clean [JOB] [OPTIONS]",)
    text = (
        "Says what would be removed; with --force, removes it and says the same.",
        "With a JOB: that job and everything known of it. With --all: all that is completed.",
        "With --older-than alone: the logs of that age; the jobs stay.",
        "With none of them: what the retention of the configuration does not keep.",
        "Logs that are being written are never touched, and a job stays while another waits to see how it ended.",
    )
    examples = (
        ("jobman clean --older-than 30d", "Say how much the logs of old runs take."),
        ("jobman clean --older-than 30d --force", "Remove them."),
        ("jobman clean train --force", "Remove a job and its logs."),
        ("jobman clean --force", "Apply the retention of the configuration, as from cron."),
    )
    groups = (("Selection", _SELECTION), ("Action", _ACTION), ("Output", _OUTPUT))
    operands = (Operand("JOB", SELECTOR, optional=True),)
    exclusive = (("all", "older-than"),)
    exits = (0, 1, 2, 3, 4, 5)
