"""What is fuzzed: each target reads bytes the way Jobman does, and compares with what `fuzz.grammar` says they mean.

A target raises ``AssertionError`` for a misreading, and lets every exception through that a user would see as a defect.
Only refusals that Jobman knows are caught.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from unittest import mock

import yaml

from fuzz import grammar
from jobman.cli import flags
from jobman.cli.values import convert
from jobman.config import strict_yaml, trees
from jobman.config.load import File
from jobman.config.read import Reader
from jobman.config.scalars import UNREADABLE
from jobman.errors import AmbiguousSelectorError, InvalidConfigError, InvalidValueError, JobNotFoundError
from jobman.model.ids import new_id
from jobman.model.scalars import (
    format_duration,
    format_timestamp,
    parse_duration,
    parse_integer,
    parse_size,
    parse_timestamp,
)
from jobman.model.spec import JobSpec
from jobman.model.spec_rules import name_problem
from jobman.model.state import JobOutcome
from jobman.model.transitions._change import Now
from jobman.model.transitions.submission import submit
from jobman.process.exits import signal_name
from jobman.store.commit import commit_submission
from jobman.store.connection import open_store
from jobman.store.selectors import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobman.config.strict_yaml import Value
    from jobman.store.connection import Store

REFUSED = "(refused)"
Meaning = Callable[[str], object]


def directory() -> str:
    """Return a new directory, which is removed at the end."""
    path = tempfile.mkdtemp(prefix="jobman-fuzz-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def text_of(data: bytes) -> str:
    """Return bytes as the command line hands them over."""
    return data.decode("utf-8", "surrogateescape")


def same(text: str, read: object, meant: object) -> None:
    """Fail if a text was read as something else than it means."""
    assert read == meant, f"{text!r} was read as {read!r} and means {meant!r}"


def or_refused(read: Callable[[], object]) -> object:
    """Return what is read, `REFUSED` if it is refused as it should be."""
    try:
        return read()
    except (InvalidValueError, InvalidConfigError):
        return REFUSED


def known(meant: object) -> object:
    """Return what a text means; one that means nothing has to be refused."""
    return REFUSED if meant is None else meant


# --- Values of flags ---


def duration(data: bytes) -> None:
    """Durations, and that what is printed of them is read as the same again."""
    _check_there_and_back(text_of(data), grammar.duration, parse_duration, format_duration)


def size(data: bytes) -> None:
    """Sizes."""
    text = text_of(data)
    same(text, or_refused(lambda: parse_size(text)), known(grammar.size(text)))


def instant(data: bytes) -> None:
    """Times, and that what is printed of them is read as the same again."""
    _check_there_and_back(text_of(data), grammar.instant, parse_timestamp, format_timestamp)


def _check_there_and_back(
    text: str, meaning: Callable[[str], int | None], parse: Callable[[str], int], show: Callable[[int], str]
) -> None:
    read = or_refused(lambda: parse(text))
    same(text, read, known(meaning(text)))
    if isinstance(read, int):
        same(text, parse(show(read)), read)


def numbers(data: bytes) -> None:
    """Integers, run numbers and lists of exit codes."""
    text = text_of(data)
    same(text, or_refused(lambda: parse_integer(text)), known(grammar.integer(text)))
    same(text, or_refused(lambda: convert(flags.RUN, text, "RUN")), known(grammar.run_number(text)))
    codes = or_refused(lambda: convert(flags.integers(0), text, "--success-exit-code"))
    same(text, codes, known(grammar.exit_codes(text)))


def words(data: bytes) -> None:
    """Signals, booleans, and jobs with the outcomes that are asked for."""
    text = text_of(data)
    named = _SIGNALS.get(f"SIG{text.upper().removeprefix('SIG')}") if text.isascii() else None
    said = None if named is None else (signal_name(named),)
    same(text, or_refused(lambda: convert(flags.SIGNALS, text, "--retry-signal")), known(said))
    same(text, or_refused(lambda: convert(flags.BOOL, text, "--wait")), known(_TRUTH.get(text)))
    _outcomes(text)


_SIGNALS = signal.Signals.__members__
_TRUTH = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def _outcomes(text: str) -> None:
    read = or_refused(lambda: convert(flags.OUTCOME_REQUIREMENTS, text, "--after-outcome"))
    job, equals, listed = text.partition("=")
    wanted = set(listed.split(","))
    if not (equals and job.strip()) or not wanted <= {outcome.value for outcome in JobOutcome}:
        same(text, read, REFUSED)
        return
    assert isinstance(read, tuple)
    (selector, predicate), *others = read
    back = predicate.removeprefix("outcomes:").split(",")
    same(text, ([*others], selector, {"failure" if word == "failed" else word for word in back}), ([], job, wanted))


# --- Selectors ---

_NAMES = ("", "train", "twice", "twice", "01a1ef8b", "01a1", "deadbeef", "-1", " x", "\u00fc", "ABCDEF01", "01a1ef8b-7")


@functools.cache
def _jobs() -> tuple[Store, dict[str, str]]:
    """A store with a few jobs, and their names; the IDs of one moment begin alike."""
    store = open_store(directory())
    jobs = {}
    for place, name in enumerate((*_NAMES, *_NAMES[1:])):
        now = Now(1_795_000_000_000_000_000 + place // 5 * 10**11, 0)
        job_id = new_id(now.wall_ns, bytes((place * 37 % 256, *range(9))))
        commit_submission(store, submit(job_id, name, credential_hash=bytes(32), now=now), JobSpec("true", (), "/"))
        jobs[job_id] = name
    return store, jobs


def selector(data: bytes) -> None:
    """Selectors: a whole ID, the beginning of one, a name; the first two bytes may put an ID before the rest."""
    store, jobs = _jobs()
    ids = sorted(jobs)
    text = text_of(data[2:])
    if len(data) > 1 and data[0] < 200:
        text = ids[data[0] % len(ids)][: data[1] % 40] + text
    meant = grammar.selected(jobs, text)
    try:
        read = [resolve(store, text)]
    except JobNotFoundError:
        read = []
    except AmbiguousSelectorError:
        assert len(meant) > 1, text
        return
    same(text, read, meant)


# --- Configurations ---


def _or_unlimited(meaning: Meaning) -> Meaning:
    return lambda text: text if text == "unlimited" else meaning(text)


def _printed(meaning: Callable[[str], int | None], show: Callable[[int], object]) -> Meaning:
    def meant(text: str) -> object:
        value = meaning(text)
        return REFUSED if value is None or value < 0 else show(value)

    return meant


def _plain_size(text: str) -> object:
    """Without quotes a number is one of YAML, which has no leading zero."""
    return known(grammar.plain_integer(text) if text.lstrip("-").isdigit() else grammar.size(text))


def _label(text: str) -> object:
    return text if name_problem("it", text) is None else REFUSED


def _nothing(_text: str) -> object:
    return REFUSED


_DURATION = _or_unlimited(_printed(grammar.duration, format_duration))
_TIME = _printed(grammar.instant, format_timestamp)
_BOOLEANS = {"true": True, "false": False}
# A document with one scalar, and what a text there means without quotes and in them.
PLACES: dict[str, tuple[Meaning, Meaning]] = {
    "{retention: {completed_log_max_age: VALUE}}": (_DURATION, _DURATION),
    "{retention: {max_jobs: VALUE}}": (
        _or_unlimited(_printed(grammar.plain_integer, int)),
        _or_unlimited(_nothing),
    ),
    "{retention: {max_total_log_bytes: VALUE}}": (
        _or_unlimited(_plain_size),
        _or_unlimited(_printed(grammar.size, int)),
    ),
    "{profiles: {a: {overrides: {stop: {leave_descendants: VALUE}}}}}": (
        lambda text: _BOOLEANS.get(text, REFUSED),
        _nothing,
    ),
    "{profiles: {a: {overrides: {name: VALUE}}}}": (_label, _label),
    "{wait_conditions: {c: {until: VALUE, type: until}}}": (_TIME, _TIME),
}


def quoted(text: str) -> str:
    """Return a text in double quotes, as YAML escapes it: JSON has two escapes for one character beyond 16 bits."""
    safe = (char if char.isalnum() and char.isascii() else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(safe)}"'


def stated_at(path: str, document: str, scalar: str) -> object:
    """Return what the scalar, as it is written, means in a document of `PLACES`; it is written to ``path``."""
    _write(path, document.replace("VALUE", scalar).encode("utf-8", "surrogateescape"))
    found: Any = or_refused(lambda: Reader().stated([File("explicit", path, ())], ()))
    while isinstance(found, dict):
        found = next(iter(found[key] for key in found if key != "type"))
    return found


def scalar(data: bytes) -> None:
    """One scalar of a configuration, without quotes and in them; the first byte says which."""
    document = sorted(PLACES)[data[0] % len(PLACES)] if data else next(iter(PLACES))
    text = text_of(data[1:])
    looks, means = (meaning(text) for meaning in PLACES[document])
    same(text, stated_at(_file(), document, quoted(text)), means)
    # A bracket, a colon or a hash may be of YAML's own grammar, and then the scalar ends before it.
    if _is_whole_scalar(text):
        assert stated_at(_file(), document, text) in (REFUSED, looks), text


def _is_whole_scalar(text: str) -> bool:
    return not any(char in "#:[]{},&*!|>'\"%@`?\n\r" for char in text) and text == text.strip() != ""


def document(data: bytes) -> None:
    """A whole file: both parsers agree, every value stands where it says, and written anew it is read as the same."""
    path = _file()
    _write(path, data)
    read = [tree for tree in (_tree(path, loader) for loader in _LOADERS) if tree is not None]
    for tree in read:
        _check_places(data, tree)
    # What neither text nor a plain number is will be refused; where a tag ends, the parsers do not agree.
    contents = list(filter(_is_readable, map(trees.plain, read)))
    assert all(content == contents[0] for content in contents), f"two parsers read {data!r} as {contents}"
    if contents:
        _write(path, flow(contents[0]).encode())
        same(repr(data), or_refused(lambda: trees.plain(strict_yaml.read(path))), contents[0])
    _write(path, data)
    stated = or_refused(lambda: Reader().stated([File("explicit", path, ())], ()))
    if isinstance(stated, dict):
        _write(path, flow(stated).encode())
        same(repr(data), or_refused(lambda: Reader().stated([File("explicit", path, ())], ())), stated)


_LOADERS = (yaml.SafeLoader, strict_yaml._LOADER)  # noqa: SLF001  # the faster one, if there is one


def _tree(path: str, loader: Any) -> Value | None:
    with mock.patch.object(strict_yaml, "_LOADER", loader):
        try:
            return strict_yaml.read(path)
        except InvalidConfigError:
            return None


def _check_places(data: bytes, tree: Value) -> None:
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    if "\ufeff" in text:
        return  # PyYAML's own parser does not count the mark as a character
    lines = text.split("\n")
    for value in _scalars(tree):
        if value.plain and value.text:
            line, column = map(int, value.where.split(":")[-2:])
            found = lines[line - 1][column - 1 :]
            assert found.startswith(("!", value.text.split("\n")[0].split(" ")[0])), f"{value} is not there in {data!r}"


def _scalars(tree: Value) -> Iterator[Value]:
    yield tree
    for value in (*tree.members.values(), *tree.items):
        yield from _scalars(value)


def _is_readable(content: object) -> bool:
    if isinstance(content, dict):
        return all(map(_is_readable, content.values()))
    return all(map(_is_readable, content)) if isinstance(content, list) else content is not UNREADABLE


def flow(content: object) -> str:
    """Return a content as a document of one line; JSON would escape what is beyond 16 bits as two characters."""
    if isinstance(content, dict):
        return "{" + ", ".join(f"? {quoted(key)} : {flow(value)}" for key, value in content.items()) + "}"
    if isinstance(content, list):
        return "[" + ", ".join(map(flow, content)) + "]"
    return quoted(content) if isinstance(content, str) else str("null" if content is None else content).lower()


@functools.cache
def _file() -> str:
    return os.path.join(directory(), "jobman.yml")


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (duration, size, instant, numbers, words, selector, scalar, document)
}
