"""Numbered, immutable steps of the schema."""
