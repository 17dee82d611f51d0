"""Windows and every other platform: not verified, so refused on import."""

from __future__ import annotations

import sys

from jobman.errors import UnsupportedPlatformError

raise UnsupportedPlatformError(platform="Windows" if sys.platform == "win32" else sys.platform)
