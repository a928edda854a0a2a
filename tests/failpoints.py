"""Failpoints of stores, recorded and stopped at in a block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from elastalog.storage import failpoints
from elastalog.storage.failpoints import Action


@contextmanager
def recording() -> Iterator[list[str]]:
    """The failpoints reached in the block, in order."""
    failpoints._record = []
    try:
        yield failpoints._record
    finally:
        failpoints._record = None


@contextmanager
def stop_at(occurrence: int, name: str | None = None, action: Action = "raise") -> Iterator[None]:
    """Stops in the block when failpoints (those of a name, or all) have been reached that often."""
    assert name is None or name in failpoints.POINTS
    failpoints._plan = failpoints._Plan(name, occurrence, action)
    try:
        yield
    finally:
        failpoints._plan = None
