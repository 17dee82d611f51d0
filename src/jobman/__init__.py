"""Jobman, a daemonless job manager for local background processes."""

__version__ = "0.1.0"
