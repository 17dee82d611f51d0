"""The operating system behind one contract, one file per platform, chosen once.

``spawn``, ``liveness`` and ``wake`` are imported as modules by those who start up; everything else is a name of
``jobman.process._api``, which loads ``typing`` and ``signal``. Importing this package on a platform that was never
verified raises ``UnsupportedPlatformError``.
"""

from __future__ import annotations

import sys

if sys.platform == "darwin":
    import jobman.process._macos
elif sys.platform != "linux":
    import jobman.process._windows  # noqa: F401  # imported to be refused
