"""Linux: what only the C library can be asked for, or the kernel through it."""

from __future__ import annotations

import os

from jobman.errors import UnsupportedPlatformError
from jobman.process._linux import once, own_identity, own_status
from jobman.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_LIBRARY_SIGNALS = (32, 33)
_RT_SIGACTION = {"x86_64": 13, "aarch64": 134, "riscv64": 134}
_DEFAULT_ACTION = bytes(32)
"""A ``struct sigaction`` of the kernel; it begins with the handler, and zero is SIG_DFL."""
_SIGNAL_SET_SIZE = 8


def become_subreaper() -> bool:
    """Adopt orphaned descendants from now on; False where the system refuses.

    Loads ``_ctypes`` (1 ms), so call it before the first launch, not before the claim.
    """
    try:
        return _c_function("prctl")(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (ImportError, OSError, AttributeError, MemoryError):
        return False


def release_memory() -> None:
    """Give the memory back to the system that the C library holds free; without effect where it cannot."""
    try:
        _c_function("malloc_trim")(0)
    except (ImportError, OSError, AttributeError):
        return


@once
def default_library_signals() -> None:
    """Give the two signals that the C library keeps for itself their default action back, if they are ignored.

    ``posix_spawn`` of glibc starts every process with them ignored, an exec passes that on, and no function of the
    library touches them: a target would show them as ignored for ever.
    """
    number = _RT_SIGACTION.get(os.uname().machine)
    if number is None:
        return
    try:
        ignored = int(own_status(b"SigIgn"), 16)
        syscall = _c_function("syscall")  # loaded by become_subreaper already
        for signo in _LIBRARY_SIGNALS:
            if ignored >> (signo - 1) & 1:
                syscall(number, signo, _DEFAULT_ACTION, None, _SIGNAL_SET_SIZE)
    except (ImportError, OSError, AttributeError, MemoryError, ValueError):
        return


def prepare_launches() -> None:
    """Find out what every launch has to know, so that the first one does not: a job may have waited for its moment."""
    default_library_signals()
    try:
        own_identity()
    except (OSError, UnsupportedPlatformError):
        pass  # the launch meets it again, and says so


def _c_function(name: str) -> Callable[..., int]:
    """A function of the C library that takes numbers and addresses, and returns a number.

    The C module behind ``ctypes`` is enough for that: the package makes types of everything that C has, 1 ms and 0.4 MB
    of each supervisor. It serves where the module, which nobody documents, is another.

    Raises:
        AttributeError, ImportError, OSError: There is no such function, or no way to call it.
    """
    try:
        from _ctypes import call_function, dlopen, dlsym

        this_process: Any = None
        address = dlsym(dlopen(this_process, 0), name)
    except ImportError:
        import ctypes

        function: Callable[..., int] = getattr(ctypes.CDLL(None), name)
        return function
    return lambda *arguments: call_function(address, arguments)
