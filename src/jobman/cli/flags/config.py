"""The tables of ``config`` and its subcommands."""

from __future__ import annotations

from jobman.cli.flags import Command


class ConfigApply(Command):
    """``config apply``: make the limits of the store those of the configuration."""

    path = ("config", "apply")
    summary = "Make the store's limits exactly those of the configuration."
    synopsis = ("config apply",)
    text = (
        "jobman run sets the limits that a configuration states and leaves the others alone.",
        "This command also lifts limits and removes pools that are not stated, unless a pool is in use.",
    )
    examples = (("jobman config apply --config jobman.yml", "Put the limits of a file in force."),)
    exits = (0, 1, 2, 5)


class COMMAND(Command):
    """``config``: what has been configured."""

    path = ("config",)
    summary = "Put configured limits in force."
    synopsis = ("config apply",)
    text = ("Limits live in the store, so that every job is held to the same ones.",)
    examples = (("jobman config apply", "Make the store's limits those of the configuration files."),)
    subcommands = (ConfigApply,)
    exits = (0, 1, 2, 5)
