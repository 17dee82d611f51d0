"""What configuration says of concurrency: a value of its own, since every ``run`` reads it and few need the policy."""

from __future__ import annotations

from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class StatedLimits(NamedTuple):
    """What configuration says of concurrency.

    ``store_wide`` is a capacity, ``None`` for unlimited; it counts only if ``states_store_wide``. ``pools`` maps names
    to capacities, ``None`` for unlimited.
    """

    states_store_wide: bool
    store_wide: int | None
    pools: Mapping[str, int | None]
