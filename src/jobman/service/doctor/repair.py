"""What ``doctor --repair`` does: only what is proved to be safe, and each deed is told."""

from __future__ import annotations

import os

from jobman import recovery
from jobman.errors import JobmanError, StoreBusyError
from jobman.recovery.leftovers import abandoned_files, abandoned_markers, close_marker
from jobman.service.doctor.files import make_private
from jobman.service.doctor.findings import Finding, Level
from jobman.service.notify import Leftovers
from jobman.store.check import merge_wal
from jobman.store.jobs import has_open_deliveries
from jobman.values import TYPE_CHECKING, NamedTuple, counted

if TYPE_CHECKING:
    from jobman.clock import Clock
    from jobman.service.doctor.files import Holdings
    from jobman.store.connection import Store


class Repairs(NamedTuple):
    """What was done, as findings and in numbers."""

    findings: tuple[Finding, ...]
    reconciled: int = 0
    wal_merged: bool = False
    notified: bool = False


def repair(store: Store, holdings: Holdings, clock: Clock) -> Repairs:
    """Complete jobs without an owner, remove files and markers of nobody, close files to others, merge the log."""
    if store.read_only:
        text = f"nothing: the state directory {store.obstacle}"
        return Repairs((Finding(Level.PROBLEM, "repair", text, "make it possible to write to it"),))
    # Before the owners: completing them removes what they left without a word of its own.
    reconciled = recovery.reconcile_all(store, clock)
    findings = []
    if reconciled:
        findings.append(_done("supervisors", f"{counted(reconciled, 'job')} without an owner settled"))
    findings += _remove_files(store)
    findings += _remove_markers(store, holdings)
    findings += _close_to_others(store.root, holdings)
    merged, told = _merge(store)
    left = _send_notifications(store, clock)
    return Repairs((*findings, told, *left), reconciled, merged, bool(left))


def _send_notifications(store: Store, clock: Clock) -> list[Finding]:
    """Start a sender for what is left; nothing waits for it, here as elsewhere."""
    if not has_open_deliveries(store):
        return []
    Leftovers(store, clock).send()
    return [_done("notifications", "those that were left are being sent")]


def _remove_files(store: Store) -> list[Finding]:
    findings = []
    for job_id, names in abandoned_files(store).items():
        removed = []
        for name in names:
            try:
                os.unlink(f"{store.root}/{name}")
            except FileNotFoundError:
                continue
            except OSError as error:
                findings.append(_refused(name, error))
            else:
                removed.append(name)
        if removed:
            findings.append(_done("leftovers", f"removed {', '.join(removed)}", job_id))
    return findings


def _remove_markers(store: Store, holdings: Holdings) -> list[Finding]:
    findings = []
    for job_id, number in abandoned_markers(store, holdings.marked):
        name = f"logs/{job_id}/{number}/.active"
        try:
            worth = close_marker(store.root, job_id, number)
        except (JobmanError, OSError) as error:
            findings.append(_refused(name, error))
        else:
            findings.append(_done("leftovers", f"removed {name}; the log is {worth}", job_id))
    return findings


def _close_to_others(root: str, holdings: Holdings) -> list[Finding]:
    """Give files and directories of ours the mode that readers insist on; sorted, a directory before what it holds."""
    findings = []
    for name in holdings.exposed:
        try:
            before = make_private(f"{root}/{name}")
        except FileNotFoundError:
            continue
        except OSError as error:
            findings.append(_refused(name, error, "made private"))
        else:
            if before is not None:
                text = f"took access to {name} from others, which had mode {before:04o}: they may have read it"
                findings.append(_done("files", text))
    return findings


def _merge(store: Store) -> tuple[bool, Finding]:
    try:
        merged = merge_wal(store)
    except StoreBusyError:
        merged = False
    if merged:
        return True, _done("database", "the write-ahead log is merged")
    text = "the write-ahead log could not be merged: somebody is reading or writing"
    return False, Finding(Level.PROBLEM, "database", text, "try again when less is going on")


def _done(topic: str, text: str, job_id: str = "") -> Finding:
    return Finding(Level.REPAIRED, topic, text, job_id=job_id)


def _refused(name: str, error: Exception, deed: str = "removed") -> Finding:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return Finding(Level.PROBLEM, "leftovers", f"{name} cannot be {deed}: {reason}", "see to it by hand")
