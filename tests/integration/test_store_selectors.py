"""From what a person types to one job: every rule of section B (O.68)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.errors import AmbiguousSelectorError, JobNotFoundError
from jobman.model.ids import is_id
from jobman.store.connection import Store
from jobman.store.selectors import resolve
from tests.moves import instant, perform, submitted
from tests.stores import commit_all, fast_store

FIRST = "0199abcd-0000-7000-8000-000000000001"
TWIN = "0199abcd-0000-7000-8000-000000000002"
OTHER = "0199abce-1111-7fff-bfff-ffffffffffff"
NAMES = {
    FIRST: "train",
    TWIN: "train",
    OTHER: "évaluer les données",
    "0199abd0-0000-7000-8000-000000000000": "0199abcd",  # shadowed by the prefix of FIRST and TWIN
    "0199abd1-0000-7000-8000-000000000000": "deadbeef",  # like a prefix, but of nothing
    "0199abd2-0000-7000-8000-000000000000": OTHER,  # shadowed by an ID
    "0199abd3-0000-7000-8000-000000000000": "abcdef7",
    "0199abd4-0000-7000-8000-000000000000": "a*b?[c]%_",
    "0199abd5-0000-7000-8000-000000000000": "",
    "0199abd6-0000-7000-8000-000000000000": "Train",
    "0199abd7-0000-7000-8000-000000000000": "0199ABCE",
}
DONE = "0199abd8-0000-7000-8000-000000000000"


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    for job_id, name in NAMES.items():
        commit_all(opened, [submitted(job_id, name)])
    history = [submitted(DONE, "done")]
    perform(history, "withdraw", instant(1))
    commit_all(opened, history)
    yield opened
    opened.close()


def _id_named(name: str) -> str:
    (job_id,) = [one for one, other in NAMES.items() if other == name]
    return job_id


@pytest.mark.parametrize(
    ("selector", "job_id"),
    [
        pytest.param(FIRST, FIRST, id="a full ID"),
        pytest.param(OTHER, OTHER, id="a full ID before a name that looks the same"),
        pytest.param(FIRST[:35] + "2", TWIN, id="a full ID with a twin"),
        pytest.param(OTHER[:8], OTHER, id="eight digits"),
        pytest.param(OTHER[:9], OTHER, id="a dash at the end"),
        pytest.param(OTHER[:13], OTHER, id="thirteen characters"),
        pytest.param(OTHER[:14], OTHER, id="two dashes"),
        pytest.param(OTHER[:35], OTHER, id="all but one"),
        pytest.param(FIRST[:8] + "-0000-7000-8000-000000000001", FIRST, id="spelled out"),
        pytest.param("évaluer les données", OTHER, id="a name with spaces"),
        pytest.param("deadbeef", _id_named("deadbeef"), id="a name like a prefix of nothing"),
        pytest.param("abcdef7", _id_named("abcdef7"), id="seven hexadecimal digits are a name"),
        pytest.param("a*b?[c]%_", _id_named("a*b?[c]%_"), id="pattern characters mean themselves"),
        pytest.param("Train", _id_named("Train"), id="names are case-sensitive"),
        pytest.param("0199ABCE", _id_named("0199ABCE"), id="upper case is never an ID"),
        pytest.param("done", DONE, id="a completed job by name"),
        pytest.param(DONE[:8], DONE, id="a completed job by prefix"),
    ],
)
def test_one_job_is_found(store: Store, selector: str, job_id: str) -> None:
    assert resolve(store, selector) == job_id


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param("", id="nothing"),
        pytest.param(" ", id="a blank"),
        pytest.param(OTHER[:7], id="seven digits of an ID"),
        pytest.param(OTHER.upper(), id="an ID in upper case"),
        pytest.param("0199ABCD", id="a prefix in upper case"),
        pytest.param(OTHER + "f", id="more than an ID"),
        pytest.param(OTHER[:8] + OTHER[9:14], id="a missing dash"),
        pytest.param(OTHER[:8] + "--", id="a dash too many"),
        pytest.param("0199abcf", id="a prefix of nothing"),
        pytest.param("trai", id="the beginning of a name"),
        pytest.param("TRAIN", id="a name in upper case"),
        pytest.param("train ", id="a name and a blank"),
        pytest.param("tr*", id="a pattern"),
        pytest.param("%", id="a wildcard"),
        pytest.param("0199abc?", id="a pattern of eight"),
        pytest.param("٠١٩٩abce", id="digits of another script"),  # noqa: RUF001  # that is the point
        pytest.param("' OR 1=1 --", id="a statement"),
        pytest.param("x" * 100_000, id="far too long"),
    ],
)
def test_nothing_is_found(store: Store, selector: str) -> None:
    with pytest.raises(JobNotFoundError) as caught:
        resolve(store, selector)
    assert caught.value.exit_status == 3


def test_bytes_that_are_not_utf_8_are_shown_in_ascii(store: Store) -> None:
    with pytest.raises(JobNotFoundError) as caught:
        resolve(store, "tr\udcffain")
    assert "'tr\\xffain'" in str(caught.value)  # A.16: the byte, as it is written everywhere
    assert str(caught.value).isascii()


@pytest.mark.parametrize(
    ("selector", "candidates"),
    [
        pytest.param("train", f"{FIRST}, {TWIN}", id="a name that two have"),
        pytest.param("0199abcd", f"{FIRST}, {TWIN}", id="a prefix, although one has that name"),
        pytest.param("0199abcd-", f"{FIRST}, {TWIN}", id="a prefix that ends with a dash"),
        pytest.param(FIRST[:35], f"{FIRST}, {TWIN}", id="a long prefix"),
    ],
)
def test_several_are_refused_by_name(store: Store, selector: str, candidates: str) -> None:
    with pytest.raises(AmbiguousSelectorError) as caught:
        resolve(store, selector)
    assert caught.value.exit_status == 4
    assert f"({candidates})" in str(caught.value)


def test_of_very_many_the_first_three_are_named(store: Store) -> None:
    for number in range(3, 9):
        commit_all(store, [submitted(FIRST[:-1] + str(number), "train")])
    for selector in ("train", FIRST[:8]):
        with pytest.raises(AmbiguousSelectorError, match="…") as caught:
            resolve(store, selector)
        assert str(caught.value).count("0199abcd-0000") == 3


def _naive(selector: str, jobs: dict[str, str]) -> set[str]:
    """Return every job that section B lets a selector mean."""
    if is_id(selector) and selector in jobs:
        return {selector}
    dashes = all((char == "-") == (place in (8, 13, 18, 23)) for place, char in enumerate(selector))
    if 8 <= len(selector) <= 36 and dashes and set(selector) <= set("0123456789abcdef-"):
        matches = {job_id for job_id in jobs if job_id.startswith(selector)}
        if matches:
            return matches
    return {job_id for job_id, name in jobs.items() if name == selector and name}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    selector=st.builds(
        lambda job_id, length, tail: job_id[:length] + tail,
        st.sampled_from((*NAMES, *NAMES.values(), DONE)),
        st.integers(0, 40),
        st.sampled_from(("", "", "-", "g", "f", "F", "0", "*")),
    )
)
def test_any_selector_means_what_the_contract_says(store: Store, selector: str) -> None:
    expected = _naive(selector, NAMES | {DONE: "done"})
    try:
        found = {resolve(store, selector)}
    except JobNotFoundError:
        found = set()
    except AmbiguousSelectorError as error:
        assert len(expected) > 1
        found = expected if all(one in str(error) for one in sorted(expected)[:3]) else set()
    assert found == expected
