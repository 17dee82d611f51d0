"""The tables of ``config`` and its subcommands."""

from __future__ import annotations

from jobman.cli.flags import BOOL, TEXT, Command, Flag, Operand


class ConfigShow(Command):
    """``config show``: what is in force, and where it comes from."""

    path = ("config", "show")
    summary = "Print the effective configuration as JSON."
    synopsis = ("config show [OPTIONS]",)
    text = ("What looks like a secret is replaced; a profile shows only what it changes.",)
    examples = (("jobman config show --origins", "See which file each value comes from."),)
    groups = (("Output", (Flag("origins", BOOL, "Tell also which source each value comes from."),)),)


class ConfigPaths(Command):
    """``config paths``: where files are looked for."""

    path = ("config", "paths")
    summary = "Print the paths of the configuration files, whether they are there or not."
    synopsis = ("config paths",)
    text = ("The file of a project is among them only if the project is trusted.",)
    examples = (("jobman config paths", "See where to put a configuration file."),)


class ConfigValidate(Command):
    """``config validate``: is it valid?"""

    path = ("config", "validate")
    summary = "Check the configuration, and count its sources."
    synopsis = ("config validate [PATH]",)
    text = ("The first mistake is named with its file, line, column and key. PATH is read like the file of --config.",)
    examples = (("jobman config validate jobman.yml", "Check a file before it is used."),)
    operands = (Operand("PATH", TEXT, optional=True),)


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


class ConfigSchema(Command):
    """``config schema``: the JSON Schema of a file."""

    path = ("config", "schema")
    summary = "Print the JSON Schema of a configuration file, for editors."
    synopsis = ("config schema",)
    text = ("An editor that is given it completes keys and underlines mistakes; rules between keys are not in it.",)
    examples = (("jobman config schema", "Print the schema, to keep it in a file for an editor."),)
    exits = (0, 2)


class COMMAND(Command):
    """``config``: what has been configured."""

    path = ("config",)
    summary = "Show, check and apply the configuration."
    synopsis = ("config COMMAND",)
    text = (
        "Files, in ascending precedence: the system's, the user's, a trusted project's .jobman.yml, that of --config.",
        "Limits live in the store, so that every job is held to the same ones: config apply puts a change in force.",
    )
    examples = (
        ("jobman config validate jobman.yml", "Check a file before it is used."),
        ("jobman config show --origins", "See what is in force, and which file says so."),
    )
    subcommands = (ConfigShow, ConfigPaths, ConfigValidate, ConfigApply, ConfigSchema)
    exits = (0, 1, 2, 5)
