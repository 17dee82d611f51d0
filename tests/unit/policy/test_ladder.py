"""Ask, wait, insist, wait (I.3, D3, D33)."""

from __future__ import annotations

import pytest

from jobman.model.spec import StopPolicy
from jobman.policy.ladder import INSIST_EVERY_NS, Ladder, Rung, Step, next_step

FORCE, PATIENT = StopPolicy(1_000, force_after_grace=True), StopPolicy(1_000, force_after_grace=False)
AGAIN = 5_000 + INSIST_EVERY_NS


@pytest.mark.parametrize(
    ("ladder", "stop", "now_ns", "alive", "step"),
    [
        pytest.param(Ladder(), FORCE, 5_000, True, Step(Rung.ASK), id="ask first"),
        pytest.param(Ladder(), PATIENT, 5_000, False, Step(Rung.ASK), id="ask what is left, too"),
        pytest.param(Ladder(5_000), FORCE, 5_000, True, Step(Rung.WAIT, 1_000), id="wait for the grace"),
        pytest.param(Ladder(5_000), FORCE, 5_999, True, Step(Rung.WAIT, 1), id="wait to its end"),
        pytest.param(Ladder(5_000), PATIENT, 5_999, False, Step(Rung.WAIT, 1), id="wait without force"),
        pytest.param(Ladder(5_000), FORCE, 6_000, True, Step(Rung.INSIST), id="insist at its end"),
        pytest.param(Ladder(5_000), FORCE, 6_000, False, Step(Rung.INSIST), id="insist on what is left"),
        pytest.param(Ladder(5_000, 5_000), FORCE, 6_000, True, Step(Rung.WAIT, AGAIN - 6_000), id="wait between"),
        pytest.param(Ladder(5_000, 5_000), FORCE, AGAIN - 1, True, Step(Rung.WAIT, 1), id="almost again"),
        pytest.param(Ladder(5_000, 5_000), FORCE, AGAIN, True, Step(Rung.INSIST), id="insist again"),
        pytest.param(Ladder(5_000), PATIENT, 6_000, True, Step(Rung.WAIT), id="D3: a stubborn leader is waited for"),
        pytest.param(Ladder(5_000), PATIENT, 9**18, True, Step(Rung.WAIT), id="D3: for ever"),
        pytest.param(Ladder(5_000), PATIENT, 6_000, False, Step(Rung.LEAVE), id="D33: what is left is left"),
        pytest.param(Ladder(5_000), StopPolicy(0), 5_000, True, Step(Rung.INSIST), id="O.36: no grace"),
        pytest.param(Ladder(5_000), StopPolicy(0, False), 5_000, True, Step(Rung.WAIT), id="O.36: no grace, no force"),
    ],
)
def test_the_step_that_is_due(ladder: Ladder, stop: StopPolicy, now_ns: int, *, alive: bool, step: Step) -> None:
    assert next_step(ladder, stop, now_ns, leader_alive=alive) == step
