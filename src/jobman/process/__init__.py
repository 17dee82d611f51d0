"""The operating system behind one contract, one file per platform, chosen once.

The names of ``jobman.process._api`` are imported from here, and loaded when the first is asked for. ``spawn``,
``liveness``, ``wake`` and ``endpoint`` are imported as modules: start-up paths need them without the rest.
Importing this package on a platform that was never verified raises ``UnsupportedPlatformError``.
"""

from __future__ import annotations

import sys

if sys.platform == "darwin":
    import jobman.process._macos
elif sys.platform != "linux":
    import jobman.process._windows  # noqa: F401  # imported to be refused

_MODULES = frozenset(
    ("endpoint", "exits", "launch", "liveness", "lookup", "own", "senders", "session", "spawn", "tree", "wake")
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jobman.process._api import *  # noqa: F403  # the same names, for checkers
else:

    def __getattr__(name: str) -> object:
        """Load the contract; afterwards its names are plain attributes of the package."""
        if name.startswith("_") or name in _MODULES:
            raise AttributeError(name)  # a module is then imported as such
        from jobman.process import _api  # lazy: see above

        if name not in _api.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals().update({public: getattr(_api, public) for public in _api.__all__})
        return globals()[name]
