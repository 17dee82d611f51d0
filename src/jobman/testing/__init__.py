"""Fakes for programs that test against Jobman."""
