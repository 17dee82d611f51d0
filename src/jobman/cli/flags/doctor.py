"""The table of ``doctor``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, TEXT, Command, Flag


class COMMAND(Command):
    """``doctor``: whether the state directory is sound, and whether jobs will live."""

    path = ("doctor",)
    summary = "Examine the state directory, and what may end its jobs."
    synopsis = ("doctor [OPTIONS]",)
    text = (
        "Prints a line on the whole, healthy or unhealthy, then one for each finding and what to do about it.",
        "A finding is ok, a note that is good to know, or a problem; a problem makes the exit status 1.",
    )
    examples = (
        ("jobman doctor", "Look, and change nothing."),
        ("jobman doctor --repair", "Settle jobs without a supervisor, and remove what is of nobody."),
        ("jobman doctor --backup jobs.db", "Copy the database, whoever writes to it meanwhile."),
    )
    groups = (
        (
            "Action",
            (
                Flag("backup", TEXT, "First write a private copy of the database to this new file.", metavar="PATH"),
                Flag("repair", BOOL, "Mend what can be mended safely; the report is of what is left."),
            ),
        ),
        ("Output", (Flag("json", BOOL, "Print a JSON document."),)),
    )
