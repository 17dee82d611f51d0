"""macOS: not verified, so refused on import."""

from __future__ import annotations

from jobman.errors import UnsupportedPlatformError

raise UnsupportedPlatformError(platform="macOS")
