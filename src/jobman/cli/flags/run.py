"""The table of ``run``."""

from __future__ import annotations

from jobman.cli.flags import ASSIGNMENTS, BOOL, DURATION, SELECTORS, TEXT, TEXTS, Command, Flag, integer, integers

_IDENTITY = (
    Flag("name", TEXT, "Display name; several jobs may share one.", metavar="NAME"),
    Flag("group", TEXTS, "Put the job into a group.", metavar="GROUP"),
    Flag("tag", TEXTS, "Attach a tag.", metavar="TAG"),
)
_EXECUTION = (
    Flag("cwd", TEXT, "Run in this directory instead of the present one.", metavar="DIR"),
    Flag("env", ASSIGNMENTS, "Set a variable in the command's environment; the last of a name wins."),
    Flag("unset-env", TEXTS, "Remove a variable from the command's environment.", metavar="NAME"),
)
_PREREQUISITES = (Flag("after-success", SELECTORS, "Start only after this job has completed with success."),)
_COMPLETION = (
    Flag("retries", integer(0), "Run again after a failure, at most so many times.", default="0"),
    Flag("success-exit-code", integers(0), "Exit codes that count as success instead of 0."),
    Flag("retryable-exit-code", integers(0), "Retry only after these exit codes."),
)
_DELAY = (Flag("retry-delay", DURATION, "Wait so long before a run that follows a failure.", default="0s"),)
_TIMEOUT = (
    Flag("run-timeout", DURATION, "Stop a run that takes longer; 0 is no limit.", default="0s"),
    Flag("job-timeout", DURATION, "Stop the job when it takes longer, waiting included; 0 is no limit.", default="0s"),
    Flag("stop-grace", DURATION, "Time between asking the command to end and killing it.", default="10s"),
)
_CLIENT = (
    Flag("wait", BOOL, "Wait until the job has ended; fail unless it succeeded."),
    Flag("exit-code", BOOL, "With --wait: exit with the command's own exit code, 128+N for a signal."),
)


class COMMAND(Command):
    """``run``: submit a job."""

    path = ("run",)
    summary = "Start a command in the background and print the ID of its job."
    synopsis = ("run [OPTIONS] -- COMMAND [ARG...]",)
    text = (
        "The command must follow --; it is executed as given, without a shell.",
        "The job goes on when the terminal closes, and its output is kept: see jobman logs.",
        "Durations are numbers with the units ns, us, ms, s, m, h, d and w, such as 90s, 1h30m or 1.5d.",
    )
    examples = (
        ("jobman run --name train -- python train.py", "Run a program under a name."),
        ("jobman run --retries 3 --retry-delay 30s -- ./fetch.sh", "Try up to four times, half a minute apart."),
        ("jobman run --after-success train -- ./evaluate.sh", "Run only when another job has succeeded."),
        ("jobman run --wait --exit-code -- make test", "Run, wait, and exit as the command did."),
    )
    groups = (
        ("Identity", _IDENTITY),
        ("Execution", _EXECUTION),
        ("Prerequisites", _PREREQUISITES),
        ("Completion", _COMPLETION),
        ("Delay", _DELAY),
        ("Timeout", _TIMEOUT),
        ("Client", _CLIENT),
    )
    target = "COMMAND [ARG...]"
    exits = (0, 1, 2, 3, 4, 5)
