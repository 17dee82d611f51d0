"""Looking at the wait conditions of a job, each at its own pace, without ever blocking the loop (M14, C4)."""

from __future__ import annotations

import os
import stat

from jobman.model.waits import FileKind, WaitKind
from jobman.policy.conditions import EVALUATION_ERROR, ConditionState, Evaluation, elapsed
from jobman.supervisor.environment import raw
from jobman.supervisor.probes import ProbeRun
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.model.waits import WaitCondition, Waits
    from jobman.supervisor.probes import ProbeContext

_KINDS = {
    FileKind.ANY: lambda _mode: True,
    FileKind.REGULAR: stat.S_ISREG,
    FileKind.DIRECTORY: stat.S_ISDIR,
    FileKind.SYMLINK: stat.S_ISLNK,
}


class ConditionWatch:
    """The conditions of one job from its claim until the gate opens.

    Attributes:
        states: what is known of each condition.
        unwritten: those that the store should learn of now.
    """

    def __init__(self, waits: Waits, context: ProbeContext, *, claimed_boottime_ns: int) -> None:
        self.states = tuple(
            ConditionState(place, condition.kind.value) for place, condition in enumerate(waits.conditions)
        )
        self._conditions = waits.conditions
        self._context = context
        self._clock = context.clock
        self._claimed_ns = claimed_boottime_ns
        self._written: dict[int, ConditionState] = {}
        self._due_ns = [0] * len(waits.conditions)
        self._probes: dict[int, ProbeRun] = {}

    def look(self) -> None:
        """Evaluate every condition whose time has come, and take in the probes that have ended."""
        now_ns = self._clock.monotonic_ns()
        for place, condition in enumerate(self._conditions):
            if place in self._probes:
                self._take_in(place, condition, self._probes[place].poll())
            elif now_ns >= self._due_ns[place]:
                self._evaluate(place, condition)

    def due_in_ns(self) -> int:
        """Return how long until the next look can bring something new."""
        now_ns = self._clock.monotonic_ns()
        waiting = (due for place, due in enumerate(self._due_ns) if place not in self._probes)
        return max(0, min((*waiting, *(probe.due_ns() for probe in self._probes.values()))) - now_ns)

    def descriptors(self) -> list[int]:
        """Return what running probes make readable when something happens."""
        return [descriptor for probe in self._probes.values() for descriptor in probe.descriptors()]

    def pids(self) -> list[int]:
        """Return the running probes, which are children of ours that nobody else may reap."""
        return [pid for probe in self._probes.values() for pid in probe.pids()]

    def unwritten(self) -> tuple[ConditionState, ...]:
        """Return the conditions that the store should learn of now."""
        return tuple(state for state in self.states if state.worth_writing(self._written.get(state.place)))

    def written(self, states: tuple[ConditionState, ...]) -> None:
        """Note that the store has learnt of ``states``."""
        self._written.update((state.place, state) for state in states)

    def close(self) -> None:
        """End the probes that still run: the gate is open, or the job is over."""
        for probe in self._probes.values():
            probe.abandon()
        self._probes.clear()

    def _evaluate(self, place: int, condition: WaitCondition) -> None:
        if condition.probe is not None:
            probe = ProbeRun(condition.probe, self._context)
            self._probes[place] = probe
            self._take_in(place, condition, probe.poll())
        elif condition.kind == WaitKind.FILE_EXISTS:
            self._take_in(place, condition, _look_at_file(condition))
        else:
            since_claim_ns = self._clock.boottime_ns() - self._claimed_ns
            held = elapsed(condition, wall_ns=self._clock.wall_ns(), since_claim_ns=since_claim_ns)
            self._take_in(place, condition, Evaluation(held))

    def _take_in(self, place: int, condition: WaitCondition, result: Evaluation | None) -> None:
        if result is None:
            return
        self._probes.pop(place, None)
        self._due_ns[place] = self._clock.monotonic_ns() + self._pause_ns(condition)
        states = list(self.states)
        states[place] = states[place].after(result, self._clock.wall_ns())
        self.states = tuple(states)

    def _pause_ns(self, condition: WaitCondition) -> int:
        """Return when to look again: at the time itself if that comes before the next poll."""
        poll_ns = condition.poll_interval_ns
        if condition.kind == WaitKind.DELAY:
            left_ns = self._claimed_ns + condition.delay_ns - self._clock.boottime_ns()
        elif condition.until_ns is not None:
            left_ns = condition.until_ns - self._clock.wall_ns()
        else:
            return poll_ns
        return min(poll_ns, left_ns) if left_ns > 0 else poll_ns


def _look_at_file(condition: WaitCondition) -> Evaluation:
    try:
        mode = os.lstat(raw(condition.path or "")).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return Evaluation(satisfied=False)
    except OSError:
        return Evaluation(satisfied=False, code=EVALUATION_ERROR)
    return Evaluation(_KINDS[condition.file_kind or FileKind.ANY](mode))
