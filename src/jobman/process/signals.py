"""What ``signal`` offers, without its price: the C module behind it.

The package wraps the same functions and numbers in classes of ``enum``, which costs 3 ms and 0.8 MB with all that it
loads, in every supervisor. Numbers are plain integers here, and so is what the functions return.
"""

from __future__ import annotations

__all__ = [
    "SIGCHLD",
    "SIGCONT",
    "SIGHUP",
    "SIGINT",
    "SIGKILL",
    "SIGSTOP",
    "SIGTERM",
    "SIG_BLOCK",
    "SIG_DFL",
    "SIG_IGN",
    "SIG_SETMASK",
    "pidfd_send_signal",
    "pthread_sigmask",
    "set_wakeup_fd",
    "signal",
    "valid_signals",
]

TYPE_CHECKING = False  # checkers, for which there is no description of the C module, are shown the original
if TYPE_CHECKING:
    from signal import (
        SIG_BLOCK,
        SIG_DFL,
        SIG_IGN,
        SIG_SETMASK,
        SIGCHLD,
        SIGCONT,
        SIGHUP,
        SIGINT,
        SIGKILL,
        SIGSTOP,
        SIGTERM,
        pidfd_send_signal,
        pthread_sigmask,
        set_wakeup_fd,
        signal,
        valid_signals,
    )
else:
    from _signal import (
        SIG_BLOCK,
        SIG_DFL,
        SIG_IGN,
        SIG_SETMASK,
        SIGCHLD,
        SIGCONT,
        SIGHUP,
        SIGINT,
        SIGKILL,
        SIGSTOP,
        SIGTERM,
        pidfd_send_signal,
        pthread_sigmask,
        set_wakeup_fd,
        signal,
        valid_signals,
    )
