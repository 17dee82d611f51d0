"""What a specification may hold (contract, E.2 to E.4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from jobman.errors import InvalidSpecError
from jobman.model.scalars import INT64_MAX
from jobman.model.secrets import is_environment_name
from jobman.model.spec import (
    Classification,
    Completion,
    Delay,
    Dependency,
    Environment,
    ExitCodeRange,
    JobSpec,
    Limit,
    LogCapture,
    Logging,
    Predicate,
    StdinPolicy,
    StopPolicy,
    Timeouts,
)
from jobman.model.spec_rules import validate
from jobman.model.state import JobOutcome
from tests.strategies import job_specs

PLAIN = JobSpec("true", (), "/")
JOB_ID = "018f2b6c-7d1e-7abc-9def-0123456789ab"
OTHER_ID = "018f2b6c-7d1e-7abc-9def-0123456789ac"


def test_a_plain_command_gets_the_defaults_of_the_contract() -> None:
    """E.2."""
    one = Limit(1)
    assert validate(PLAIN) == PLAIN
    assert PLAIN.completion == Completion(one, one, one, None)
    assert PLAIN.classification == Classification((0,), None, retry_timeout=False, retry_start_failure=False)
    assert PLAIN.failure_delay == PLAIN.success_delay == Delay()
    assert (PLAIN.failure_delay.backoff, PLAIN.failure_delay.exponential_base) == ("constant", 2)
    assert (PLAIN.stop.grace_ns, PLAIN.stop.force_after_grace) == (10 * 10**9, True)
    assert (PLAIN.stdin, PLAIN.slots, PLAIN.timeouts) == (StdinPolicy.NULL, 1, Timeouts(0, 0))
    assert PLAIN.logging == Logging(LogCapture.BOTH, 0, 0, 720 * 3_600 * 10**9)


@settings(max_examples=60, deadline=None)
@given(job_specs())
def test_validation_changes_nothing(spec: JobSpec) -> None:
    assert validate(spec) is spec


def environment(*assignments: tuple[str, str], removals: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"environment": Environment(assignments, removals)}


def classification(codes: tuple[int, ...] | None, *ranges: tuple[int, int]) -> dict[str, Any]:
    return {"classification": Classification(codes, tuple(ExitCodeRange(*pair) for pair in ranges))}


def dependencies(*edges: tuple[str, str]) -> dict[str, Any]:
    return {"dependencies": tuple(Dependency(*edge) for edge in edges)}


REFUSED = {
    "empty command": {"executable": ""},
    "NUL in the command": {"executable": "a\0b"},
    "NUL in an argument": {"arguments": ("ok", "a\0b")},
    "NUL in the directory": {"working_directory": "/a\0b"},
    "surrogate that stands for no byte, in an argument": {"arguments": ("\ud83d",)},
    "surrogate that stands for no byte, in the environment": environment(("A", "\udc7f")),
    "relative directory": {"working_directory": "a"},
    "empty directory": {"working_directory": ""},
    "directory with a final slash": {"working_directory": "/a/"},
    "directory with a double slash": {"working_directory": "//a"},
    "directory with a dot": {"working_directory": "/a/./b"},
    "directory with two dots": {"working_directory": "/a/.."},
    "variable name that begins with a digit": environment(("1A", "")),
    "variable name that is not ASCII": environment(("\u00c4", "")),
    "empty variable name": environment(("", "")),
    "variable name to remove": environment(removals=("A-B",)),
    "NUL in a variable": environment(("A", "a\0b")),
    "variable set and removed": environment(("A", ""), removals=("A",)),
    "variable set twice": environment(("A", "1"), ("A", "2")),
    "variable removed twice": environment(removals=("A", "A")),
    "blank name": {"name": "  "},
    "name with a control character": {"name": "a\x1bb"},
    "name with a C1 control character": {"name": "a\x85b"},
    "name that is not UTF-8": {"name": "a\udcff"},
    "empty tag": {"tags": ("",)},
    "tag with outer blanks": {"tags": (" a",)},
    "tag with a control character": {"tags": ("a\tb",)},
    "tag twice": {"tags": ("a", "a")},
    "group twice": {"groups": ("a", "a")},
    "group with outer blanks": {"groups": ("a ",)},
    "negative grace": {"stop": StopPolicy(-1)},
    "grace beyond 64 bits": {"stop": StopPolicy(INT64_MAX + 1)},
    "negative run timeout": {"timeouts": Timeouts(run_ns=-1)},
    "negative job timeout": {"timeouts": Timeouts(job_ns=-1)},
    "negative delay": {"failure_delay": Delay(base_ns=-1)},
    "negative jitter": {"success_delay": Delay(jitter_ns=-1)},
    "negative cap": {"failure_delay": Delay(max_delay_ns=-1)},
    "exponential base 0": {"success_delay": Delay(exponential_base=0)},
    "run limit 0": {"completion": Completion(max_runs=Limit(0))},
    "success target 0": {"completion": Completion(success_target=Limit(0))},
    "negative failure limit": {"completion": Completion(failure_limit=Limit(-1))},
    "negative success code": classification((-1,)),
    "success code twice": classification((1, 1)),
    "retryable range backwards": classification(None, (3, 2)),
    "negative retryable code": classification(None, (-1, 2)),
    "retryable ranges out of order": classification(None, (5, 6), (1, 2)),
    "retryable ranges that overlap": classification(None, (1, 3), (3, 4)),
    "code both success and retryable": classification((2,), (1, 3)),
    "dependency that is no ID": dependencies(("build", Predicate.SUCCESS)),
    "unknown predicate": dependencies((JOB_ID, "failure")),
    "dependency twice": dependencies((JOB_ID, Predicate.SUCCESS), (JOB_ID, Predicate.SUCCESS)),
    "contradictory dependencies": dependencies((JOB_ID, Predicate.SUCCESS), (JOB_ID, Predicate.FAILED)),
    "outcomes out of order": dependencies((JOB_ID, "outcomes:success,failure")),
    "outcome twice": dependencies((JOB_ID, "outcomes:failure,failure")),
    "unknown outcome": dependencies((JOB_ID, "outcomes:failure,failed")),
    "no outcome": dependencies((JOB_ID, "outcomes:")),
    "slots 0": {"slots": 0},
    "slots beyond 64 bits": {"slots": INT64_MAX + 1},
    "negative segment size": {"logging": Logging(segment_bytes=-1)},
    "negative segments": {"logging": Logging(segments=-1)},
    "too many segments": {"logging": Logging(segments=65_536)},
    "input file without a path": {"stdin": StdinPolicy.FILE},
    "path for an input that is no file": {"stdin": StdinPolicy.LIVE, "stdin_path": "/a"},
    "relative input file": {"stdin": StdinPolicy.FILE, "stdin_path": "a"},
    "input file with two dots": {"stdin": StdinPolicy.FILE, "stdin_path": "/a/../b"},
    "NUL in the input file": {"stdin": StdinPolicy.FILE, "stdin_path": "/a\0b"},
    "surrogate that stands for no byte, in the input file": {"stdin": StdinPolicy.FILE, "stdin_path": "/\ud83d"},
    "negative retention": {"logging": Logging(retention_ns=-1)},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_what_section_e3_forbids_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpecError):
        validate(PLAIN._replace(**changes))


ACCEPTED = {
    "bytes that are not UTF-8": {"executable": "\udcff", "arguments": ("\udc80", ""), "working_directory": "/\udcfe"},
    "variable that is not UTF-8": environment(("_A9", "\udc80")),
    "hidden directory and three dots": {"working_directory": "/.a/..."},
    "name with inner blanks": {"name": " a  b "},
    "no grace, no force": {"stop": StopPolicy(0, force_after_grace=False)},
    "no success code": classification(()),
    "adjacent retryable ranges": classification((0,), (1, 2), (3, 3)),
    "input file that is not UTF-8": {"stdin": StdinPolicy.FILE, "stdin_path": "/\udcff"},
    "nothing retryable": {"classification": Classification(retryable_codes=())},
    "two dependencies": dependencies((JOB_ID, "outcomes:aborted,lost"), (OTHER_ID, Predicate.FINISH)),
    "limits of 64 bits": {"slots": INT64_MAX, "timeouts": Timeouts(INT64_MAX, INT64_MAX)},
    "unlimited runs and retention": {
        "completion": Completion(max_runs=Limit(None)),
        "logging": Logging(segments=65_535, retention_ns=None),
    },
}


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_what_section_e3_does_not_forbid_is_accepted(changes: dict[str, Any]) -> None:
    spec = PLAIN._replace(**changes)
    assert validate(spec) == spec


@pytest.mark.parametrize(("name", "good"), [("A", True), ("_", True), ("a1", True), ("1a", False), ("", False)])
def test_environment_names(name: str, good: bool) -> None:  # noqa: FBT001
    """E.3."""
    assert is_environment_name(name) == good


ACCEPTING = {
    "success": {"success"},
    "finish": {outcome.value for outcome in JobOutcome},
    "failed": {"failure"},
    "timed_out": {"timed_out"},
    "cancelled": {"cancelled"},
    "aborted": {"aborted"},
    "lost": {"lost"},
    "submission_failed": {"submission_failed"},
    "outcomes:failure,timed_out": {"failure", "timed_out"},
}


@pytest.mark.parametrize("predicate", ACCEPTING)
def test_a_predicate_accepts_exactly_its_outcomes(predicate: str) -> None:
    """E.4: `failed` is the outcome `failure` alone."""
    edge = Dependency(JOB_ID, predicate)
    assert {outcome.value for outcome in JobOutcome if edge.accepts(outcome)} == ACCEPTING[predicate]


def test_every_predicate_has_a_row() -> None:
    assert set(Predicate) <= set(ACCEPTING)


@pytest.mark.parametrize(
    ("limit", "number", "reached"),
    [(Limit(2), 1, False), (Limit(2), 2, True), (Limit(2), 3, True), (Limit(None), 10**9, False)],
)
def test_a_limit_is_reached_by_its_own_number(limit: Limit, number: int, reached: bool) -> None:  # noqa: FBT001
    assert limit.reached_by(number) == reached
