"""The tables of ``show``, ``show job`` and ``show run``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, RUN, SELECTOR, Command, Flag, Operand

_OUTPUT = (("Output", (Flag("json", BOOL, "Print a JSON document."),)),)
_JOB = Operand("JOB", SELECTOR)


class ShowJob(Command):
    """``show job``: the explicit form of ``show``, for a job whose name is that of a subcommand."""

    path = ("show", "job")
    summary = "Show everything known of a job."
    synopsis = ("show job JOB [OPTIONS]",)
    text = ("The same as jobman show JOB, also for a job that is called job or run.",)
    examples = (("jobman show job train", "Show a job."),)
    groups = _OUTPUT
    operands = (_JOB,)
    exits = (0, 1, 2, 3, 4)


class ShowRun(Command):
    """``show run``: one run of a job."""

    path = ("show", "run")
    summary = "Show one run of a job."
    synopsis = ("show run JOB RUN [OPTIONS]",)
    text = ("RUN is the number of a run, or counts from the end: -1 is the latest.",)
    examples = (
        ("jobman show run train 1", "Show the first run."),
        ("jobman show run train -1 --json", "Show the latest run as JSON."),
    )
    groups = _OUTPUT
    operands = (_JOB, Operand("RUN", RUN))
    signed_operands = True
    exits = (0, 1, 2, 3, 4)


class COMMAND(Command):
    """``show``: everything about one job, or one of its runs."""

    path = ("show",)
    summary = "Show everything known of a job, or of one of its runs."
    synopsis = ("show JOB [OPTIONS]", "show job JOB [OPTIONS]", "show run JOB RUN [OPTIONS]")
    text = ("RUN is the number of a run, or counts from the end: -1 is the latest.",)
    examples = (
        ("jobman show train", "Show a job with all its runs."),
        ("jobman show run train -1", "Show its latest run."),
    )
    groups = _OUTPUT
    operands = (_JOB,)
    subcommands = (ShowJob, ShowRun)
    exits = (0, 1, 2, 3, 4)
