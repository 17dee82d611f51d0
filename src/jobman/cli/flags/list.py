"""The table of ``list``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, JOB_ID, TEXT, TEXTS, TIMESTAMP, Command, Flag, choices, integer

# Spelled out because the enums of jobman.model.state cost 10 ms of start-up; a test compares them.
PHASES = ("submitting", "waiting", "queued", "starting", "running", "backoff", "paused", "stopping", "completed")
OUTCOMES = ("success", "failure", "timed_out", "cancelled", "aborted", "lost", "submission_failed")

_FILTERS = (
    Flag("active", BOOL, "Only jobs that have not ended."),
    Flag("completed", BOOL, "Only jobs that have ended."),
    Flag("phase", choices("PHASE,...", *PHASES), "Only jobs in one of these phases."),
    Flag("outcome", choices("OUTCOME,...", *OUTCOMES), "Only jobs that ended in one of these ways."),
    Flag("name", TEXT, "Only jobs of exactly this name.", metavar="NAME"),
    Flag("name-match", TEXT, "Only jobs whose name matches a pattern with *, ? and [...].", metavar="GLOB"),
    Flag("group", TEXT, "Only jobs of this group.", metavar="GROUP"),
    Flag("tag", TEXTS, "Only jobs with this tag; given several times, with all of them.", metavar="TAG"),
    Flag("submitted-after", TIMESTAMP, "Only jobs submitted after this time."),
    Flag("submitted-before", TIMESTAMP, "Only jobs submitted before this time."),
)
_PAGES = (
    Flag("limit", integer(1), "Print at most so many jobs.", default="100"),
    Flag("all", BOOL, "Print all jobs, however many there are."),
    Flag("before", JOB_ID, "Go on after this job, the last of the previous page."),
)
_OUTPUT = (
    Flag("show-runs", BOOL, "Print the runs of each job too."),
    Flag("json", BOOL, "Print a JSON document."),
)


class COMMAND(Command):
    """``list``: many jobs, the newest first."""

    path = ("list",)
    summary = "List jobs, the newest first."
    synopsis = ("list [OPTIONS]",)
    text = (
        "All filters that are given must match; of several phases or outcomes, one.",
        "A pattern must match the whole name: * is any text, ? one character, [ab] one of two, [!ab] any other.",
        "Times are RFC 3339, such as 2026-11-29T15:19:20Z.",
    )
    examples = (
        ("jobman list --active", "What is going on."),
        ("jobman list --outcome failure,timed_out --limit 20", "The latest twenty that went wrong."),
        ("jobman list --name-match 'train*' --json", "By name, for a script."),
    )
    groups = (("Filters", _FILTERS), ("Pages", _PAGES), ("Output", _OUTPUT))
    exclusive = (("active", "completed"), ("all", "limit"))
    exits = (0, 1, 2, 3)
