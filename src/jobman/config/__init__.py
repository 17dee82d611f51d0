"""Settings, paths, and what must not be shown."""
