"""Flags of scheduling that are not understood: status 2, one line, nothing stored (contract, A.2, C and E.3; O.3)."""

from __future__ import annotations

import pytest

from jobman.cli import flags
from tests.support import Cli, eventually, processes_of, stock

TRUE = ("--", "true")
Values = list[tuple[str, ...]]
NO_SELECTOR: Values = [("",), (" ",)]
NO_DURATION: Values = [("",), ("5",), ("-1s",), ("1y",), ("1 s",), ("99999999999h",)]
NO_TIME: Values = [("",), ("now",), ("2027-01-31",), ("2027-01-31T08:00:00",), ("2027-02-30T08:00:00Z",), ("1e9",)]
NO_LIMIT: Values = [
    ("",),
    ("0",),
    ("-1",),
    ("1.5",),
    ("0x10",),
    ("Unlimited",),
    ("infinite",),
    ("9223372036854775808",),
]
FILE = ("--wait-file", "x")

BAD: dict[str, Values] = {
    "after-success": NO_SELECTOR,
    "after-finish": NO_SELECTOR,
    "after-failed": NO_SELECTOR,
    "after-outcome": [("",), ("x",), ("=success",), (" =success",), ("x=",), ("x=bogus",), ("x=success,",), ("x=,",)],
    "wait-until": NO_TIME,
    "wait-delay": NO_DURATION,
    "wait-file": [("",)],
    "wait-condition": [("",), ("none",)],
    "wait-mode": [("", *FILE), ("some", *FILE), ("ALL", *FILE), ("any",)],
    "wait-poll": [("0", *FILE), ("0s", *FILE), *((*words, *FILE) for words in NO_DURATION), ("1s",)],
    "wait-abort-at": [
        *((*words, *FILE) for words in NO_TIME),
        ("1969-12-31T23:59:59Z", *FILE),
        ("2099-01-01T00:00:00Z",),
    ],
    "pool": [("",), (" ",), ("a\nb",)],
    "slots": [("0",), ("",), ("-1",), ("x",), ("9223372036854775808",)],
    "max-runs": [*NO_LIMIT, ("2", "--retries", "1")],
    "success-target": NO_LIMIT,
    "failure-limit": [*NO_LIMIT, ("2", "--retries", "1"), ("unlimited", "--retries", "0")],
    "retry-timeouts": [],
    "retry-start-failures": [],
    "retry-signal": [("",), ("9",), ("SIG",), ("BOGUS",), ("SIGSIGTERM",), ("TERM,KILL",), ("_DFL",), ("_IGN",)],
    "repeat-delay": NO_DURATION,
    "retry-backoff": [("",), ("quadratic",), ("Linear",)],
    "retry-jitter": NO_DURATION,
    "retry-max-delay": NO_DURATION,
    "retry-abort-at": NO_TIME,
}


@pytest.mark.parametrize("name", [name for name, rows in BAD.items() if rows])
def test_values_that_are_no_such_values_are_refused_and_nothing_is_stored(cli: Cli, name: str) -> None:
    for word, *more in BAD[name]:
        says = cli.refuses("run", f"--{name}={word}", *more, *TRUE, status=2, says=f"--{name}")
        assert says.startswith("invalid command usage: ")
    assert cli.has_no_job()
    eventually(lambda: not processes_of(cli.state), "the supervisor that was started for it stays")


@pytest.mark.parametrize("name", ["retry-timeouts", "retry-start-failures"])
def test_a_switch_takes_no_other_word(cli: Cli, name: str) -> None:
    cli.refuses("run", f"--{name}=perhaps", *TRUE, status=2, says=f"--{name}: invalid value 'perhaps'")
    assert cli.has_no_job()


def test_the_table_has_a_row_for_every_flag_that_holds_a_job_back_or_repeats_it() -> None:
    groups = dict(flags.load("run").groups)
    concerned = {flag.name for title in ("Prerequisites", "Admission", "Delay") for flag in groups[title]}
    told_in_usage = {"retries", "success-exit-code", "retryable-exit-code", "retry-delay"}
    assert concerned | {flag.name for flag in groups["Completion"]} == BAD.keys() | told_in_usage


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("--after-success", "first", "--after-failed", "first"), 5, "success and failed"),
        (("--after-finish", "first", "--after-outcome", "first=success,failure"), 5, "finish and outcomes"),
        (("--after-success", "nobody"), 3, "nobody"),
        (("--after-success", "first", "--after-finish", "nobody"), 3, "nobody"),
        (("--after-outcome", "twin=lost"), 4, "twin"),
        (("--pool", "nowhere"), 5, "nowhere"),
    ],
)
def test_a_request_that_can_not_be_met_leaves_nothing(cli: Cli, words: tuple[str, ...], status: int, says: str) -> None:
    """O.38 to O.40: contradictions, what is missing, what is ambiguous is told before anything is stored."""
    known = {cli.finish("true", flags=("--name", name)) for name in ("first", "twin", "twin")}
    cli.refuses("run", *words, *TRUE, status=status, says=says)
    assert {job["id"] for job in cli.json("list", "--all")["jobs"]} == known


@pytest.mark.parametrize(
    ("one", "other", "predicate"),
    [
        (("--after-success", "{}"), ("--after-outcome", "{}=success"), "success"),
        (("--after-failed", "{}"), ("--after-outcome", "{}=failure"), "failed"),
        (("--after-outcome", "{}=lost,failure"), ("--after-outcome", "{}=failure,lost,lost"), "outcomes:failure,lost"),
        (("--after-outcome", "{}=timed_out"), ("--after-outcome", "{}=timed_out"), "timed_out"),
    ],
)
def test_equal_dependencies_are_one_however_they_are_spelled(
    cli: Cli, one: tuple[str, ...], other: tuple[str, ...], predicate: str
) -> None:
    """O.38."""
    (first,) = stock(cli.state, 1)
    words = [word.format(first) for word in (*one, *other)]
    second = cli.finish("true", flags=words)
    (edge,) = cli.json("show", second)["dependencies"]
    assert (edge["depends_on"], edge["predicate"]) == (first, predicate)
