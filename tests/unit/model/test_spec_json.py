"""The canonical document of a specification (contract, E.1)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings

from jobman.errors import InvalidSpecError
from jobman.model.spec import (
    Backoff,
    Classification,
    Completion,
    Delay,
    Dependency,
    Environment,
    ExitCodeRange,
    JobSpec,
    Limit,
    Logging,
    StopPolicy,
)
from jobman.model.spec_json import decode, encode, to_document
from tests.strategies import job_specs

PLAIN = JobSpec("true", (), "/")
FULL = JobSpec(
    executable="sh",
    arguments=("-c", "exit 3"),
    working_directory="/tmp",
    environment=Environment((("A", "1"),), ("B",)),
    name="full",
    stop=StopPolicy(0, force_after_grace=False, drain_ns=1_500_000_000, leave_descendants=True),
    completion=Completion(Limit(5), Limit(2), Limit(None), 1_800_000_000_000_000_001),
    classification=Classification((0, 2), (ExitCodeRange(7, 9),), retry_timeout=True, retry_start_failure=True),
    failure_delay=Delay(1_000_000_000, Backoff.EXPONENTIAL, 3, 60_000_000_000, 500),
    dependencies=(Dependency("018f2b6c-7d1e-7abc-9def-0123456789ab", "outcomes:aborted,lost"),),
    tags=("t",),
    groups=("g",),
    logging=Logging(retention_ns=None),
)
LIMIT_ONE = {"value": 1, "unlimited": False}
NO_DELAY = {"base": "0s", "backoff": "constant", "exponential_base": 2, "max_delay": None, "jitter": "0s"}
PLAIN_DOCUMENT = {
    "schema_version": 2,
    "executable": "true",
    "arguments": [],
    "working_directory": "/",
    "environment": {"inheritance": "submission", "set": {}, "unset": []},
    "stop_policy": {"grace_period": "10s", "force_after_grace": True},
    "stdin_policy": "null",
    "execution_policy": {
        "completion": {"max_runs": LIMIT_ONE, "success_target": LIMIT_ONE, "failure_limit": LIMIT_ONE},
        "classification": {
            "success_exit_codes": [0],
            "retryable_exit_codes": None,
            "retryable_signals": None,
            "retryable_platform_reasons": None,
            "retry_timeout": False,
            "retry_start_failure": False,
            "retry_cancellation": False,
        },
        "failure_delay": NO_DELAY,
        "success_delay": NO_DELAY,
        "run_timeout": "0s",
        "job_timeout": "0s",
        "wait_mode": "all",
        "wait_conditions": [],
        "dependencies": [],
        "concurrency": {"slots": 1},
        "notifications": [],
        "notifier_definitions": [],
        "tags": [],
        "groups": [],
        "secret_environment": {},
        "foreground": False,
        "log_rotate_size": 0,
        "log_max_segments_per_stream": 0,
        "log_capture": "both",
        "log_retention_max_age": "720h0m0s",
        "log_retention_unlimited": False,
        "log_retention_configured": True,
    },
}

# --- Writing -------------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(job_specs())
@example(FULL)
@example(PLAIN._replace(arguments=("\udc80", "\udcff\U0001f600", "\u2028", '"\\\x1b')))
@example(PLAIN._replace(classification=Classification((), ())))
def test_any_valid_specification_survives_writing_and_reading(spec: JobSpec) -> None:
    """E.1, O.36, O.37: bytes that are not UTF-8, explicit zeros, and the difference between none and empty."""
    text = encode(spec)
    assert text.isascii()
    assert decode(text) == spec
    assert encode(decode(text)) == text


def test_the_document_of_a_plain_command_has_exactly_the_members_of_the_contract() -> None:
    """E.1, E.2: nulls kept, name omitted when empty."""
    assert json.loads(encode(PLAIN)) == PLAIN_DOCUMENT
    assert to_document(PLAIN) == PLAIN_DOCUMENT


def test_optional_members_appear_where_they_are_used() -> None:
    """E.1: name, retry deadline, limits and ranges."""
    document = json.loads(encode(FULL))
    policy = document["execution_policy"]
    assert document["name"] == "full"
    assert policy["completion"] == {
        "max_runs": {"value": 5, "unlimited": False},
        "success_target": {"value": 2, "unlimited": False},
        "failure_limit": {"unlimited": True},
        "retry_abort_at": "2027-01-15T08:00:00.000000001Z",
    }
    assert policy["classification"]["retryable_exit_codes"] == [{"First": 7, "Last": 9}]
    assert policy["failure_delay"]["jitter"] == "500ns"
    assert (policy["log_retention_unlimited"], policy["log_retention_max_age"]) == (True, "0s")


def test_members_are_sorted_and_compact() -> None:
    """E.1: the same specification is the same text."""
    assert encode(FULL) == json.dumps(json.loads(encode(FULL)), separators=(",", ":"), sort_keys=True)


def test_collections_without_an_order_are_written_sorted() -> None:
    """E.1: variables to unset, tags, groups."""
    unordered = PLAIN._replace(environment=Environment((), ("B", "A")), tags=("t", "s"), groups=("h", "g"))
    document = to_document(unordered)
    assert document["environment"]["unset"] == ["A", "B"]
    assert (document["execution_policy"]["tags"], document["execution_policy"]["groups"]) == (["s", "t"], ["g", "h"])


# --- Strict reading ------------------------------------------------------------------------------------------------

Path = tuple[str | int, ...]
DOCUMENT = to_document(FULL)
OPTIONAL = {
    ("name",),
    ("execution_policy", "completion", "retry_abort_at"),
    ("stop_policy", "drain_timeout"),
    ("stop_policy", "leave_descendants"),
}
FREE_FORM = {("environment", "set")}


def nodes(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every value of a document with the way to it."""
    yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield from nodes(member, (*path, name))
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from nodes(item, (*path, place))


OBJECTS = [path for path, value in nodes(DOCUMENT) if isinstance(value, dict) and path not in FREE_FORM]
MEMBERS = [path for path, _ in nodes(DOCUMENT) if path and isinstance(path[-1], str) and path[:-1] not in FREE_FORM]
WITH_MEMBERS = [path for path, value in nodes(DOCUMENT) if isinstance(value, dict) and value]
VALUES = [path for path, _ in nodes(DOCUMENT) if path]


def edited(path: Path, edit: Callable[[Any, Any], None]) -> str:
    """The document as text after ``edit`` of the container of ``path`` and its last step."""
    document = copy.deepcopy(DOCUMENT)
    container: Any = document
    for step in path[:-1]:
        container = container[step]
    edit(container, path[-1])
    return json.dumps(document)


def replaced(path: Path, value: object) -> str:
    return edited(path, lambda container, step: container.__setitem__(step, value))


def spell(path: Path) -> str:
    return ".".join(map(str, path)) or "document"


def refuse(text: str) -> None:
    with pytest.raises(InvalidSpecError):
        decode(text)


def test_the_document_that_the_refusals_begin_with_is_accepted() -> None:
    assert decode(json.dumps(DOCUMENT)) == FULL


@pytest.mark.parametrize("path", OBJECTS, ids=spell)
def test_an_unknown_member_is_refused_at_every_level(path: Path) -> None:
    """E.1."""
    refuse(replaced((*path, "unknown"), None))


@pytest.mark.parametrize("path", MEMBERS, ids=spell)
def test_a_missing_member_is_refused_unless_it_is_optional(path: Path) -> None:
    """E.1: missing collections, and everything else."""
    text = edited(path, lambda container, step: container.pop(step))
    if path in OPTIONAL:
        assert decode(text) != FULL
    else:
        refuse(text)


@pytest.mark.parametrize("path", WITH_MEMBERS, ids=spell)
def test_a_duplicate_key_is_refused_at_every_level(path: Path) -> None:
    """E.1: even if both values are the same."""
    marked = replaced((*path, "\u2020"), 0)
    first = next(iter(value_at(path)))
    assert marked.count('"\\u2020": 0') == 1
    refuse(marked.replace('"\\u2020": 0', f'"{first}": {json.dumps(value_at((*path, first)))}'))


def value_at(path: Path) -> Any:
    value: Any = DOCUMENT
    for step in path:
        value = value[step]
    return value


WRONG: tuple[object, ...] = (None, True, False, 0, 1.5, "x", [], ["x"], [None], {}, {"x": 1})
MAY_ALSO_BE: dict[Path, tuple[object, ...]] = {
    ("executable",): ("x",),
    ("arguments", 0): ("x",),
    ("arguments", 1): ("x",),
    ("arguments",): ([], ["x"]),
    ("name",): ("x",),
    ("environment", "set", "A"): ("x",),
    ("environment", "set"): ({},),
    ("environment", "unset"): ([], ["x"]),
    ("environment", "unset", 0): ("x",),
    ("stop_policy", "force_after_grace"): (True, False),
    ("stop_policy", "leave_descendants"): (True, False),
    ("execution_policy", "classification", "success_exit_codes"): (None, []),
    # 0 is not in the list a second time where it replaces the first.
    ("execution_policy", "classification", "success_exit_codes", 0): (0,),
    ("execution_policy", "classification", "retryable_exit_codes"): (None, []),
    ("execution_policy", "classification", "retry_timeout"): (True, False),
    ("execution_policy", "classification", "retry_start_failure"): (True, False),
    ("execution_policy", "classification", "retryable_signals"): (None, [], ["x"]),
    ("execution_policy", "classification", "retryable_platform_reasons"): (None,),
    ("execution_policy", "classification", "retry_cancellation"): (False,),
    ("execution_policy", "completion", "max_runs", "unlimited"): (False,),
    ("execution_policy", "completion", "success_target", "unlimited"): (False,),
    ("execution_policy", "completion", "failure_limit", "unlimited"): (True,),
    ("execution_policy", "failure_delay", "max_delay"): (None,),
    ("execution_policy", "success_delay", "max_delay"): (None,),
    ("execution_policy", "dependencies"): ([],),
    ("execution_policy", "wait_conditions"): ([],),
    ("execution_policy", "notifications"): ([],),
    ("execution_policy", "notifier_definitions"): ([],),
    ("execution_policy", "secret_environment"): ({},),
    ("execution_policy", "foreground"): (False,),
    ("execution_policy", "tags"): ([], ["x"]),
    ("execution_policy", "tags", 0): ("x",),
    ("execution_policy", "groups"): ([], ["x"]),
    ("execution_policy", "groups", 0): ("x",),
    ("execution_policy", "log_rotate_size"): (0,),
    ("execution_policy", "log_max_segments_per_stream"): (0,),
    ("execution_policy", "log_retention_unlimited"): (True, False),
    ("execution_policy", "log_retention_configured"): (True,),
}


def allows(path: Path, value: object) -> bool:
    return any(type(value) is type(good) and value == good for good in MAY_ALSO_BE.get(path, ()))


@pytest.mark.parametrize("path", VALUES, ids=spell)
def test_a_value_of_another_type_is_refused_everywhere(path: Path) -> None:
    """E.1: a boolean is no integer, a number no text, null only where the contract has it."""
    for value in WRONG:
        if allows(path, value):
            decode(replaced(path, value))
        else:
            refuse(replaced(path, value))


INTEGERS = [path for path, value in nodes(DOCUMENT) if type(value) is int]


@pytest.mark.parametrize("path", INTEGERS, ids=spell)
@pytest.mark.parametrize("kind", [bool, float, str])
def test_only_an_integer_is_an_integer(path: Path, kind: type) -> None:
    """E.1: not even a boolean, a float or text of the same value."""
    refuse(replaced(path, kind(value_at(path))))


TEXTS = {
    "nothing": "",
    "no document": "nonsense",
    "null": "null",
    "a list": "[]",
    "trailing data": json.dumps(DOCUMENT) + "{}",
    "trailing text": json.dumps(DOCUMENT) + " x",
    "cut short": json.dumps(DOCUMENT)[:-1],
    "nested beyond reason": "[" * 100_000,
    "a number of a million digits": replaced(("schema_version",), 2).replace(": 2", ": " + "2" * 1_000_000, 1),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_that_is_no_document_is_refused_with_the_same_error(text: str) -> None:
    """E.1: trailing data and broken text alike."""
    refuse(text)


CONTENTS: list[tuple[Path, object]] = [
    (("schema_version",), 1),
    (("stdin_policy",), "inherit"),
    (("environment", "inheritance"), "none"),
    (("stop_policy", "grace_period"), "10"),
    (("stop_policy", "grace_period"), "-1s"),
    (("working_directory",), "tmp"),
    (("execution_policy", "run_timeout"), "soon"),
    (("execution_policy", "failure_delay", "backoff"), "quadratic"),
    (("execution_policy", "log_capture"), "some"),
    (("execution_policy", "log_retention_max_age"), "1s"),
    (("execution_policy", "completion", "max_runs"), {"unlimited": True, "value": 1}),
    (("execution_policy", "completion", "max_runs"), {"unlimited": False, "value": 0}),
    (("execution_policy", "completion", "retry_abort_at"), "tomorrow"),
    (("execution_policy", "classification", "success_exit_codes", 0), "0"),
    (("execution_policy", "dependencies", 0, "predicate"), "perhaps"),
    (("execution_policy", "concurrency", "slots"), 0),
    (("execution_policy", "wait_mode"), "some"),
    (("execution_policy", "foreground"), True),
    (("execution_policy", "stdin_path"), "/a"),
    (("execution_policy", "stdin_path"), None),
    (("stdin_policy",), "file"),
]


@pytest.mark.parametrize(("path", "value"), CONTENTS, ids=[f"{spell(path)}: {value}" for path, value in CONTENTS])
def test_a_value_that_means_nothing_here_is_refused(path: Path, value: object) -> None:
    """E.1, E.3: validated like a new specification; what is not offered is refused rather than ignored."""
    refuse(replaced(path, value))
