"""Which processes belong to a run, and how they are signalled, killed and reaped.

While the supervisor lives it adopts whatever its target leaves behind, so the tree is the leader's process group and
all descendants of the supervisor, less what is not the run's: helpers, leftovers of earlier runs, and jobs submitted
from inside the run, which their initial environment gives away. A dead supervisor's run is found by group and
environment.
"""

from __future__ import annotations

import os

from jobman import signals
from jobman.process._linux import (
    boot_id,
    boot_time_ns,
    children,
    entry,
    identity_of,
    initial_environment,
    pid_namespace,
    signal_process,
    table,
)
from jobman.process.exits import Usage, reap
from jobman.process.senders import was_sender
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from jobman.model.identity import ProcessIdentity
    from jobman.process._linux import Entry

_SUPERVISOR_MARK = b"\0JOBMAN_SUPERVISOR="
_EVENT_MARK = b"\0JOBMAN_EVENT_ID="
_RUN_MARK = b"\0JOBMAN_RUN_ID="
_FREEZE_ROUNDS = 50
# The time of boot is known to a second, and a process starts in the second in which its run was reserved.
_BOOT_TIME_SLACK_NS = 2_000_000_000


class Member(NamedTuple):
    """A living process of a run; ``state`` is the letter of ``ps`` (``T`` is stopped, ``D`` cannot be killed now)."""

    identity: ProcessIdentity
    name: str
    state: str
    pgid: int


class RunTree(NamedTuple):
    """What a supervisor knows of the run whose tree it asks about.

    ``ignored`` is what the supervisor had adopted before it forked the leader (``adopted``). ``adopts`` is what
    ``become_subreaper`` returned.
    """

    supervisor_pid: int
    leader_pid: int
    run_id: str
    ignored: frozenset[ProcessIdentity] = frozenset()
    adopts: bool = True


# --- Of a living supervisor ----------------------------------------------------------------------------------------


def members(tree: RunTree, *, helpers: Collection[int] = ()) -> tuple[Member, ...]:
    """The living processes of the run, the leader included, by PID; ask before the leader is reaped.

    Args:
        tree: The run.
        helpers: PIDs of the supervisor's own unreaped children that are not the target: probes, deliveries.

    Raises:
        OSError: The process table cannot be read.
    """
    entries = table()
    # The table took milliseconds to read. A chain whose every link forks and exits was missed by that every time, but
    # its present link is a child of ours: the youngest child comes last.
    for pid in reversed(children(tree.supervisor_pid) if tree.adopts else ()):
        fresh = None if pid in entries else entry(pid)
        if fresh is not None:
            entries[pid] = fresh
    return _members_among(entries, tree, helpers)


def has_members(tree: RunTree, *, helpers: Collection[int] = ()) -> bool:
    """Whether a process of the run lives; cheap, and certain if the supervisor adopts and has one thread.

    Raises:
        OSError: The process table cannot be read.
    """
    if not tree.adopts:
        return bool(members(tree, helpers=helpers))
    # Every member lives below a child of ours that is a member too, so the children alone decide. One that ended after
    # they were listed has handed its own to us by then: look until nobody was added.
    seen = {*helpers}
    while fresh := [pid for pid in children(tree.supervisor_pid) if pid not in seen]:
        if any(_is_member_child(pid, tree) for pid in reversed(fresh)):
            return True
        seen.update(fresh)
    return False


def _is_member_child(pid: int, tree: RunTree) -> bool:
    found = entry(pid)
    if found is None or found.dead or identity_of(found) in tree.ignored:
        return False
    return pid == tree.leader_pid or not _is_foreign(found, tree.run_id)


def adopted(supervisor_pid: int, *, helpers: Collection[int] = ()) -> frozenset[ProcessIdentity]:
    """The children of the supervisor that are no helpers: what it adopted, if no leader was forked yet.

    Raises:
        OSError: The process table cannot be read.
    """
    found = (entry(pid) for pid in children(supervisor_pid) if pid not in helpers)
    return frozenset(identity_of(child) for child in found if child is not None)


def reap_adopted(tree: RunTree, *, helpers: Collection[int] = ()) -> Usage:
    """Reap every child of the supervisor that has ended, one by one, except the leader and the helpers.

    Returns:
        What those used that belong to the run or to jobs submitted from inside it; senders of notifications are ours.
    """
    usage = Usage()
    ignored = {identity.pid for identity in tree.ignored}
    for pid in children(tree.supervisor_pid):
        if pid == tree.leader_pid or pid in helpers:
            continue
        used = reap(pid)
        if used is not None and not was_sender(pid) and pid not in ignored:
            usage = usage.plus(used)
    return usage


def _members_among(entries: Mapping[int, Entry], tree: RunTree, helpers: Collection[int]) -> tuple[Member, ...]:
    offspring = _offspring(entries)
    ours = _descendants((tree.supervisor_pid,), offspring) - {tree.supervisor_pid}
    ours |= {found.pid for found in entries.values() if found.pgid == tree.leader_pid}
    roots = {*helpers, *_present(tree.ignored, entries)}
    ours -= _descendants(roots, offspring)
    # The leader is exempt: until its exec its environment is the supervisor's.
    roots = {pid for pid in ours if pid != tree.leader_pid and _is_foreign(entries[pid], tree.run_id)}
    return _as_members(ours - _descendants(roots, offspring), entries)


# --- Of a dead supervisor ------------------------------------------------------------------------------------------


def survivors(
    leader: ProcessIdentity | None, *, run_id: str, reserved_after_ns: int, caller_pid: int, supervisor_pid: int
) -> tuple[Member, ...] | None:
    """The living processes of a run whose supervisor is dead, by PID; None if that cannot be known from here.

    Args:
        leader: The recorded target, None if none was.
        run_id: The run.
        reserved_after_ns: When the run was reserved (Unix nanoseconds); counts only where no leader was recorded.
        caller_pid: Who asks; neither it nor its ancestors are named.
        supervisor_pid: The dead supervisor, whose session the leader's group belongs to.

    Raises:
        OSError: The process table cannot be read.
    """
    if leader is not None and leader.boot_id != boot_id():
        return ()
    if leader is not None and leader.pid_namespace != pid_namespace():
        return None
    entries = table()
    floor = _ticks(reserved_after_ns) if leader is None else int(leader.creation_id)
    recent = {found.pid: found for found in entries.values() if found.start >= floor and not found.dead}
    environments = {pid: _environment(pid) for pid in recent}
    ours = {pid for pid, text in environments.items() if _run_of(text) == run_id.encode()}
    if leader is not None:
        ours |= _group(leader, supervisor_pid, entries) & recent.keys()
    foreign = {pid for pid, text in environments.items() if _marks_foreign(text, run_id)}
    ours -= _descendants(foreign, _offspring(entries))
    return _as_members(ours - _ancestry(caller_pid, entries), entries)


def _group(leader: ProcessIdentity, session: int, entries: Mapping[int, Entry]) -> set[int]:
    """The group of a leader that may be reaped: its number may meanwhile be another's, in another session."""
    holder = entries.get(leader.pid)
    if holder is not None and str(holder.start) != leader.creation_id:
        return set()
    return {found.pid for found in entries.values() if found.pgid == leader.pid and found.session == session}


def _ticks(wall_ns: int) -> int:
    since_boot = wall_ns - boot_time_ns() - _BOOT_TIME_SLACK_NS
    return since_boot * os.sysconf("SC_CLK_TCK") // 1_000_000_000


# --- Signals -------------------------------------------------------------------------------------------------------


def signal_member(member: Member, signo: int) -> bool:
    """Send ``signo`` to exactly this process; whether it was sent. A stale identity is never signalled."""
    return signal_process(member.identity, signo)


def kill_all(list_members: Callable[[], Iterable[Member]]) -> int:
    """One forced pass: stop whatever ``list_members`` finds until it finds nothing new, then kill all of it.

    Killing at once would race a tree that forks as fast as it is killed; a stopped process forks no more. Repeat until
    nobody is left; what remains cannot be killed.

    Returns:
        How many processes were sent SIGKILL.
    """
    stopped: dict[ProcessIdentity, Member] = {}
    for _ in range(_FREEZE_ROUNDS):
        fresh = [member for member in list_members() if member.identity not in stopped]
        if not fresh:
            break
        for member in fresh:
            signal_member(member, signals.SIGSTOP)
            stopped[member.identity] = member
    return sum(signal_member(member, signals.SIGKILL) for member in stopped.values())


# --- Reading the table ---------------------------------------------------------------------------------------------


def _offspring(entries: Mapping[int, Entry]) -> dict[int, list[int]]:
    offspring: dict[int, list[int]] = {}
    for found in entries.values():
        offspring.setdefault(found.ppid, []).append(found.pid)
    return offspring


def _descendants(roots: Iterable[int], offspring: Mapping[int, list[int]]) -> set[int]:
    """``roots`` and everything below them."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in seen:  # a walk of the table may show a loop that never was
            seen.add(pid)
            waiting.extend(offspring.get(pid, ()))
    return seen


def _ancestry(pid: int, entries: Mapping[int, Entry]) -> set[int]:
    """``pid`` and everything above it."""
    seen: set[int] = set()
    while pid in entries and pid not in seen:
        seen.add(pid)
        pid = entries[pid].ppid
    return seen


def _present(identities: Iterable[ProcessIdentity], entries: Mapping[int, Entry]) -> set[int]:
    found = ((identity, entries.get(identity.pid)) for identity in identities)
    return {holder.pid for identity, holder in found if holder is not None and identity_of(holder) == identity}


def _as_members(pids: Iterable[int], entries: Mapping[int, Entry]) -> tuple[Member, ...]:
    found = (entries[pid] for pid in sorted(pids) if pid in entries)
    return tuple(Member(identity_of(one), one.name, one.state, one.pgid) for one in found if not one.dead)


def _is_foreign(found: Entry, run_id: str) -> bool:
    return not found.dead and _marks_foreign(_environment(found.pid), run_id)


def _environment(pid: int) -> bytes:
    """The initial environment with a NUL before every entry; empty if it cannot be read."""
    return b"\0" + (initial_environment(pid) or b"")


def _marks_foreign(environment: bytes, run_id: str) -> bool:
    if _SUPERVISOR_MARK in environment:
        return True
    run = _run_of(environment)
    # The command of a notifier names no run; a job may well be given the event that it deals with.
    return _EVENT_MARK in environment if run is None else run != run_id.encode()


def _run_of(environment: bytes) -> bytes | None:
    _, found, rest = environment.partition(_RUN_MARK)
    return rest.partition(b"\0")[0] if found else None
