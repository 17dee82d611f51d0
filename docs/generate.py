"""Write the reference pages that follow from the code and the schemas: ``make reference``.

The commands come from the tables that feed the parser and the help, the exit statuses from those tables and the
classes of errors, the members of JSON documents from the schemas. A test fails when a page is not what this writes.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jobman import errors
from jobman.cli import flags
from jobman.cli.help import EXITS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from jobman.cli.flags import Command, Flag

REFERENCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference")
_COMMANDS = """\
# Commands

<!-- Written by docs/generate.py from the tables in src/jobman/cli/flags; `make reference` writes it anew. -->

A value flag takes the next word whatever it looks like (`logs --run -1 JOB`); `--flag=value` is the same. Flags and
operands may be mixed, except after `run`, whose command follows `--`. Nothing is abbreviated. A JOB is a full ID, at
least 8 characters of the beginning of one, or an exact name; a name that several jobs share is ambiguous.

Every message is one text on standard error. What the exit statuses mean stands in
[Exit statuses](exit-statuses.md).
"""
_STATUSES = """\
# Exit statuses

<!-- Written by docs/generate.py from src/jobman/cli/help.py and errors.py; `make reference` writes it anew. -->

| Status | | Commands |
|---|---|---|
"""
_CONDITIONS = """
`wait --exit-code` and `run --wait --exit-code` exit as the command of the job did: with its exit code, or 128 and the
number of the signal that ended it; with 1 where the command did not decide, as after `cancel`, or decided for 0 and the
job failed all the same, as with `--max-runs 2 --success-target 3`.

## Conditions

Everything that can go wrong, by the status with which it ends a command. The message on standard error says what
happened, to what, and what to do.

| Status | Condition |
|---|---|
"""
_DOCUMENTS = """\
# JSON documents, member by member

<!-- Written by docs/generate.py from docs/reference/schemas; `make reference` writes it anew. -->

Every member of every document, as the [schemas](schemas/common.schema.json) state it. What the documents have in
common, and examples, stand in [JSON documents](json.md). `[]` in a name stands for each item of a list, `*` for any
name.
"""


def pages() -> dict[str, str]:
    """Return every page by its path below ``docs/reference``."""
    return {"commands.md": commands(), "exit-statuses.md": exit_statuses(), "documents.md": documents()}


# --- Commands ---


def commands() -> str:
    """Return the page of commands."""
    tables: list[type[Command]] = [flags.Root, *flags.tables()]
    return "\n".join((_COMMANDS, *(_section(command) for command in tables)))


def _section(command: type[Command]) -> str:
    level = "##" if len(command.path) < 2 else "###"
    parts = [
        f"{level} `{' '.join(('jobman', *command.path))}`",
        command.summary,
        _block(f"jobman {line}" for line in command.synopsis),
        *(paragraph for paragraph in command.text),
        _flags(command),
        _block(line for example, meaning in command.examples for line in (f"# {meaning}", example)),
        "Exit status: " + ", ".join(f"`{status}`" for status in command.exits),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _flags(command: type[Command]) -> str:
    groups = [*command.groups, *([("Everywhere", flags.PERSISTENT)] if command is flags.Root else [])]
    rows = [f"| `{_spelling(flag)}` | {_meaning(flag)} |" for _, group in groups for flag in group]
    return "\n".join(("| Flag | |", "|---|---|", *rows)) if rows else ""


def _spelling(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else ""
    # A bar would end the cell, even in code.
    return f"{short}--{flag.name} {flag.metavar}".strip().replace("|", "\\|")


def _meaning(flag: Flag) -> str:
    words = f" One of {', '.join(f'`{word}`' for word in flag.kind.words)}." if flag.kind.words else ""
    notes = ["may be repeated"] if flag.kind.repeated else []
    notes += [f"default `{flag.default}`"] if flag.default else []
    return (flag.summary + words).replace("|", "\\|") + (f" ({', '.join(notes)})" if notes else "")


def _block(lines: Iterator[str]) -> str:
    text = "\n".join(lines)
    return f"```\n{text}\n```" if text else ""


# --- Exit statuses ---


def exit_statuses() -> str:
    """Return the page of exit statuses."""
    users = {status: [table for table in flags.tables() if status in table.exits] for status in EXITS}
    rows = [f"| `{status}` | {meaning} | {_named(users[status])} |" for status, meaning in EXITS.items()]
    conditions = [
        f"| `{status}` | {condition} |"
        for status, condition in sorted({(kind.exit_status, _condition(kind)) for kind in _conditions()})
    ]
    return _STATUSES + "\n".join(rows) + "\n" + _CONDITIONS + "\n".join(conditions) + "\n"


def _named(users: list[type[Command]]) -> str:
    tops = sorted({table.path[0] for table in users})
    return "all" if len(tops) == len(flags.verbs()) else ", ".join(f"`{top}`" for top in tops)


def _conditions() -> Iterator[type[errors.JobmanError]]:
    """Yield every class of errors that is not the base of others."""
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.JobmanError) and not value.__subclasses__():
            yield value


def _condition(kind: type[errors.JobmanError]) -> str:
    sentence = (kind.__doc__ or "").partition("\n")[0].partition("; fields:")[0].rstrip(".")
    return sentence.replace("``", "`").replace("|", "\\|") + "."


# --- JSON documents ---


def documents() -> str:
    """Return the page of JSON documents."""
    schemas = _schemas()
    sections = [_document(name, schema) for name, schema in schemas.items() if "properties" in schema]
    shared = {name: definition for schema in schemas.values() for name, definition in schema.get("$defs", {}).items()}
    definitions = [_table(f"### `{name}`", definition) for name, definition in sorted(shared.items())]
    return "\n".join((_DOCUMENTS, *sections, "## Shared definitions\n", *definitions))


def _schemas() -> dict[str, dict[str, Any]]:
    directory = os.path.join(REFERENCE, "schemas")
    found = {}
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            found[name] = json.load(file)
    return found


def _document(name: str, schema: dict[str, Any]) -> str:
    body = {key: value for key, value in schema.items() if key != "$defs"}
    return _table(f"## `{name.removesuffix('.schema.json')}`\n\n{schema['title']}.", body)


def _table(heading: str, schema: dict[str, Any]) -> str:
    """Return a section: what the value is, and a row for each member that it may have."""
    about = schema.get("description", "")
    rows = [
        f"| `{path}` | {_type(member)} | {'' if needed else 'optional'} | {member.get('description', '')} |"
        for path, member, needed in _members(schema, "")
    ]
    table = "\n".join(("| Member | Value | | |", "|---|---|---|---|", *rows)) if rows else _type(schema)
    return "\n\n".join(part for part in (heading, about, table) if part) + "\n"


def _members(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield path, schema and necessity of each member, those of values that are spelled out in place after them."""
    for name, member in schema.get("properties", {}).items():
        inner = f"{path}.{name}" if path else name
        yield inner, member, name in schema.get("required", ())
        yield from _members(member, inner)
    if isinstance(schema.get("additionalProperties"), dict):
        yield f"{path}.*", schema["additionalProperties"], False
    if isinstance(schema.get("items"), dict):
        yield from _members(schema["items"], f"{path}[]")
    seen = set()
    for choice in _choices(schema):
        for inner, member, needed in _members(choice, path):
            if inner not in seen:
                yield inner, member, needed and all(_has(other, inner, path) for other in _choices(schema))
            seen.add(inner)


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())]


def _has(schema: dict[str, Any], wanted: str, path: str) -> bool:
    return any(inner == wanted and needed for inner, _, needed in _members(schema, path))


def _type(schema: dict[str, Any]) -> str:
    """Say in a few words what a value is."""
    if "$ref" in schema:
        # A definition, or a part of another document.
        before, definition, name = schema["$ref"].partition("/$defs/")
        name = name if definition else before.partition(".")[0]
        return f"[{name}](#{name})"
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if _choices(schema):
        return " or ".join(dict.fromkeys(_type(choice) for choice in _choices(schema)))
    kinds = schema.get("type", "object")
    return " or ".join(_plain(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _plain(kind: str, schema: dict[str, Any]) -> str:
    if kind == "array":
        items = f"list of {_type(schema['items'])}" if "items" in schema else "list"
        return "empty list" if schema.get("maxItems") == 0 else items
    if kind == "string":
        return "text of the form `{}`".format(schema["pattern"].replace("|", "\\|")) if "pattern" in schema else "text"
    if kind == "integer" and "minimum" in schema:
        return f"integer, {schema['minimum']} or more"
    return {"object": "object", "null": "`null`", "boolean": "`true`, `false`"}.get(kind, kind)


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        path = os.path.join(REFERENCE, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        print(path)


if __name__ == "__main__":
    main()
