"""Pausing Python's collector of reference cycles while many objects that hold none are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_MANY = 100_000
"""Objects of a tree that is worth it: a program of some thousand lines."""


@contextmanager
def without_collection() -> Iterator[None]:
    """Trees hold no cycles, so that looking for some while a large one grows only doubles the time. Nothing is changed
    when the collector is off already; nested uses are fine."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > _MANY and not gc.get_freeze_count():
            # Both only join lists: what was made counts as old, and nobody looks through it as soon as this ends. So
            # does all else that is young, which must not happen often, or garbage is never found.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
