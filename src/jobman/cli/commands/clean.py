"""``jobman clean``."""

from __future__ import annotations

from jobman.cli.commands._backend import clock, store_of
from jobman.cli.output import out
from jobman.cli.render import cleaning
from jobman.errors import UsageError
from jobman.service import maintain
from jobman.service.query import find, reconcile_active
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from jobman.cli.parser import Parsed
    from jobman.clock import Clock
    from jobman.service.maintain import Scope
    from jobman.store.connection import Store


def run(parsed: Parsed) -> int:
    """Say what is, or would be, removed."""
    applied = _is_applied(parsed)
    store, now = store_of(parsed), clock()
    scope = _scope(parsed, store, now, applied=applied)
    totals = (maintain.clean if applied else maintain.preview)(store, scope, now)
    if parsed.value("json"):
        from jobman import documents

        out(documents.envelope(documents.cleaning(totals, applied=applied)))
    else:
        out(cleaning(totals, applied=applied, forced=parsed.value("force")))
    return 0


def _is_applied(parsed: Parsed) -> bool:
    force, dry_run = parsed.value("force"), parsed.value("dry-run")
    if not force and not dry_run:
        raise UsageError(detail="clean: --dry-run=false needs --force")
    if parsed.value("all") and parsed.operand("JOB") is not None:
        raise UsageError(detail="clean: --all and a JOB exclude each other")
    return bool(force and not (parsed.given("dry-run") and dry_run))


def _scope(parsed: Parsed, store: Store, now: Clock, *, applied: bool) -> Scope:
    selector = parsed.operand("JOB")
    age_ns = parsed.value("older-than") if parsed.given("older-than") else None
    if selector is not None:
        return maintain.Scope(find(store, selector, now), age_ns or 0)
    if parsed.value("all") or age_ns is not None:
        reconcile_active(store, now)
        return maintain.Scope(age_ns=age_ns or 0, with_jobs=age_ns is None)
    scope = _by_policy(parsed, store, now, applied=applied)
    reconcile_active(store, now)
    return scope


def _by_policy(parsed: Parsed, store: Store, now: Clock, *, applied: bool) -> Scope:
    """Return what the configuration does not keep; its limits are put in force on the way (H.4, D9)."""
    from jobman.config.load import load, stated_limits  # only this way of cleaning needs a configuration
    from jobman.config.retention import retention_of
    from jobman.store.limits import apply_stated

    configured = load(parsed.value("config"), store.root, now)
    if applied:
        apply_stated(store, stated_limits(configured))
    return maintain.Scope(retention=retention_of(configured))
