"""Who gets slots, and who waits for whom (H.4, O.40 to O.42, D44; M16 to M20)."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobman.policy import admission
from jobman.policy.admission import (
    BYPASS_BOUND,
    IDLE_AFTER_NS,
    STORE_WIDE,
    Limits,
    Request,
    Ruling,
    Verdict,
    View,
    describe,
    fits,
    fitting,
    impossible_scope,
    is_idle,
    judge,
    positions,
    slot_indexes,
)

NOW_NS = 100 * IDLE_AFTER_NS
POOLS = frozenset(("gpu", "disk", "free"))
ADMIT = Verdict(Ruling.ADMIT)
IMPOSSIBLE = Verdict(Ruling.IMPOSSIBLE)


def _wait(scope: str | None = None) -> Verdict:
    return Verdict(Ruling.WAIT, scope=scope)


def _limits(**capacities: int) -> Limits:
    """Return limits; ``all_`` is the store-wide one."""
    return Limits({STORE_WIDE if scope == "all_" else scope: size for scope, size in capacities.items()}, POOLS)


def _used(**used: int) -> dict[str, int]:
    return {STORE_WIDE if scope == "all_" else scope: count for scope, count in used.items()}


def _request(place: int, pool: str | None = "gpu", slots: int = 1, bypassed: int = 0) -> Request:
    return Request(f"job-{place}", pool, slots, place, bypassed)


def _idle(request: Request, for_ns: int = IDLE_AFTER_NS) -> Request:
    return request._replace(fits_since_ns=NOW_NS - for_ns)


ME = _request(5)


class Case(NamedTuple):
    """One attempt: ``used`` of the limits, the queue without the caller, and the verdict."""

    limits: Limits
    used: dict[str, int]
    queue: tuple[Request, ...]
    verdict: Verdict
    request: Request = ME


BIG = _request(1, slots=2)
"""An older request that needs two slots."""

CASES = {
    "no limit at all": Case(_limits(), {}, (BIG,), ADMIT),
    "an empty queue and room": Case(_limits(gpu=2), _used(gpu=1, all_=1), (), ADMIT),
    "the pool is full": Case(_limits(gpu=2), _used(gpu=2, all_=2), (), _wait("gpu")),
    "the store is full": Case(_limits(gpu=2, all_=1), _used(gpu=1, all_=1), (), _wait(STORE_WIDE)),
    "both are full": Case(_limits(gpu=1, all_=1), _used(gpu=1, all_=1), (), _wait(STORE_WIDE)),
    "more is used than a lowered limit allows": Case(_limits(gpu=1), _used(gpu=3, all_=3), (), _wait("gpu")),
    "exactly enough": Case(_limits(gpu=3), _used(gpu=1, all_=1), (), ADMIT, _request(5, slots=2)),
    "one too few": Case(_limits(gpu=3), _used(gpu=2, all_=2), (), _wait("gpu"), _request(5, slots=2)),
    "never fits into the pool": Case(_limits(gpu=1), {}, (), IMPOSSIBLE, _request(5, slots=2)),
    "never fits into the store": Case(_limits(gpu=3, all_=1), {}, (), IMPOSSIBLE, _request(5, slots=2)),
    "its pool is gone": Case(_limits(), {}, (), IMPOSSIBLE, _request(5, pool="gone")),
    "a pool without a limit": Case(_limits(), {}, (), ADMIT, _request(5, pool="free", slots=9)),
    "an older one that fits": Case(
        _limits(gpu=2), {}, (_request(1),), Verdict(Ruling.WAIT, mark="job-1", retry_ns=IDLE_AFTER_NS)
    ),
    "an older one was seen to fit a second ago": Case(
        _limits(gpu=2), {}, (_idle(_request(1), 10**9),), Verdict(Ruling.WAIT, retry_ns=IDLE_AFTER_NS - 10**9)
    ),
    "an older one leaves its slots lying": Case(_limits(gpu=2), {}, (_idle(_request(1)),), ADMIT),
    "a note of an earlier boot": Case(
        _limits(gpu=2),
        {},
        (_request(1)._replace(fits_since_ns=NOW_NS + 1),),
        Verdict(Ruling.WAIT, mark="job-1", retry_ns=IDLE_AFTER_NS),
    ),
    "an idle one, then one that is not": Case(
        _limits(gpu=2),
        {},
        (_idle(_request(1)), _request(2)),
        Verdict(Ruling.WAIT, mark="job-2", retry_ns=IDLE_AFTER_NS),
    ),
    "an idle one that does not fit any more is not counted": Case(
        _limits(gpu=2), _used(gpu=1, all_=1), (_idle(BIG),), ADMIT
    ),
    "an idle one that had been passed often enough": Case(
        _limits(gpu=2), _used(gpu=1, all_=1), (_idle(BIG._replace(bypassed=BYPASS_BOUND)),), ADMIT
    ),
    "the idle one itself, with room": Case(_limits(gpu=2), {}, (), ADMIT, _idle(ME)),
    "the idle one itself, without": Case(
        _limits(gpu=1), _used(gpu=1, all_=1), (), Verdict(Ruling.WAIT, scope="gpu", returns=True), _idle(ME)
    ),
    "a younger one that fits": Case(_limits(gpu=2), {}, (_request(9),), ADMIT),
    "a younger one that was passed often": Case(
        _limits(gpu=2), _used(gpu=1, all_=1), (_request(9, slots=2, bypassed=3),), ADMIT
    ),
    "an older one that does not fit": Case(
        _limits(gpu=2), _used(gpu=1, all_=1), (BIG,), Verdict(Ruling.ADMIT, passes="job-1")
    ),
    "passed twice": Case(
        _limits(gpu=2),
        _used(gpu=1, all_=1),
        (BIG._replace(bypassed=BYPASS_BOUND - 1),),
        Verdict(Ruling.ADMIT, passes="job-1"),
    ),
    "passed three times": Case(
        _limits(gpu=2), _used(gpu=1, all_=1), (BIG._replace(bypassed=BYPASS_BOUND),), _wait("gpu")
    ),
    "only the oldest counts": Case(
        _limits(gpu=2),
        _used(gpu=1, all_=1),
        (BIG, _request(2, slots=2, bypassed=BYPASS_BOUND)),
        Verdict(Ruling.ADMIT, passes="job-1"),
    ),
    "an older one that fits, behind one that does not": Case(
        _limits(gpu=3),
        _used(gpu=1, all_=1),
        (_request(1, slots=3), _request(2)),
        Verdict(Ruling.WAIT, mark="job-2", retry_ns=IDLE_AFTER_NS),
    ),
    "equal times: the lower ID is older": Case(
        _limits(gpu=2),
        {},
        (Request("job-0", "gpu", 1, 5),),
        Verdict(Ruling.WAIT, mark="job-0", retry_ns=IDLE_AFTER_NS),
    ),
    "equal times: the higher ID is younger": Case(_limits(gpu=2), {}, (Request("job-6", "gpu", 1, 5),), ADMIT),
    "another pool and no store-wide limit": Case(_limits(gpu=2, disk=2), {}, (_request(1, "disk"),), ADMIT),
    "another pool under a store-wide limit": Case(
        _limits(gpu=2, disk=2, all_=3),
        {},
        (_request(1, "disk"),),
        Verdict(Ruling.WAIT, mark="job-1", retry_ns=IDLE_AFTER_NS),
    ),
    "no pool, and the limits are those of pools": Case(
        _limits(gpu=1), _used(gpu=1, all_=1), (_request(1),), ADMIT, _request(5, pool=None)
    ),
    "the same pool, which has no limit": Case(_limits(), {}, (_request(1, "free"),), ADMIT, _request(5, pool="free")),
    # D44, its three sentences.
    "a paused one keeps its place and does not compete": Case(
        _limits(gpu=2), {}, (_request(1)._replace(competes=False),), ADMIT
    ),
    "a paused one that was passed often enough holds nobody up": Case(
        _limits(gpu=2),
        _used(gpu=1, all_=1),
        (_request(1, slots=2, bypassed=BYPASS_BOUND)._replace(competes=False),),
        ADMIT,
    ),
    "one that lacks only its own pool is not counted": Case(
        _limits(gpu=2, disk=1, all_=3), _used(disk=1, all_=1), (_request(1, "disk"),), ADMIT
    ),
    "one that lacks only its own pool, and was passed often enough, is not waited for": Case(
        _limits(gpu=2, disk=1, all_=3), _used(disk=1, all_=1), (_request(1, "disk", bypassed=BYPASS_BOUND),), ADMIT
    ),
    "one that lacks the store too is counted": Case(
        _limits(gpu=2, disk=2, all_=3),
        _used(disk=1, gpu=1, all_=2),
        (_request(1, "disk", slots=2),),
        Verdict(Ruling.ADMIT, passes="job-1"),
    ),
    "one that lacks the store too is waited for": Case(
        _limits(gpu=2, disk=2, all_=3),
        _used(disk=1, gpu=1, all_=2),
        (_request(1, "disk", slots=2, bypassed=BYPASS_BOUND),),
        _wait(STORE_WIDE),
    ),
    "one that fits, kept waiting in its own pool, is not waited for": Case(
        _limits(gpu=2, disk=2, all_=9),
        _used(disk=1, all_=1),
        (_request(1, "disk", slots=2, bypassed=BYPASS_BOUND), _request(2, "disk")),
        ADMIT,
    ),
    "one that fits, older than who keeps its pool, is waited for": Case(
        _limits(gpu=2, disk=2, all_=9),
        _used(disk=1, all_=1),
        (_request(1, "disk"), _request(2, "disk", slots=2, bypassed=BYPASS_BOUND)),
        Verdict(Ruling.WAIT, mark="job-1", retry_ns=IDLE_AFTER_NS),
    ),
    "one that fits and may pass is waited for": Case(
        _limits(gpu=2, disk=2, all_=9),
        _used(disk=1, all_=1),
        (_request(1, "disk", slots=2), _request(2, "disk")),
        Verdict(Ruling.WAIT, mark="job-2", retry_ns=IDLE_AFTER_NS),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_attempt_is_judged(case: Case) -> None:
    view = View(case.limits, case.used, (*case.queue, case.request))
    assert judge(view, case.request, NOW_NS) == case.verdict
    assert judge(view._replace(queue=view.queue[::-1]), case.request, NOW_NS) == case.verdict, (
        "the order is the queue's"
    )
    assert judge(view._replace(queue=case.queue), case.request, NOW_NS) == case.verdict, "a newcomer has no row yet"


def test_the_oldest_is_passed_three_times_and_no_more() -> None:
    """M18, O.41."""
    head, view = BIG, View(_limits(gpu=9), _used(gpu=8, all_=8))
    verdicts = []
    for number in range(2, 7):
        view = view._replace(queue=(head,))
        verdicts.append(judge(view, _request(number), NOW_NS).ruling)
        head = head._replace(bypassed=head.bypassed + (verdicts[-1] == Ruling.ADMIT))
    assert verdicts == [Ruling.ADMIT] * 3 + [Ruling.WAIT] * 2


def test_a_place_counts_those_that_compete_before_it() -> None:
    queue = (
        _request(1),
        _request(2, "disk"),
        _request(3)._replace(competes=False),
        _request(4, pool=None),
        ME,
        _request(6),
    )
    assert positions(View(_limits(gpu=1), _used(gpu=1, all_=1), queue))[ME.job_id] == 2
    full = View(_limits(gpu=1, disk=9, all_=1), _used(gpu=1, all_=1), queue)
    assert positions(full)[ME.job_id] == 4


def test_the_places_of_a_long_queue_cost_one_walk_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """C6: a list of queued jobs asks for all of them."""
    looks: list[Request] = []

    def look(_view: View, request: Request) -> list[str]:
        looks.append(request)
        return []

    monkeypatch.setattr(admission, "lacking", look)
    found = positions(View(_limits(gpu=1), _used(), tuple(_request(place) for place in range(200))))
    assert list(found.values()) == list(range(1, 201))
    assert len(looks) <= 200


DESCRIPTIONS = {
    "#1 for pool gpu (2/2 slots busy)": View(_limits(gpu=2), _used(gpu=2, all_=2)),
    "#2 for pool gpu (1/2 slots busy)": View(_limits(gpu=2), _used(gpu=1, all_=1), (BIG,)),
    "#1 for pool gpu (1/1 slots busy)": View(_limits(gpu=1, all_=1), _used(gpu=1, all_=1)),
    "#1 for the store-wide limit (3/3 slots busy)": View(_limits(gpu=4, all_=3), _used(gpu=1, all_=3)),
    "#1 for pool gpu (0/4 slots busy)": View(_limits(gpu=4, all_=3), _used(all_=0)),
    "waiting for slots": View(_limits(), _used(gpu=7, all_=7)),
}


@pytest.mark.parametrize(("words", "view"), DESCRIPTIONS.items(), ids=DESCRIPTIONS)
def test_a_wait_is_described(words: str, view: View) -> None:
    """D36."""
    view = view._replace(queue=(*view.queue, ME))
    assert describe(view, ME, positions(view)[ME.job_id]) == words


def test_without_a_pool_the_store_is_described() -> None:
    view = View(_limits(all_=2), _used(all_=2))
    assert describe(view, _request(5, pool=None), 1) == "#1 for the store-wide limit (2/2 slots busy)"


def test_a_release_wakes_those_that_fit_in_queue_order() -> None:
    """The paused, and those that do not fit, are left alone."""
    queue = (_request(4), _request(1), _request(2, slots=2), _request(3)._replace(competes=False), _request(0, "disk"))
    view = View(_limits(gpu=3, disk=1), _used(gpu=2, disk=1, all_=3), queue)
    assert fitting(view, 9) == ["job-1", "job-4"]
    assert fitting(view, 1) == ["job-1"]


@pytest.mark.parametrize(
    ("capacity", "taken", "wanted", "indexes"),
    [(2, [], 1, (0,)), (4, [0, 2], 2, (1, 3)), (3, [2], 1, (0,)), (2, [0, 1], 1, ()), (2, [3], 1, (0,))],
)
def test_the_lowest_free_indexes_are_given(
    capacity: int, taken: list[int], wanted: int, indexes: tuple[int, ...]
) -> None:
    """D34."""
    assert slot_indexes(capacity, taken, wanted) == indexes


@pytest.mark.parametrize(
    ("limits", "request_", "scope"),
    [
        (_limits(gpu=2, all_=1), _request(1, slots=2), STORE_WIDE),
        (_limits(gpu=1), _request(1, slots=2), "gpu"),
        (_limits(gpu=2), _request(1, slots=2), None),
        (_limits(), _request(1, pool="gone"), "gone"),
        (_limits(all_=1), _request(1, pool=None), None),
    ],
)
def test_what_could_never_fit_is_told_by_its_scope(limits: Limits, request_: Request, scope: str | None) -> None:
    """O.40, M16."""
    assert impossible_scope(limits, request_) == scope


# --- Properties -----------------------------------------------------------------------------------------------------

SCOPES = ("gpu", "disk", STORE_WIDE)
_NOTES = st.none() | st.integers(NOW_NS - 2 * IDLE_AFTER_NS, NOW_NS + IDLE_AFTER_NS)


@st.composite
def views(draw: st.DrawFn) -> View:
    """Draw limits, what is used of them (sometimes more than there is), and a queue."""
    capacities = draw(st.dictionaries(st.sampled_from(SCOPES), st.integers(1, 6)))
    used = {"gpu": draw(st.integers(0, 6)), "disk": draw(st.integers(0, 6))}
    used[STORE_WIDE] = sum(used.values()) + draw(st.integers(0, 2))
    queue = draw(
        st.lists(
            st.builds(
                Request,
                job_id=st.sampled_from([f"job-{number}" for number in range(12)]),
                pool=st.sampled_from((None, "gpu", "disk")),
                slots=st.integers(1, 4),
                eligible_at_ns=st.integers(0, 4),
                bypassed=st.integers(0, BYPASS_BOUND),
                competes=st.booleans(),
                fits_since_ns=_NOTES,
            ),
            max_size=8,
            unique_by=lambda request: request.job_id,
        )
    )
    return View(Limits(capacities, POOLS), used, tuple(queue))


@given(views())
def test_nobody_is_admitted_beyond_a_limit(view: View) -> None:
    """M17."""
    for request in view.queue:
        if judge(view, request, NOW_NS).ruling != Ruling.ADMIT:
            continue
        for scope in request.scopes():
            capacity = view.limits.capacities.get(scope)
            assert capacity is None or view.used.get(scope, 0) + request.slots <= capacity


@given(views())
def test_somebody_can_go_on_if_anybody_fits(view: View) -> None:
    """No two wait for each other: the oldest that competes and fits is admitted, unless one passed often bars it."""
    ready = [one for one in view.queue if one.competes and fits(view, one)]
    oldest = min(ready, key=Request.order, default=None)
    if oldest is None or impossible_scope(view.limits, oldest) is not None:
        return
    verdict = judge(view, oldest, NOW_NS)
    barred = any(
        one.competes and one.bypassed == BYPASS_BOUND and one.order() < oldest.order() and not fits(view, one)
        for one in view.queue
    )
    assert verdict.ruling == Ruling.ADMIT or barred


@given(views())
def test_nobody_is_admitted_before_an_older_one_that_could_be(view: View) -> None:
    """O.41: in one pool, of those that are not idle."""
    for request in view.queue:
        verdict = judge(view, request, NOW_NS)
        if verdict.ruling != Ruling.ADMIT:
            continue
        for other in view.queue:
            rival = other.order() < request.order() and other.competes and not is_idle(other, NOW_NS)
            if rival and other.pool == request.pool and view.limits.capacities.keys() & set(request.scopes()):
                assert judge(view, other, NOW_NS).ruling != Ruling.ADMIT


@given(views())
def test_waiting_for_somebody_idle_ends(view: View) -> None:
    """D44: whoever waits for another to take its slots is told how long, and that is at most 5 s each."""
    for request in view.queue:
        verdict = judge(view, request, NOW_NS)
        assert (verdict.retry_ns is None) or 0 < verdict.retry_ns <= IDLE_AFTER_NS
        assert verdict.mark is None or verdict.retry_ns == IDLE_AFTER_NS


@given(st.integers(1, 20), st.sets(st.integers(0, 25)), st.integers(1, 20))
def test_indexes_are_free_distinct_and_as_low_as_can_be(capacity: int, taken: set[int], wanted: int) -> None:
    """D34."""
    given_ = slot_indexes(capacity, sorted(taken), wanted)
    free = sorted(set(range(capacity)) - taken)
    assert list(given_) == free[:wanted]
