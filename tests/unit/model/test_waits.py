"""Which wait conditions are well formed, and that they survive the canonical document (contract, E.1 and E.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobman.errors import InvalidSpecError
from jobman.model.spec import JobSpec
from jobman.model.spec_json import decode, encode, to_document
from jobman.model.spec_rules import validate
from jobman.model.waits import FileKind, Probe, WaitCondition, WaitKind, WaitMode, Waits, condition_problem

PROBE = Probe("test", ("-e", "x"))
GOOD = {
    "until": WaitCondition(WaitKind.UNTIL, until_ns=0),
    "delay": WaitCondition(WaitKind.DELAY),
    "path": WaitCondition(WaitKind.FILE_EXISTS, path="/x", file_kind=FileKind.SYMLINK, abort_at_ns=0),
    "probe": WaitCondition(WaitKind.PROBE, probe=PROBE, poll_interval_ns=1),
    "probe elsewhere": WaitCondition(WaitKind.PROBE, probe=PROBE._replace(working_directory="/", timeout_ns=1)),
}
BAD = {
    "poll of zero": GOOD["delay"]._replace(poll_interval_ns=0),
    "negative poll": GOOD["delay"]._replace(poll_interval_ns=-1),
    "negative delay": GOOD["delay"]._replace(delay_ns=-1),
    "aborted before 1970": GOOD["delay"]._replace(abort_at_ns=-1),
    "a time without one": WaitCondition(WaitKind.UNTIL),
    "a delay with a time": GOOD["delay"]._replace(until_ns=1),
    "a delay with a path": GOOD["delay"]._replace(path="/x"),
    "a path without its kind": GOOD["path"]._replace(file_kind=None),
    "no path": GOOD["path"]._replace(path=None),
    "empty path": GOOD["path"]._replace(path=""),
    "NUL in a path": GOOD["path"]._replace(path="/x\0"),
    "a path with a probe": GOOD["path"]._replace(probe=PROBE),
    "no probe": GOOD["probe"]._replace(probe=None),
    "no command": GOOD["probe"]._replace(probe=PROBE._replace(executable="")),
    "NUL in an argument": GOOD["probe"]._replace(probe=PROBE._replace(arguments=("\0",))),
    "NUL in a value": GOOD["probe"]._replace(probe=PROBE._replace(assignments=(("A", "\0"),))),
    "relative directory": GOOD["probe"]._replace(probe=PROBE._replace(working_directory="here")),
    "timeout of zero": GOOD["probe"]._replace(probe=PROBE._replace(timeout_ns=0)),
    "no output at all": GOOD["probe"]._replace(probe=PROBE._replace(output_limit=0)),
}


def spec(*conditions: WaitCondition, mode: WaitMode = WaitMode.ALL) -> JobSpec:
    """A job that waits."""
    return JobSpec("true", (), "/", waits=Waits(mode, conditions))


@pytest.mark.parametrize("what", GOOD)
def test_what_is_well_formed_is_accepted(what: str) -> None:
    assert condition_problem(GOOD[what]) is None
    assert decode(encode(spec(GOOD[what]))) == spec(GOOD[what])


@pytest.mark.parametrize("what", BAD)
def test_what_section_e3_forbids_is_refused_in_any_place(what: str) -> None:
    assert condition_problem(BAD[what])
    with pytest.raises(InvalidSpecError):
        validate(spec(GOOD["delay"], BAD[what]))


def test_the_document_is_that_of_the_contract() -> None:
    policy = to_document(spec(*GOOD.values(), mode=WaitMode.ANY))["execution_policy"]
    assert policy["wait_mode"] == "any"
    until, delay, path, probe, _ = policy["wait_conditions"]
    assert until == {"kind": "until", "until": "1970-01-01T00:00:00Z", "delay": "0s", "poll_interval": "250ms"}
    assert delay == {"kind": "delay", "delay": "0s", "poll_interval": "250ms"}
    assert path == delay | {
        "kind": "file_exists",
        "path": "/x",
        "file_kind": "symlink",
        "abort_at": "1970-01-01T00:00:00Z",
    }
    assert probe["probe"] == {
        "executable": "test",
        "arguments": ["-e", "x"],
        "working_directory": "",
        "environment": {},
        "unset_environment": [],
        "secret_environment": {},
        "timeout": "30s",
        "output_limit": 65536,
        "fatal_on_error": False,
    }


MEMBERS: list[tuple[str, Any]] = [
    ("kind", "file"),
    ("kind", None),
    ("delay", 0),
    ("delay", "-1s"),
    ("poll_interval", "0s"),
    ("until", "1970-01-01T00:00:00Z"),
    ("abort_at", 0),
    ("file_kind", "any"),
    ("probe", {}),
    ("probe", None),
    ("other", 1),
]


@pytest.mark.parametrize(("name", "value"), MEMBERS)
def test_a_stored_condition_that_is_none_is_refused(name: str, value: object) -> None:
    text = encode(spec(GOOD["delay"]))
    condition = '{"delay":"0s","kind":"delay","poll_interval":"250ms"}'
    assert condition in text
    changed = json.loads(condition) | {name: value}
    with pytest.raises(InvalidSpecError):
        decode(text.replace(condition, json.dumps(changed)))
