"""What configuration says of retention (contract, K.4): only a policy cleaning reads it."""

from __future__ import annotations

from jobman.model.scalars import parse_duration
from jobman.policy.retention import Retention
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.config.load import Configured

_AGES = {"completed_metadata_max_age": "metadata_age_ns", "completed_log_max_age": "log_age_ns"}
_NUMBERS = ("max_jobs", "max_runs_per_job", "max_log_bytes_per_job", "max_total_log_bytes")


def retention_of(configured: Configured) -> Retention:
    """Return what is stated, over the defaults."""
    stated = configured.stated.get("retention", {})
    ages = {_AGES[key]: _age_ns(stated[key]) for key in _AGES if key in stated}
    numbers = {key: _number(stated[key]) for key in _NUMBERS if key in stated}
    return Retention()._replace(**ages, **numbers)


def _age_ns(age: str) -> int | None:
    return None if age == "unlimited" else parse_duration(age)


def _number(limit: int | str) -> int | None:
    return limit if isinstance(limit, int) else None
