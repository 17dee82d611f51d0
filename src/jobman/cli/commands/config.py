"""``jobman config``."""

from __future__ import annotations

from jobman.cli.output import err, out
from jobman.cli.redacting import prepare
from jobman.config.load import load, stated_limits
from jobman.config.paths import config_files
from jobman.config.redaction import redact_text
from jobman.errors import UsageError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.config.load import Configured
    from jobman.store.connection import Store


_AT_ONCE = 32


def run(parsed: Parsed) -> int:
    """Show, check or put in force what is configured."""
    prepare(parsed.value("config"), parsed.value("state-dir"))
    _SUBCOMMANDS[parsed.command[1]](parsed)
    return 0


def _apply(parsed: Parsed) -> None:
    from jobman.cli.commands._backend import store_of  # the other subcommands need no store
    from jobman.store.limits import apply_all

    store = store_of(parsed)
    configured = load(parsed.value("config"), store.root)
    if apply_all(store, stated_limits(configured)):
        _wake_those_that_fit(store)
    out(f"applied\t{configured.sources} sources\n")


def _wake_those_that_fit(store: Store) -> None:
    """Wake requests that may fit into the new limits; the rest find out by looking."""
    from jobman.process.wake import wake_jobs
    from jobman.store.admissions import requests_to_wake

    wake_jobs(store.root, requests_to_wake(store, _AT_ONCE))


def _show(parsed: Parsed) -> None:
    from jobman.config.report import effective, with_origins  # loads pydantic
    from jobman.documents import envelope

    read = with_origins if parsed.value("origins") else effective
    out(envelope(read(parsed.value("config"))))


def _paths(parsed: Parsed) -> None:
    configured = load(parsed.value("config"))
    places = [(kind, path) for kind, path, _ in config_files(parsed.value("config"))]
    places += [(file.kind, file.path) for file in configured.files if file.kind == "project"]
    out("".join(f"{kind}\t{redact_text(path)}\n" for kind, path in places))


def _validate(parsed: Parsed) -> None:
    path = parsed.operand("PATH")
    if path is not None and parsed.given("config"):
        raise UsageError(detail="config validate: PATH and --config exclude each other")
    if path == "":
        raise UsageError(detail="config validate: PATH is empty")
    configured = load(parsed.value("config") if path is None else path)
    _warn(configured)
    out(f"valid\t{configured.sources} sources\n")


def _warn(configured: Configured) -> None:
    """Say on stderr what is valid and yet cannot be meant."""
    if "notifiers" not in configured.stated:
        return
    from jobman.config.subscribing import warnings  # loads the model of notifiers

    for text in warnings(configured.stated):
        err(f"warning: {redact_text(text)}")


def _schema(_parsed: Parsed) -> None:
    import json

    from jobman.config.schema import json_schema  # loads pydantic

    out(json.dumps(json_schema(), indent=2, sort_keys=True) + "\n")


_SUBCOMMANDS = {"apply": _apply, "show": _show, "paths": _paths, "validate": _validate, "schema": _schema}
