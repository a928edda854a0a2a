"""Hypothesis profiles: `ci` is the one of every run (see `pyproject.toml`), `long` is for nights."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, database=None)
settings.register_profile("long", max_examples=5000, deadline=None)
