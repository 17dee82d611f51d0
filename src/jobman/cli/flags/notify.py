"""The tables of ``notify`` and its subcommand."""

from __future__ import annotations

from jobman.cli.flags import TEXT, Command, Operand


class NotifyTest(Command):
    """``notify test``: try a notifier."""

    path = ("notify", "test")
    summary = "Send a test event by a notifier of the configuration and say what came of it."
    synopsis = ("notify test NOTIFIER",)
    text = (
        "The event is of the type test and belongs to no job; it is sent once, without retries.",
        "What the command of a notifier prints is shown.",
    )
    examples = (("jobman notify test desktop", "See whether a notification arrives."),)
    operands = (Operand("NOTIFIER", TEXT),)


class COMMAND(Command):
    """``notify``: who is told of what happens to jobs."""

    path = ("notify",)
    summary = "Try a notifier."
    synopsis = ("notify test NOTIFIER",)
    text = ("Notifiers are configured under notifiers; jobman run --notify NAME tells one of them about a job.",)
    examples = (("jobman notify test desktop", "See whether a notification arrives."),)
    subcommands = (NotifyTest,)
