"""The table of ``completion``."""

from __future__ import annotations

from jobman.cli.flags import BOOL, Command, Flag, Operand, choice

SHELLS = ("bash", "zsh", "fish")


class COMMAND(Command):
    """``completion``: the script that lets a shell complete the words of ``jobman``."""

    path = ("completion",)
    summary = "Print the script that makes a shell complete jobman's command lines."
    synopsis = ("completion bash|zsh|fish [OPTIONS]",)
    text = (
        "Commands, flags, jobs, pools and every word of a fixed set are completed; after run --, what the shell knows.",
        "Completion only looks: it makes no state directory, changes nothing and is silent when something is wrong.",
    )
    examples = (
        ("jobman completion bash", "For ~/.local/share/bash-completion/completions/jobman."),
        ("jobman completion zsh", "For a file _jobman in a directory of $fpath, found by compinit."),
        ("jobman completion fish", "For ~/.config/fish/completions/jobman.fish."),
    )
    groups = (("Output", (Flag("no-descriptions", BOOL, "Complete words without saying what they mean."),)),)
    operands = (Operand("SHELL", choice(*SHELLS)),)
    exits = (0, 2)
