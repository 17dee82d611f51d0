"""What lies in the state directory: sizes, modes, owners, markers; and the file system below it."""

from __future__ import annotations

import errno
import os
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from jobman.logs.cleanup import CLAIMED, SUMMARY, is_log_file
from jobman.logs.layout import ACTIVE_MARKER, INDEX
from jobman.model.ids import is_id
from jobman.recovery.leftovers import names_in
from jobman.service.doctor.findings import Disk, Finding, Level, few, size_in_words
from jobman.store.safety import DATABASE
from jobman.values import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_OTHERS = 0o077
_MODE = "has mode"
_MEBIBYTE = 1 << 20
_LARGE_WAL = 64 * _MEBIBYTE
_LITTLE_SPACE = 64 * _MEBIBYTE
_VOLATILE = frozenset(("tmpfs", "ramfs"))
# Those that opening a store refuses are not here.
_SHARED = frozenset(
    (
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "fhgfs",
        "glusterfs",
        "pvfs2",
        "orangefs",
        "ocfs2",
        "gfs2",
        "virtiofs",
        "vboxsf",
    )
)


class Holdings(NamedTuple):
    """What a walk through the state directory has found.

    ``strange`` are paths with what is wrong with each, ``marked`` the runs (job, number) with an ``.active``,
    ``logged`` the jobs that have a directory of logs, ``foreign`` what lies in these and is no log, ``exposed`` paths
    of our own that let others in.
    """

    disk: Disk
    strange: tuple[str, ...]
    marked: tuple[tuple[str, int], ...]
    logged: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()


def take_stock(root: str) -> Holdings:
    """Walk through the state directory; what vanishes meanwhile, or cannot be read, counts for nothing."""
    sizes = {"store": 0, "wal": 0, "logs": 0, "backups": 0}
    strange, marked, foreign, exposed = [], [], [], []
    for path, status in _walk(root):
        relative = path[len(root) + 1 :]
        top, *rest = relative.split("/")
        wrong = _complaint(status)
        if wrong:
            strange.append(f"{relative} {wrong}")
        # Nobody opens the files of the database but SQLite; opening a store has seen to their modes.
        if wrong.startswith(_MODE) and not top.startswith(DATABASE):
            exposed.append(relative)
        kind = "store" if top.startswith(DATABASE) else top
        if kind in sizes and not S_ISDIR(status.st_mode):
            sizes[kind] += status.st_size
        if relative == "jobman.db-wal":
            sizes["wal"] = status.st_size
        if top == "logs" and len(rest) == 3 and rest[2] == ACTIVE_MARKER and is_id(rest[0]) and rest[1].isdecimal():
            marked.append((rest[0], int(rest[1])))
        elif top == "logs" and rest and is_id(rest[0]) and not _is_log(*rest[1:]):
            foreign.append(relative)
    logged = tuple(sorted(name for name in names_in(f"{root}/logs") if is_id(name)))
    disk = Disk(**sizes, free=_free(root))
    return Holdings(
        disk,
        strange=tuple(sorted(strange)),
        marked=tuple(sorted(marked)),
        logged=logged,
        foreign=tuple(sorted(foreign)),
        exposed=tuple(sorted(exposed)),
    )


def judge_place(root: str, file_system: str) -> list[Finding]:
    """Return what is to be said of the directory and of its file system."""
    topic = "state directory"
    if file_system in _SHARED or file_system.startswith("fuse."):
        text = f"{root} is on a file system that other machines may share ({file_system}), whose locks may not hold"
        return [Finding(Level.NOTE, topic, text, "keep it on a local disk: JOBMAN_STATE_DIR chooses another directory")]
    if file_system in _VOLATILE:
        text = f"{root} is in memory ({file_system}) and is gone after a reboot"
        return [Finding(Level.NOTE, topic, text, "JOBMAN_STATE_DIR chooses another directory")]
    return [Finding(Level.OK, topic, f"{root} ({file_system or 'unknown file system'})")]


def judge_files(holdings: Holdings) -> list[Finding]:
    """Return what is to be said of modes and owners, and of what is not ours."""
    findings = []
    if holdings.strange:
        advice = "jobman doctor --repair takes access from others (chmod go= FILE); only you can judge links and owners"
        findings.append(Finding(Level.PROBLEM, "files", few(holdings.strange), advice))
    if holdings.foreign:
        text = f"no logs, and they keep logs from being cleaned: {few(holdings.foreign)}"
        findings.append(Finding(Level.PROBLEM, "files", text, "move them elsewhere"))
    return findings or [Finding(Level.OK, "files", "all are yours alone")]


def make_private(path: str) -> int | None:
    """Take access to a file or directory of ours from everybody else; return its mode before, ``None`` if it had none.

    Raises:
        OSError: it is a link, is gone, is not ours alone, or the file system refuses.
    """
    # Not by name: what is changed must be what was looked at.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or (S_ISREG(status.st_mode) and status.st_nlink > 1):
            raise PermissionError(errno.EPERM, "it is not yours alone", path)
        if not status.st_mode & _OTHERS:
            return None
        os.fchmod(descriptor, S_IMODE(status.st_mode) & ~_OTHERS)
        return S_IMODE(status.st_mode)
    finally:
        os.close(descriptor)


def judge_disk(disk: Disk) -> list[Finding]:
    """Return what is to be said of space."""
    used = ((disk.store, "store"), (disk.logs, "logs"), (disk.backups, "backups"))
    text = ", ".join(f"{what} {size_in_words(size)}" for size, what in used) + f"; {size_in_words(disk.free)} free"
    findings = [Finding(Level.OK, "disk", text)]
    if disk.free < _LITTLE_SPACE:
        findings = [Finding(Level.NOTE, "disk", text, "make room: recording ends when the disk is full")]
    if disk.wal > _LARGE_WAL:
        text = f"the write-ahead log has grown to {size_in_words(disk.wal)}"
        findings.append(Finding(Level.NOTE, "disk", text, "jobman doctor --repair merges it"))
    return findings


def _is_log(run: str = "1", name: str = INDEX, *below: str) -> bool:
    """Say whether this may lie in a job's directory of logs: cleaning refuses to go on at anything else."""
    number = run.removesuffix(CLAIMED)
    ours = is_log_file(name) or name == (ACTIVE_MARKER if run == number else SUMMARY)
    return number.isdecimal() and ours and not below


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [root]
    while waiting:
        directory = waiting.pop()
        for name in names_in(directory):
            path = f"{directory}/{name}"
            try:
                status = os.lstat(path)
            except OSError:
                continue
            yield path, status
            if S_ISDIR(status.st_mode):
                waiting.append(path)


def _complaint(status: os.stat_result) -> str:
    if S_ISLNK(status.st_mode):
        return "is a link"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}"
    if S_ISREG(status.st_mode) and status.st_nlink > 1:
        return f"has {status.st_nlink} links"
    return f"{_MODE} {S_IMODE(status.st_mode):04o}" if status.st_mode & _OTHERS else ""


def _free(root: str) -> int:
    try:
        status = os.statvfs(root)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize
