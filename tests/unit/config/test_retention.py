"""What configuration says of retention (contract, K.4), as cleaning understands it."""

from __future__ import annotations

from jobman.config.load import Configured
from jobman.config.retention import retention_of
from jobman.model.scalars import DAY, HOUR
from jobman.policy.retention import Retention


def test_without_a_configuration_logs_are_kept_for_thirty_days() -> None:
    assert retention_of(Configured({})) == Retention(None, 30 * DAY, None, None, None, None)


def test_what_is_stated_goes_over_the_defaults_key_by_key() -> None:
    stated = {"completed_metadata_max_age": "2h0m0s", "max_jobs": 0, "max_runs_per_job": "unlimited"}
    sizes = {"max_log_bytes_per_job": 4096, "max_total_log_bytes": 1 << 40}
    found = retention_of(Configured({"retention": stated | sizes}))
    assert found == Retention(2 * HOUR, 30 * DAY, 0, None, 4096, 1 << 40)


def test_an_age_may_be_unlimited() -> None:
    assert retention_of(Configured({"retention": {"completed_log_max_age": "unlimited"}})).log_age_ns is None
