"""The values that a flag or an operand may take: words of a closed set, and what the store and the configuration know.

Nothing is reconciled: a job whose supervisor has died is offered in the phase that is recorded. Every function returns
pairs of a value and its description; `jobman.cli.complete` keeps those that begin as the text does.
"""

from __future__ import annotations

import os

from jobman.errors import JobmanError
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from jobman.cli.complete import Line
    from jobman.cli.flags import Flag, Operand
    from jobman.store.names import NamedJob

    Pairs = list[tuple[str, str]]
    Found = tuple[Pairs, int]

# What else the shell shall do; see `jobman.cli.complete`.
FILES = 0
WORDS = 4
OPEN_WORDS = 6
DIRECTORIES = 16

# The jobs with which a command can do something; the others take any.
_ACTIVE = ("submitting", "waiting", "queued", "starting", "running", "backoff", "paused", "stopping")
_SUITABLE = {
    "cancel": _ACTIVE,
    "pause": ("waiting", "queued", "running", "backoff"),
    "resume": ("paused",),
    "wait": _ACTIVE,
    "input": _ACTIVE,
    "clean": ("completed",),
}
# What is named in a configuration, by the flag that names it.
_SECTIONS = {
    "job-spec": "job_specs",
    "profile": "profiles",
    "wait-condition": "wait_conditions",
    "pool": "pools",
    "notify": "notifiers",
    "NOTIFIER": "notifiers",
}
_PATHS = {"FILE": FILES, "PATH": FILES, "DIR": DIRECTORIES}
_LABELS = {"GROUP": "group", "TAG": "tag"}


def candidates(line: Line, taker: Flag | Operand, text: str) -> Found:
    """Return the values that ``taker`` may have, and what else the shell shall do.

    Args:
        line: The words before, and where the store is.
        taker: A flag or an operand.
        text: The value as far as it is there.
    """
    return _BY_KIND.get(taker.kind.name, _none)(line, taker, text)


def _none(_line: Line, _taker: Flag | Operand, _text: str) -> Found:
    return [], WORDS


def _words(*words: str) -> Callable[[Line, Flag | Operand, str], Found]:
    return lambda _line, _taker, _text: ([(word, "") for word in words], WORDS)


def _choice(_line: Line, taker: Flag | Operand, _text: str) -> Found:
    return [(word, "") for word in taker.kind.words], WORDS


def _choices(_line: Line, taker: Flag | Operand, text: str) -> Found:
    return _listed(text, taker.kind.words), WORDS


def _listed(text: str, words: Iterable[str]) -> Pairs:
    """Return the words that may be the last of a list with commas, each with what comes before it."""
    done, comma, _ = text.rpartition(",")
    return [(done + comma + word, "") for word in words if word not in done.split(",")]


def _jobs(line: Line, _taker: Flag | Operand, text: str) -> Found:
    pairs = _job_pairs(line, text, _SUITABLE.get(line.command.path[0], ()) if line.pending is None else ())
    return pairs, WORDS


def _ids(line: Line, _taker: Flag | Operand, text: str) -> Found:
    from jobman.store.names import jobs_beginning

    return _described(_ask(line, jobs_beginning, text, ())), WORDS


def _requirement(line: Line, _taker: Flag | Operand, text: str) -> Found:
    job, equals, outcomes = text.partition("=")
    if not equals:
        return [(f"{word}=", about) for word, about in _job_pairs(line, text, ())], OPEN_WORDS
    from jobman.cli.flags.list import OUTCOMES

    return [(f"{job}={words}", "") for words, _ in _listed(outcomes, OUTCOMES)], WORDS


def _job_pairs(line: Line, text: str, phases: tuple[str, ...]) -> Pairs:
    """Return the names that mean one job only, then the IDs, the newest first."""
    from jobman.store.names import jobs_beginning

    jobs = _ask(line, jobs_beginning, text, phases)
    return [(job.name, job.state) for job in jobs if job.is_only and _is_shown(job.name)] + _described(jobs)


def _described(jobs: Iterable[NamedJob]) -> Pairs:
    return [(job.id, f"{job.name}, {job.state}" if job.name and _is_shown(job.name) else job.state) for job in jobs]


def _is_shown(text: str, key: str = "name") -> bool:
    """Say whether a text may be printed as it is; one of which a part must not be seen completes nothing."""
    from jobman.config.redaction import redact_text

    return redact_text(text, key) == text


def _run(line: Line, taker: Flag | Operand, _text: str) -> Found:
    pairs = [("-1", "The latest.")] + ([("all", "Every run.")] if taker.kind.name == "run or all" else [])
    if line.positionals:
        from jobman.store.names import runs_of

        pairs += [(str(number), state) for number, state in _ask(line, runs_of, line.positionals[0])]
    return pairs, WORDS


def _signal(_line: Line, _taker: Flag | Operand, text: str) -> Found:
    import signal  # nothing else asks for it

    names = sorted(name for name in signal.Signals.__members__ if "RT" not in name)
    return [(name if text.startswith("SIG") else name.removeprefix("SIG"), "") for name in names], WORDS


def _assignment(_line: Line, _taker: Flag | Operand, text: str) -> Found:
    return ([] if "=" in text else [(f"{name}=", "") for name in sorted(os.environ)]), OPEN_WORDS


def _text(line: Line, taker: Flag | Operand, text: str) -> Found:
    """Return what a free text may be, going by what help calls it."""
    called = getattr(taker, "metavar", "") or taker.name
    if called in _PATHS:
        return [], _PATHS[called]
    if taker.name == "unset-env":
        return [(name, "") for name in sorted(os.environ)], WORDS
    if taker.name == "name" and line.command.path == ("list",):
        from jobman.store.names import names_beginning

        return [(name, "") for name in _ask(line, names_beginning, text) if _is_shown(name)], WORDS
    if called in _LABELS:
        from jobman.store.names import labels

        return [
            (label, "") for label in _ask(line, labels, _LABELS[called]) if _is_shown(label, f"{taker.name}s")
        ], WORDS
    if taker.name == "notify-on":
        from jobman.model.events import NotifyEvent

        return [(event, "") for event in NotifyEvent], WORDS
    section = _SECTIONS.get(taker.name)
    return [(name, "") for name in _named(line, section)] if section else [], WORDS


def _named(line: Line, section: str) -> list[str]:
    """Return the names in a section of the configuration; pools are in the store as well."""
    names = set(_configured(line, section))
    if section == "pools":
        from jobman.store.names import pools

        names.update(_ask(line, pools))
    return sorted(names)


def _configured(line: Line, section: str) -> list[str]:
    """Return the names in a section of the configuration; what was checked is remembered in a store that exists."""
    from jobman.config.load import load
    from jobman.config.paths import state_directory

    try:
        root = state_directory(os.path.expanduser(line.text("state-dir")))
        stated = load(os.path.expanduser(line.text("config")), root if os.path.isdir(root) else "").stated
    except JobmanError:
        return []  # what is wrong with it is told by the command itself
    return list((stated.get("concurrency", {}) if section == "pools" else stated).get(section, {}))


def _ask(line: Line, query: Callable[..., list[Any]], *arguments: object) -> list[Any]:
    """Return what a query of `jobman.store.names` finds in the store that the line means; nothing if it cannot ask."""
    from jobman.cli.redacting import prepare
    from jobman.config.paths import state_directory
    from jobman.store.connection import open_existing

    # What the shell would have expanded is still as it was typed.
    config, place = (os.path.expanduser(line.text(flag)) for flag in ("config", "state-dir"))
    prepare(config, place)
    try:
        store = open_existing(state_directory(place))
    except JobmanError:
        return []
    try:
        return query(store, *arguments)
    except JobmanError:
        return []
    finally:
        store.close()


_BY_KIND: dict[str, Callable[[Line, Flag | Operand, str], Found]] = {
    "age": _words("unlimited"),
    "assignment": _assignment,
    "bool": _words("true", "false"),
    "choice": _choice,
    "choices": _choices,
    "id": _ids,
    "limit": _words("unlimited"),
    "outcome requirement": _requirement,
    "run": _run,
    "run or all": _run,
    "selector": _jobs,
    "signal": _signal,
    "text": _text,
}
