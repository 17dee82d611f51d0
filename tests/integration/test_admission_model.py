"""Random histories, and some told by hand, of many jobs that want slots (H.4, D44; O.41, M18, M19)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from jobman.policy.admission import IDLE_AFTER_NS
from tests.integration.admission_histories import Admissions
from tests.moves import PLAIN, SECOND_NS


def test_random_histories_keep_every_rule_of_admission(state: Path) -> None:
    """H.4: many hundreds of steps, each followed by a look at everything."""
    state.mkdir()

    class Here(Admissions):
        root = state

    run_state_machine_as_test(Here, settings=settings(max_examples=15, stateful_step_count=50, deadline=None))


@pytest.fixture
def history(state: Path) -> Iterator[Admissions]:
    """A history to be told by hand, in a pool of two."""
    state.mkdir()

    class Here(Admissions):
        root = state

    told = Here()
    told.begin(2, None, None, Random(0))  # noqa: S311  # no secret
    yield told
    told.teardown()


def _submit_all(history: Admissions, *sizes: int) -> list[str]:
    job_ids = [history._submit("gpu", slots) for slots in sizes]
    for job_id in job_ids:
        history._attempt(job_id)
    return job_ids


def test_a_big_one_is_passed_three_times_and_then_waited_for(history: Admissions) -> None:
    """M18, O.41."""
    first, big, *small = _submit_all(history, 1, 2)
    admitted = []
    for _ in range(5):
        small.append(history._submit("gpu", 1))
        history._attempt(small[-1])
        admitted.append(small[-1] in history.held)
        if admitted[-1]:
            history._run(small[-1], PLAIN)
    assert admitted == [True, True, True, False, False]
    history._run(first, PLAIN)
    history.everybody_tries()
    assert list(history.held) == [big]


@pytest.mark.parametrize("fate", ["hung", "dead"])
def test_a_head_that_does_not_answer_costs_five_seconds_once(history: Admissions, fate: str) -> None:
    """D44: from then on it is skipped until it tries."""
    *holders, head = _submit_all(history, 1, 1, 1)
    history.sims[head].responds = fate != "hung"
    history.sims[head].lives = fate != "dead"
    waiting = _submit_all(history, *[1] * 6)
    for job_id in holders:
        history._run(job_id, PLAIN)
    history.everybody_tries()
    assert not history.held
    history.clock.advance(IDLE_AFTER_NS - 1)
    history.everybody_tries()
    assert not history.held
    history.clock.advance(1)
    while history._waiting():
        assert history._round(finish=True), "and again it is waited for"
    assert not any(history.sims[job_id].place_ns for job_id in waiting)


def test_a_head_that_answers_again_competes_again(history: Admissions) -> None:
    """D44: skipped until it tries."""
    holder, head = _submit_all(history, 2, 2)
    history.sims[head].responds = False
    (small,) = _submit_all(history, 1)
    history._run(holder, PLAIN)
    history.everybody_tries()
    history.clock.advance(IDLE_AFTER_NS)
    history.everybody_tries()
    assert list(history.held) == [small]
    history.sims[head].responds = True
    history.everybody_tries()
    history._run(small, PLAIN)
    (late,) = _submit_all(history, 1)
    assert late not in history.held
    history.everybody_tries()
    assert list(history.held) == [head]


def test_a_paused_head_keeps_its_place_and_blocks_nobody(history: Admissions) -> None:
    """D44: it does not compete."""
    holder, head = _submit_all(history, 2, 2)
    history._move(head, "pause")
    _, younger = _submit_all(history, 1, 2)
    place_ns = history.sims[head].place_ns
    history._run(holder, PLAIN)
    history.everybody_tries()
    assert len(history.held) == 1
    assert younger not in history.held
    history._move(head, "resume")
    assert history.sims[head].place_ns == place_ns
    history.everybody_tries()
    assert younger not in history.held


def test_a_clock_that_is_set_back_lets_nobody_to_the_front(history: Admissions) -> None:
    """M19; IDs are made of that clock too."""
    holder, head = _submit_all(history, 2, 2)
    history.clock.set_wall(history.clock.wall_ns() - 3_600 * SECOND_NS)
    late = _submit_all(history, 2, 2)
    history._run(holder, PLAIN)
    for job_id in (*late[::-1], head):
        history._attempt(job_id)
    assert list(history.held) == [head]


def test_notes_of_other_scopes_survive_an_admission(history: Admissions) -> None:
    """D44: a busy pool beside a dead head must not begin its five seconds anew each time."""
    history._set("disk", 1)
    *holders, head = _submit_all(history, 1, 1, 1)
    history.sims[head].lives = False
    (waiting,) = _submit_all(history, 1)
    for job_id in holders:
        history._run(job_id, PLAIN)
    for _ in range(6):
        history._attempt(waiting)
        other = history._submit("disk", 1)
        history._attempt(other)
        history._run(other, PLAIN)
        history.clock.advance(SECOND_NS)
    history._attempt(waiting)
    assert waiting in history.held
