"""The table of ``logs``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, RUN_OR_ALL, SELECTOR, Command, Flag, Operand, choice, integer

_SELECTION = (
    Flag("run", RUN_OR_ALL, "Which run: its number, -1 for the latest, or all.", default="-1"),
    Flag("all", BOOL, "Every run, each under a line that names it."),
    Flag("stream", choice("stdout", "stderr", "both"), "Which stream.", default="both"),
    Flag("lines,n", integer(-1), "Only so many last lines; -1 is all of them, and so is --follow.", default="-1"),
)
_OUTPUT = (
    Flag("follow,f", BOOL, "Go on with what comes, until the run has ended."),
    Flag("timestamps", BOOL, "Before each line: the time at which it began, in UTC, such as 2026-11-29T15:19:20.5Z."),
    Flag("prefix", BOOL, "Before each line: its stream, out| or err| and a space."),
    Flag("raw", BOOL, "With --all: only the bytes, without the lines that name the runs."),
)


class COMMAND(Command):
    """``logs``: what a job has written."""

    path = ("logs",)
    summary = "Print what a job has written."
    synopsis = ("logs JOB [OPTIONS]",)
    text = (
        "Prints the bytes as they were written, those of both streams in the order in which they arrived.",
        "With --timestamps or --prefix each line is printed whole, when it has ended, without the other stream in it.",
        "The time is that at which the first byte of the line was read, or up to 50ms before.",
    )
    examples = (
        ("jobman logs train", "All output of the latest run."),
        ("jobman logs -n 20 train", "Its last twenty lines."),
        ("jobman logs -f train", "All of it, and what follows."),
        ("jobman logs -n 50 --timestamps --prefix train", "The last lines, with their times and streams."),
        ("jobman logs --follow --all train", "Every run as it comes, until the job has ended."),
        ("jobman logs --run 1 --stream stderr train", "The errors of the first run."),
    )
    groups = (("Selection", _SELECTION), ("Output", _OUTPUT))
    operands = (Operand("JOB", SELECTOR),)
    exits = (0, 1, 2, 3, 4, 5)
