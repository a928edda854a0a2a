"""Which batches of which sources have been applied, so that none is applied twice.

Streams number their batches one after the other: those are kept as ranges, which stay few however long the stream runs.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from typing import Any


class Batches:
    """A set of (source, batch)."""

    def __init__(self, written: Mapping[str, Any] | None = None) -> None:
        self._ranges: dict[str, list[list[int]]] = {}
        self._others: dict[str, set[str]] = {}
        for source, kept in (written or {}).items():
            self._ranges[source] = [[int(first), int(last)] for first, last in kept["ranges"]]
            self._others[source] = {str(batch) for batch in kept["others"]}

    def __contains__(self, identity: tuple[str | None, str | None]) -> bool:
        source, batch = identity
        if batch is None:
            return False
        number = _number(batch)
        if number is None:
            return batch in self._others.get(source or "", ())
        ranges = self._ranges.get(source or "", [])
        place = bisect.bisect_right(ranges, number, key=lambda span: span[0]) - 1
        return place >= 0 and number <= ranges[place][1]

    def add(self, source: str | None, batch: str | None) -> None:
        """Remembers a batch; an update without one needs no remembering."""
        if batch is None or (source, batch) in self:
            return
        number = _number(batch)
        if number is None:
            self._others.setdefault(source or "", set()).add(batch)
            return
        ranges = self._ranges.setdefault(source or "", [])
        place = bisect.bisect_right(ranges, number, key=lambda span: span[0])
        ranges.insert(place, [number, number])
        if place + 1 < len(ranges) and ranges[place + 1][0] == number + 1:
            ranges[place][1] = ranges.pop(place + 1)[1]
        if place and ranges[place - 1][1] == number - 1:
            ranges[place - 1][1] = ranges.pop(place)[1]

    def written(self) -> dict[str, Any]:
        """As a JSON value."""
        sources = sorted({*self._ranges, *self._others})
        return {
            source: {
                "ranges": [[*span] for span in self._ranges.get(source, [])],
                "others": sorted(self._others.get(source, ())),
            }
            for source in sources
        }


def _number(batch: str) -> int | None:
    """The number that a batch id is, if it is written as numbers are: `7`, not `07`."""
    is_plain = batch.isascii() and batch.isdigit() and len(batch) <= 18 and (batch == "0" or batch[0] != "0")
    return int(batch) if is_plain else None
