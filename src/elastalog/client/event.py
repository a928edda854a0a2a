"""What a listener of a service hears."""

from __future__ import annotations

from dataclasses import dataclass

from elastalog.evaluation.changes import Changes


@dataclass(frozen=True, slots=True)
class Event:
    """What the epochs after `since` until `epoch` changed together; the next event begins where this one ends."""

    since: int
    epoch: int
    changes: Changes
    source: str | None = None
    batch: str | int | None = None
