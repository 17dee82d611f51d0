"""The tables of ``cancel``, ``cancel job`` and ``cancel run``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, RUN, SELECTOR, Command, Flag, Operand

_CLIENT = (("Client", (Flag("wait", BOOL, "Wait until the job has ended."),)),)
_JOB = Operand("JOB", SELECTOR)


class CancelJob(Command):
    """``cancel job``: the explicit form of ``cancel``, for a job whose name is that of a subcommand."""

    path = ("cancel", "job")
    summary = "Cancel a job."
    synopsis = ("cancel job JOB [OPTIONS]",)
    text = ("The same as jobman cancel JOB, also for a job that is called job or run.",)
    examples = (("jobman cancel job train", "Cancel a job."),)
    groups = _CLIENT
    operands = (_JOB,)
    exits = (0, 1, 2, 3, 4, 5)


class CancelRun(Command):
    """``cancel run``: cancel a job, provided that this run is the active one."""

    path = ("cancel", "run")
    summary = "Cancel a job, provided that a certain run of it is active."
    synopsis = ("cancel run JOB RUN [OPTIONS]",)
    text = (
        "RUN is the number of a run, or counts from the end: -1 is the latest.",
        "That run must be the active one. The whole job is cancelled: no other run follows.",
    )
    examples = (("jobman cancel run train 2", "Cancel the job unless its second run is already over."),)
    groups = _CLIENT
    operands = (_JOB, Operand("RUN", RUN))
    signed_operands = True
    exits = (0, 1, 2, 3, 4, 5)


class COMMAND(Command):
    """``cancel``: end a job."""

    path = ("cancel",)
    summary = "Ask a job to end; kill it when its grace period is over."
    synopsis = ("cancel JOB [OPTIONS]", "cancel job JOB [OPTIONS]", "cancel run JOB RUN [OPTIONS]")
    text = (
        "Prints the ID and the phase, separated by a tab, and returns when the request is recorded.",
        "A job that has already ended stays as it is.",
    )
    examples = (
        ("jobman cancel train", "Cancel a job."),
        ("jobman cancel --wait train", "Cancel it and return when it has ended."),
    )
    groups = _CLIENT
    operands = (_JOB,)
    subcommands = (CancelJob, CancelRun)
    exits = (0, 1, 2, 3, 4, 5)
