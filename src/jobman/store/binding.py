"""Loads ``apsw``, for all of this package, without what it does not need. See ADR 0016.

The binding asks for ``collections.abc``, whose other name ``_collections_abc`` every interpreter has loaded; to find it
by this one, Python executes the package ``collections`` first, which is 1.5 ms of every command, as much again before
a supervisor's claim, and 0.4 MB of each supervisor.
"""

from __future__ import annotations

import _collections_abc
import sys

__all__ = ["apsw"]

_NAMES = ("collections", "collections.abc")

if "collections" not in sys.modules:
    sys.modules.update(dict.fromkeys(_NAMES, _collections_abc))
    try:
        import apsw
    except (AttributeError, ImportError):
        pass  # it wants more of the package than that, which is there below; or it is not installed
    finally:
        for name in _NAMES:
            del sys.modules[name]

import apsw  # noqa: E402  # after the attempt above, and nothing happens if that has loaded it
