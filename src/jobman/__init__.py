"""Jobman, a daemonless job manager for local background processes."""
