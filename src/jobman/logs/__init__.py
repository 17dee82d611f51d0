"""The bytes of runs on disk: capture, chunk index, reading, following."""
