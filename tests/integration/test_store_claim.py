"""The claim that a supervisor commits is the one that the model describes (M3, G.3, G.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobman.errors import ClaimError, TransitionError
from jobman.model.transitions import submission
from jobman.model.transitions._change import Now
from jobman.store import claim as claiming
from jobman.store.claim import Claimant, claim_job
from jobman.store.commit import commit
from jobman.store.connection import Store
from jobman.store.jobs import load_snapshot
from tests.moves import EPOCH_NS, EXAMPLE_JOB_ID, PLAIN, Choice, derived_id, instant, submitted, walk
from tests.stores import Dump, await_line, commit_all, dump, fast_store, fresh_id, outputs, start_python, tell
from tests.strategies import choices

OWNER_ID = derived_id(EXAMPLE_JOB_ID, "supervisor", 1)
DEADLINE_NS = EPOCH_NS + submission.CLAIM_WINDOW_NS


@pytest.fixture
def store(state: Path) -> Iterator[Store]:
    opened = fast_store(state)
    yield opened
    opened.close()


def _claimant(choice: Choice = PLAIN) -> Claimant:
    return Claimant(OWNER_ID, (*choice.identity,), (*choice.lock,))


def _claim(store: Store, at_ns: int, credential_hash: bytes = PLAIN.credential_hash, choice: Choice = PLAIN) -> None:
    claim_job(store, EXAMPLE_JOB_ID, claimant=_claimant(choice), credential_hash=credential_hash, wall_ns=at_ns)


def _by_the_model(store: Store, at_ns: int, credential_hash: bytes, choice: Choice) -> None:
    claimant = submission.Claimant(OWNER_ID, choice.identity, choice.lock, credential_hash)
    commit(store, submission.claim(load_snapshot(store, EXAMPLE_JOB_ID), claimant, Now(at_ns, 0)))


def _without_event_ids(found: Dump) -> Dump:
    return found | {"state_events": [(row[0], *row[2:]) for row in found["state_events"]]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    at_ns=st.sampled_from((EPOCH_NS, DEADLINE_NS - 1, DEADLINE_NS, EPOCH_NS - 5)) | st.integers(0, 2 * DEADLINE_NS),
    credential_hash=st.just(PLAIN.credential_hash) | st.binary(min_size=32, max_size=32),
    choice=choices("identity", "lock"),
)
def test_both_claims_leave_the_same_rows(store: Store, at_ns: int, credential_hash: bytes, choice: Choice) -> None:
    """Every table, whatever the time and the credential; refused by one means refused by the other."""
    commit_all(store, walk())
    claimed = _tried(store, lambda: _claim(store, at_ns, credential_hash, choice))
    expected = _tried(store, lambda: _by_the_model(store, at_ns, credential_hash, choice))
    assert claimed == expected
    with store.write():
        store.execute("DELETE FROM jobs")


def _tried(store: Store, write: Callable[[], None]) -> Dump | None:
    """Return what ``write`` makes of the store, without its doing so; ``None`` if it refuses."""
    store.execute("BEGIN IMMEDIATE")
    try:
        write()
        return _without_event_ids(dump(store))
    except (ClaimError, TransitionError):
        return None
    finally:
        store.execute("ROLLBACK")


def test_the_lease_is_as_long_as_the_model_says() -> None:
    assert claiming.LEASE_NS == submission.LEASE_NS


def test_a_claim_before_the_submission_by_the_clock_is_dated_at_the_submission(store: Store) -> None:
    """F.3: the wall clock was set back between the two."""
    commit_all(store, walk())
    _claim(store, EPOCH_NS - 5)
    assert load_snapshot(store, EXAMPLE_JOB_ID).job.claimed_at_ns == EPOCH_NS


@pytest.mark.parametrize(
    ("moves", "attempt", "detail"),
    [
        pytest.param((), (EPOCH_NS, b"\x18" * 32), "credential", id="wrong credential"),
        pytest.param((), (EPOCH_NS, b"\x17" * 31), "credential", id="short credential"),
        pytest.param((), (EPOCH_NS, b"\x17" * 33), "credential", id="long credential"),
        pytest.param((), (EPOCH_NS, b""), "credential", id="no credential"),
        pytest.param((), (DEADLINE_NS, PLAIN.credential_hash), "expired", id="at the deadline"),
        pytest.param((), (DEADLINE_NS + 1, PLAIN.credential_hash), "expired", id="late"),
        pytest.param(("claim",), (instant(2).wall_ns, PLAIN.credential_hash), "not on offer", id="second"),
        pytest.param(("withdraw",), (instant(2).wall_ns, PLAIN.credential_hash), "not on offer", id="withdrawn"),
        pytest.param(("claim", "abort"), (instant(3).wall_ns, PLAIN.credential_hash), "not on offer", id="completed"),
    ],
)
def test_a_claim_that_is_not_granted_changes_nothing(
    store: Store, moves: tuple[str, ...], attempt: tuple[int, bytes], detail: str
) -> None:
    """G.7."""
    commit_all(store, walk(*moves))
    before = dump(store)
    with pytest.raises(ClaimError, match=detail) as caught:
        _claim(store, *attempt)
    assert dump(store) == before
    assert caught.value.exit_status == 5
    assert EXAMPLE_JOB_ID in str(caught.value)


def test_an_unknown_job_cannot_be_claimed(store: Store) -> None:
    before = dump(store)
    with pytest.raises(ClaimError, match="not on offer"):
        _claim(store, EPOCH_NS)
    assert dump(store) == before


def test_only_the_claimed_job_changes(store: Store) -> None:
    other_id = fresh_id()
    commit_all(store, walk())
    commit_all(store, [submitted(other_id)])
    before = load_snapshot(store, other_id)
    _claim(store, EPOCH_NS)
    assert load_snapshot(store, other_id) == before


_CLAIMER = """
import sys
from jobman.errors import ClaimError
from jobman.store.claim import Claimant, claim_job
from jobman.store.connection import open_store
root, job_id, owner_id = sys.argv[1:]
store = open_store(root)
claimant = Claimant(owner_id, (7, "1", "2", "3"), (4, 5))
print("ready", flush=True)
sys.stdin.readline()
try:
    claim_job(store, job_id, claimant=claimant, credential_hash=b"\\x17" * 32, wall_ns=1_800_000_000_000_000_000)
    print(owner_id)
except ClaimError:
    print("lost")
"""


def test_of_several_claimants_exactly_one_becomes_the_owner(store: Store, state: Path) -> None:
    """O.43, O.55."""
    commit_all(store, walk())
    racers = [start_python(state, _CLAIMER, str(state), EXAMPLE_JOB_ID, fresh_id()) for _ in range(4)]
    for racer in racers:
        await_line(racer)
    for racer in racers:
        tell(racer)
    winners = [line.strip() for line in outputs(racers) if line != "lost\n"]
    assert winners == [load_snapshot(store, EXAMPLE_JOB_ID).job.supervisor_id]
