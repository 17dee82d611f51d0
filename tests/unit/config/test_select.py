"""Job specs and profiles put together (contract, K.5; D8)."""

from __future__ import annotations

from typing import Any

import pytest

from jobman.config.select import select_job
from jobman.errors import UsageError

STATED: dict[str, Any] = {
    "job_specs": {
        "train": {
            "command": ["train"],
            "stop": {"grace_period": "20s", "force_after_grace": False},
            "environment": {"set": {"A": "1", "B": "1"}, "unset": ["X", "Y"], "secrets": {"S": "one"}},
            "tags": ["a", "b"],
        },
        "other": {"command": ["other"]},
    },
    "profiles": {
        "patient": {"overrides": {"stop": {"grace_period": "5m0s"}}},
        "blunt": {"overrides": {"stop": {"force_after_grace": True}}},
        "full": {
            "job_spec": "train",
            "overrides": {"environment": {"set": {"B": "2"}, "unset": [], "secrets": {"T": "two"}}, "tags": ["c"]},
        },
        "elsewhere": {"job_spec": "other"},
    },
}


def test_a_member_that_is_not_stated_keeps_what_is_below_it() -> None:
    """D8: a partial block resets nothing, in any order, at any depth."""
    for order in (("patient", "blunt"), ("blunt", "patient")):
        job = select_job(STATED, "train", order)
        assert job["stop"] == {"grace_period": "5m0s", "force_after_grace": True}
    assert select_job(STATED, "train", ("patient",))["stop"] == {"grace_period": "5m0s", "force_after_grace": False}
    assert STATED["job_specs"]["train"]["stop"]["grace_period"] == "20s"


def test_mappings_merge_by_key_and_lists_replace() -> None:
    job = select_job(STATED, "", ("full",))

    assert job["environment"] == {"set": {"A": "1", "B": "2"}, "unset": [], "secrets": {"S": "one", "T": "two"}}
    assert job["tags"] == ["c"]
    assert job["command"] == ["train"]


def test_profiles_may_stand_without_a_job_spec() -> None:
    assert select_job(STATED, "", ("patient",)) == STATED["profiles"]["patient"]["overrides"]
    assert select_job(STATED, "", ()) == {}


@pytest.mark.parametrize(
    ("job_spec", "profiles", "says"),
    [
        ("none", (), "--job-spec: unknown name 'none': expected other, train"),
        ("", ("none",), "--profile: unknown name 'none': expected blunt, elsewhere, full, patient"),
        ("", ("full", "elsewhere"), "--profile elsewhere is for job spec other, but --profile full asks for train"),
        ("train", ("elsewhere",), "--profile elsewhere is for job spec other, but --job-spec asks for train"),
    ],
)
def test_names_must_be_known_and_mean_one_job_spec(job_spec: str, profiles: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        select_job(STATED, job_spec, profiles)
    assert caught.value.exit_status == 2
