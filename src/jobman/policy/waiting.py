"""Whether the prerequisites of a first run are met (contract, H.2; M12, M13)."""

from __future__ import annotations

from jobman.model.state import JobPhase
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jobman.model.spec import Dependency
    from jobman.model.state import JobOutcome


class DependencyState(NamedTuple):
    """One edge as read from the store: the other job now, and what was recorded of it once it had completed."""

    edge: Dependency
    name: str
    phase: JobPhase
    revision: int
    outcome: JobOutcome | None
    observed_outcome: JobOutcome | None = None
    observed_revision: int | None = None
    satisfied_at_ns: int | None = None

    def label(self) -> str:
        """Return what a person calls the other job: its name, or the start of its ID."""
        return self.name or self.edge.job_id[:8]


class Gate(NamedTuple):
    """The verdict: edges to record now, the first edge that can never be satisfied, and whether all are."""

    to_record: tuple[DependencyState, ...]
    impossible: DependencyState | None
    satisfied: bool


def evaluate(dependencies: tuple[DependencyState, ...]) -> Gate:
    """Judge all edges; an outcome that was recorded is never read again (M12)."""
    to_record = tuple(
        state for state in dependencies if state.observed_outcome is None and state.phase == JobPhase.COMPLETED
    )
    known = tuple((state, state.observed_outcome or state.outcome) for state in dependencies)
    impossible = next((state for state, outcome in known if outcome and not state.edge.accepts(outcome)), None)
    satisfied = all(outcome and state.edge.accepts(outcome) for state, outcome in known)
    return Gate(to_record, impossible, satisfied)
