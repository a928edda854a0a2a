"""What a listener of a service hears."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from elastalog.evaluation.changes import Changes


@dataclass(frozen=True, slots=True)
class Event:
    """What the epochs after `since` until `epoch` changed together; the next event begins where this one ends."""

    since: int
    epoch: int
    changes: Changes
    source: str | None = None
    batch: str | int | None = None


def sent_events(lines: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Kind and content of every event that a service sends, from the lines of its answer."""
    kind = data = ""
    for line in lines:
        name, _, text = line.partition(": ")
        if name == "event":
            kind = text
        elif name == "data":
            data = text
        elif not line and data:
            yield kind, json.loads(data)
            kind = data = ""
