"""What there is to tell of each transition, and what is said of it (contract, L.1 and L.2)."""

from __future__ import annotations

import pytest

from jobman.model.state import JobOutcome
from jobman.policy.notices import notices, summary
from tests.moves import PLAIN, SECOND_NS, Choice, instant, walk

RUNNING = ("claim", "admit", "reserve", "start")
FAILING = PLAIN._replace(exit_code=3, outcome=JobOutcome.FAILURE)
RETRYING = FAILING._replace(retry_ns=SECOND_NS)
ALWAYS = {"submitted_at"}
RUN = ALWAYS | {"run_started_at", "run_number", "run_id"}
ENDED = RUN | {"run_completed_at", "run_outcome"}
JOB = ALWAYS | {"completed_at", "run_count", "success_count", "failure_count", "job_outcome"}
JOB_OF_RUN = JOB | ENDED | {"started_at"}

CASES: list[tuple[str, tuple[str, ...], Choice, dict[str, set[str]]]] = [
    ("claimed", ("claim",), PLAIN, {"job_started": ALWAYS}),
    ("nobody claims", ("withdraw",), PLAIN, {"job_submission_failed": JOB | {"diagnostic_code"}}),
    ("waiting is nothing to tell", ("claim", "await_prerequisites"), PLAIN, {}),
    ("started", RUNNING, PLAIN, {"run_started": RUN}),
    (
        "success",
        (*RUNNING, "end"),
        PLAIN,
        {"run_succeeded": ENDED | {"exit_code"}, "job_succeeded": JOB_OF_RUN | {"exit_code"}},
    ),
    (
        "failure",
        (*RUNNING, "end"),
        FAILING,
        {"run_failed": ENDED | {"exit_code"}, "job_failed": JOB_OF_RUN | {"exit_code"}},
    ),
    (
        "retry",
        (*RUNNING, "end"),
        RETRYING,
        {"run_failed": ENDED | {"exit_code"}, "retry_scheduled": ENDED | {"exit_code", "next_run_at", "reason"}},
    ),
    (
        "run timeout",
        (*RUNNING, "run_timeout", "end"),
        RETRYING,
        {"run_timed_out": ENDED, "retry_scheduled": ENDED | {"next_run_at", "reason"}},
    ),
    ("cancelled", (*RUNNING, "cancel", "end"), PLAIN, {"run_cancelled": ENDED, "job_cancelled": JOB_OF_RUN}),
    ("a request to cancel is nothing to tell", (*RUNNING, "cancel"), PLAIN, {}),
    (
        "job timeout",
        (*RUNNING, "job_timeout", "end"),
        PLAIN,
        {"run_timed_out": ENDED, "job_timed_out": JOB_OF_RUN | {"diagnostic_code"}},
    ),
    ("job timeout without a run", ("claim", "time_out_idle"), PLAIN, {"job_timed_out": JOB | {"diagnostic_code"}}),
    ("aborted", ("claim", "abort"), PLAIN, {"job_aborted": JOB | {"diagnostic_code"}}),
    ("cancelled before a run", ("claim", "cancel", "finish_cancelled"), PLAIN, {"job_cancelled": JOB}),
    (
        "lost",
        (*RUNNING, "lose"),
        PLAIN,
        {
            "run_lost": ENDED | {"diagnostic_code"},
            "job_lost": JOB_OF_RUN | {"diagnostic_code"},
        },
    ),
    ("lost before a run", ("claim", "lose"), PLAIN, {"job_lost": JOB | {"diagnostic_code"}}),
]


@pytest.mark.parametrize(("moves", "choice", "told"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_told_of_a_transition(moves: tuple[str, ...], choice: Choice, told: dict[str, set[str]]) -> None:
    transition = walk(*moves, choice=choice)[-1]

    found = {notice.type.value: notice for notice in notices(transition)}

    said = {kind: summary(notice, transition.after) for kind, notice in found.items()}
    assert {kind: members.keys() for kind, members in said.items()} == told
    for kind, notice in found.items():
        event = transition.events[notice.place]
        assert notice.run_id == (event.entity_id if kind.startswith("run_") else None)


def test_the_counts_and_times_are_those_of_the_event() -> None:
    transition = walk(*RUNNING, "end", choice=FAILING)[-1]

    said = summary(next(one for one in notices(transition) if one.type == "job_failed"), transition.after)

    assert (said["run_count"], said["success_count"], said["failure_count"], said["exit_code"]) == (1, 0, 1, 3)
    assert said["started_at"] == "2027-01-15T08:00:04Z"
    assert said["completed_at"] == said["run_completed_at"] == "2027-01-15T08:00:05Z"
    assert instant(5).wall_ns == transition.after.job.completed_at_ns


def test_a_job_without_runs_counts_none() -> None:
    transition = walk("claim", "abort")[-1]

    said = summary(notices(transition)[0], transition.after)

    assert (said["run_count"], said["diagnostic_code"]) == (0, "dependency_unsatisfied")
