"""The table of ``wait``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, DURATION, SELECTOR, Command, Flag, Operand

_CLIENT = (
    Flag("any", BOOL, "Return when the first of the jobs has ended."),
    Flag("timeout", DURATION, "Give up after so long, with exit status 124."),
    Flag("exit-code", BOOL, "Exit with the exit code of the command, 128+N for a signal; one job only."),
)


class COMMAND(Command):
    """``wait``: until jobs have ended."""

    path = ("wait",)
    summary = "Wait until jobs have ended; fail unless all succeeded."
    synopsis = ("wait JOB... [OPTIONS]",)
    text = ("Prints the ID and the outcome of each job as it ends, separated by a tab.",)
    examples = (
        ("jobman wait train", "Wait for one job."),
        ("jobman wait --timeout 1h prepare train", "Wait for two, at most an hour."),
        ("jobman wait --any left right", "Wait for the first of two."),
    )
    groups = (("Client", _CLIENT),)
    operands = (Operand("JOB", SELECTOR, repeated=True),)
    exits = (0, 1, 2, 3, 4, 124)
