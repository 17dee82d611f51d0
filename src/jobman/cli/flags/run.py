"""The table of ``run``."""

from __future__ import annotations

from jobman.cli.flags import (
    AGE,
    ASSIGNMENTS,
    BOOL,
    DURATION,
    DURATIONS,
    LIMIT,
    OUTCOME_REQUIREMENTS,
    SELECTOR,
    SELECTORS,
    SIGNALS,
    SIZE,
    TEXT,
    TEXTS,
    TIMESTAMP,
    TIMESTAMPS,
    Command,
    Flag,
    choice,
    integer,
    integers,
)

_IDENTITY = (
    Flag("name", TEXT, "Display name; several jobs may share one.", metavar="NAME"),
    Flag("group", TEXTS, "Put the job into a group.", metavar="GROUP"),
    Flag("tag", TEXTS, "Attach a tag.", metavar="TAG"),
    Flag("job-spec", TEXT, "Run what this job spec of the configuration says.", metavar="NAME"),
    Flag("profile", TEXTS, "Change the job as this profile says; several apply in order.", metavar="NAME"),
)
_REPETITION = (Flag("rerun", SELECTOR, "Submit this job again instead; takes no other flags than --name and --wait."),)
_EXECUTION = (
    Flag("cwd", TEXT, "Run in this directory instead of the present one.", metavar="DIR"),
    Flag("env", ASSIGNMENTS, "Set a variable in the command's environment; the last of a name wins."),
    Flag("unset-env", TEXTS, "Remove a variable from the command's environment.", metavar="NAME"),
    Flag(
        "secret-env",
        ASSIGNMENTS,
        "Set a variable to a secret of the configuration, looked up before each run.",
        metavar="NAME=SECRET",
    ),
)
_INPUT = (
    Flag(
        "stdin",
        choice("null", "live", "inherit"),
        "What the command reads: nothing, or what is sent to it.",
        default="null",
    ),
    Flag("stdin-file", TEXT, "Let the command read this file, from its beginning in each run.", metavar="PATH"),
    Flag("foreground", BOOL, "Stay: show all output as it comes, send our input, exit as --wait does."),
)
_PREREQUISITES = (
    Flag("after-success", SELECTORS, "Start only after this job has completed with success."),
    Flag("after-finish", SELECTORS, "Start only after this job has completed, however."),
    Flag("after-failed", SELECTORS, "Start only after this job has completed with failure."),
    Flag("after-outcome", OUTCOME_REQUIREMENTS, "Start only after this job has completed in one of these ways."),
    Flag("wait-until", TIMESTAMPS, "Start only after this time, such as 2027-01-31T08:00:00Z."),
    Flag("wait-delay", DURATIONS, "Start only so long after the submission."),
    Flag("wait-file", TEXTS, "Start only when this path exists, whatever it is.", metavar="PATH"),
    Flag("wait-condition", TEXTS, "Start only when this condition of the configuration holds.", metavar="NAME"),
    Flag("wait-mode", choice("all", "any"), "Whether all wait conditions must hold or any one.", default="all"),
    Flag("wait-poll", DURATION, "Look at every wait condition so often instead of every 250ms."),
    Flag("wait-abort-at", TIMESTAMP, "Give up if the first run has not begun by this time."),
)
_ADMISSION = (
    Flag("pool", TEXT, "Take slots from this pool as well as from the store-wide limit.", metavar="POOL"),
    Flag("slots", integer(1), "Take so many slots while a run is active.", default="1"),
)
_COMPLETION = (
    Flag("retries", integer(0), "Run again after a failure, at most so many times.", default="0"),
    Flag("max-runs", LIMIT, "End after so many runs.", default="1"),
    Flag("success-target", LIMIT, "End with success after so many successful runs.", default="1"),
    Flag("failure-limit", LIMIT, "End with failure after so many failed runs.", default="1"),
    Flag("retry-timeouts", BOOL, "Retry after a run timeout too."),
    Flag("retry-start-failures", BOOL, "Retry when the command could not be started too."),
    Flag("retry-signal", SIGNALS, "Retry when this signal ended the command, such as TERM or SIGTERM."),
    Flag("success-exit-code", integers(0), "Exit codes that count as success instead of 0."),
    Flag("retryable-exit-code", integers(0), "Retry only after these exit codes."),
)
_DELAY = (
    Flag("retry-delay", DURATION, "Wait so long before a run that follows a failure.", default="0s"),
    Flag("repeat-delay", DURATION, "Wait so long before a run that follows a success.", default="0s"),
    Flag("retry-backoff", choice("constant", "linear", "exponential"), "How delays grow.", default="constant"),
    Flag("retry-jitter", DURATION, "Spread delays at random over so much, half of it each way.", default="0s"),
    Flag("retry-max-delay", DURATION, "Never wait longer than this."),
    Flag("retry-abort-at", TIMESTAMP, "Begin no other run after this time."),
)
_TIMEOUT = (
    Flag("run-timeout", DURATION, "Stop a run that takes longer; 0 is no limit.", default="0s"),
    Flag("job-timeout", DURATION, "Stop the job when it takes longer, waiting included; 0 is no limit.", default="0s"),
    Flag("stop-grace", DURATION, "Time between asking the command to end and killing it.", default="10s"),
    Flag("force-after-grace", BOOL, "Kill what does not end in time; =false waits for it.", default="true"),
    Flag("drain-timeout", DURATION, "Read output that children still write so long after the end.", default="10s"),
    Flag("leave-descendants", BOOL, "Leave what the command has started running when it ends by itself."),
)
_LOGGING = (
    Flag("log-capture", choice("both", "stdout", "stderr", "none"), "Which output to record.", default="both"),
    Flag(
        "log-segment-bytes",
        SIZE,
        "Go on in another file after so much of a stream, such as 64MiB; 0 never.",
        default="0",
    ),
    Flag("log-segments", integer(1), "Keep at most so many such files of each stream; then recording ends."),
    Flag("log-retention", AGE, "How old the logs of a run may become; cleaning removes older ones.", default="30d"),
)
_NOTIFICATION = (
    Flag("notify", TEXTS, "Tell this notifier of the configuration what happens to the job.", metavar="NAME"),
    Flag(
        "notify-on", TEXTS, "Tell of this event instead of those of each notifier, such as job_failed.", metavar="EVENT"
    ),
)
_CLIENT = (
    Flag("wait", BOOL, "Wait until the job has ended; fail unless it succeeded."),
    Flag("exit-code", BOOL, "With --wait or --foreground: exit with the command's own exit code, 128+N for a signal."),
)


class COMMAND(Command):
    """``run``: submit a job."""

    path = ("run",)
    summary = "Start a command in the background and print the ID of its job."
    synopsis = ("run [OPTIONS] (-- COMMAND [ARG...] | --job-spec NAME | --profile NAME | --rerun JOB)",)
    text = (
        "The command must follow --; it is executed as given, without a shell.",
        "The job goes on when the terminal closes, and its output is kept: see jobman logs.",
        "--stdin live takes what jobman input sends. With --foreground that is the default, and inherit the same.",
        "A configuration may name whole jobs, changes to them, wait conditions and secrets; flags win over it.",
        "Durations are numbers with the units ns, us, ms, s, m, h, d and w, such as 90s, 1h30m or 1.5d.",
    )
    examples = (
        ("jobman run --name train -- python train.py", "Run a program under a name."),
        ("jobman run --retries 3 --retry-delay 30s -- ./fetch.sh", "Try up to four times, half a minute apart."),
        ("jobman run --after-success train -- ./evaluate.sh", "Run only when another job has succeeded."),
        ("jobman run --log-segment-bytes 64MiB -- ./server", "Record its output in files of at most 64 MiB each."),
        ("jobman run --notify desktop --notify-on job_failed -- ./nightly.sh", "Be told when it fails."),
        ("jobman run --job-spec train --profile gpu", "Run a job of the configuration, changed by a profile."),
        ("jobman run --wait --exit-code -- make test", "Run, wait, and exit as the command did."),
        ("jobman run --stdin-file data.csv -- ./import.sh", "Let the command read a file."),
        ("jobman run --stdin live --name server -- ./server", "Take input from jobman input later."),
        ("jobman run --foreground -- ./restore.sh", "Run as if in the shell; Ctrl-C only detaches."),
    )
    exclusive = (
        ("retries", "max-runs"),
        ("retries", "failure-limit"),
        ("stdin", "stdin-file"),
        ("stdin-file", "foreground"),
    )
    groups = (
        ("Identity", _IDENTITY),
        ("Repetition", _REPETITION),
        ("Execution", _EXECUTION),
        ("Input", _INPUT),
        ("Prerequisites", _PREREQUISITES),
        ("Admission", _ADMISSION),
        ("Completion", _COMPLETION),
        ("Delay", _DELAY),
        ("Timeout", _TIMEOUT),
        ("Logging", _LOGGING),
        ("Notification", _NOTIFICATION),
        ("Client", _CLIENT),
    )
    target = "COMMAND [ARG...]"
    supplies_target = ("job-spec", "profile", "rerun")
    exits = (0, 1, 2, 3, 4, 5)
