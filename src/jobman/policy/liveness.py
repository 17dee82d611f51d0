"""Whether the owner of a job is provably dead (architecture, Liveness; M20)."""

from __future__ import annotations

from jobman.model.identity import Presence
from jobman.values import StrEnum


class Verdict(StrEnum):
    """What may be done about an owner."""

    LIVE = "live"
    GONE = "gone"
    UNVERIFIABLE = "unverifiable"


def judge(*, same_boot: bool, lock_taken: bool | None, presence: Presence) -> Verdict:
    """Weigh the evidence of a claimed supervisor.

    Args:
        same_boot: the supervisor was started under the running kernel.
        lock_taken: ``True`` if the recorded lock file was locked exclusively by the caller just now, ``False`` if
            somebody holds it, ``None`` if the file is missing or another one and so proves nothing.
        presence: what the process table says of the recorded identity.
    """
    if not same_boot:
        return Verdict.GONE
    if lock_taken is False:
        return Verdict.LIVE
    if presence == Presence.UNKNOWN:
        # In another PID namespace the lock alone speaks; without it, nothing does.
        return Verdict.GONE if lock_taken else Verdict.UNVERIFIABLE
    return Verdict.GONE if presence == Presence.GONE else Verdict.LIVE
