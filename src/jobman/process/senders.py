"""Starting the process that sends notifications: at most four per store, each in a place of its own (architecture).

A place is a file in ``run/`` and the lock on it. Who starts a sender takes the lock and hands it over as the sender's
standard input, so that there is no moment in which two could be started for one place. Nobody waits for a sender.
"""

from __future__ import annotations

import fcntl
import os
import sys

import jobman
from jobman.private import open_file
from jobman.process.spawn import ALL_SIGNALS, package_roots, submitter_environment, without_run

TYPE_CHECKING = False  # typing costs 8 ms of start-up; checkers know this name
if TYPE_CHECKING:
    from collections.abc import Iterable

PLACES = 4
FIRST = (0,)
ANY = tuple(range(PLACES))
OTHERS = ANY[1:]
_MARK = b"JOBMAN_SUPERVISOR"
_started: set[int] = set()


class Started:
    """A sender that we have started: a child of ours, and the place that was free for it."""

    __slots__ = ("pid", "place")

    def __init__(self, pid: int, place: int) -> None:
        self.pid = pid
        self.place = place

    def lives(self) -> bool:
        """Say whether it has not ended yet."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None
        except ChildProcessError:
            return False


def take_place(root: str, places: Iterable[int]) -> tuple[int, int] | None:
    """Lock the first free one of ``places``; return it and the descriptor that holds it, ``None`` if none is free.

    Raises:
        OSError: the directory cannot be used.
    """
    for place in places:
        descriptor = open_file(f"{root}/run/deliver-{place}.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        else:
            return place, descriptor
    return None


def start_sender(root: str, places: Iterable[int] = FIRST) -> Started | None:
    """Start a sender in the first free one of ``places``; ``None`` if all are occupied.

    Whoever occupies a place looks at the store once more after having left it, so what was committed before this call
    is seen either way. The process is a child of ours in a session of its own, and goes on when we end.

    Raises:
        OSError: the system refuses another process, or the directory cannot be used.
    """
    taken = take_place(root, places)
    if taken is None:
        return None
    place, descriptor = taken
    try:
        pid = _spawn(sender_command(str(place)), sender_environment(root), descriptor)
    finally:
        os.close(descriptor)
    _started.add(pid)
    return Started(pid, place)


def was_sender(pid: int) -> bool:
    """Say whether a child that has just been reaped was a sender of ours, and forget it."""
    if pid not in _started:
        return False
    _started.discard(pid)
    return True


def sender_command(mode: str) -> tuple[str, ...]:
    """Return the words that execute a sender: a fresh, isolated interpreter with our roots.

    Raises:
        OSError: the path of the interpreter is not known.
    """
    if not sys.executable:
        raise FileNotFoundError("the path of the Python interpreter is not known")
    stub = os.path.join(os.path.dirname(jobman.__file__), "delivery", "__main__.py")
    return (sys.executable, "-I", "-S", stub, mode, *package_roots())


def sender_environment(root: str) -> dict[bytes, bytes]:
    """Return the environment of a sender: ours without what names a run, so that it belongs to the tree of none.

    The mark, the ID of the job whose supervisor starts it if one does, also says whose variables these are.
    """
    environment = without_run(submitter_environment())
    environment.setdefault(_MARK, b"client")
    environment[b"JOBMAN_STATE_DIR"] = os.fsencode(root)
    return environment


def _spawn(argv: tuple[str, ...], environment: dict[bytes, bytes], lock: int) -> int:
    # Above 2 already: the standard descriptors of every process of ours are open.
    actions = [
        (os.POSIX_SPAWN_DUP2, lock, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    return os.posix_spawn(
        argv[0], argv, environment, file_actions=actions, setsid=True, setsigmask=(), setsigdef=ALL_SIGNALS
    )
