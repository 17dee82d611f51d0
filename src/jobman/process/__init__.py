"""The operating system behind one contract, one file per platform."""
