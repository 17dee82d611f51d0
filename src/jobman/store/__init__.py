"""Durable truth; the only package that speaks SQL."""
