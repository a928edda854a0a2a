"""Which batches of which sources have been applied, so that none is applied twice.

What is kept stays small however long a stream runs. Batches that differ in a number only, as `7` and `8`, or `7.diff`
and `8.diff`, are kept as ranges of it. A batch `12 step 3` or `12 file edge.csv` is a part of the twelfth batch of a
source that sends one batch after the other, and again only the last: so it says that all before the twelfth have been
applied, and only parts of that are kept. A batch `key K DIGEST` is an update that came with a key of its own: of those
the digest of the content is kept, so that another content under the same key is found out.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from elastalog.late import dataclass
from elastalog.storage import errors

_KEYED = re.compile(r"key (.+) ([0-9a-f]{32})", re.ASCII | re.DOTALL)
_PART = re.compile(r"(0|[1-9][0-9]{0,17}) ((?:step|file) .+)", re.ASCII | re.DOTALL)
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.ASCII | re.DOTALL)

_Ranges = list[list[int]]


@dataclass(slots=True)
class _Known:
    """The batches of a source: ranges of the number in names that are otherwise the same, the names without a number,
    the last batch that came in parts, with those, and keys with the digests of what came with them."""

    ranges: dict[str, _Ranges] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    parted: int = -1
    parts: set[str] = field(default_factory=set)
    keys: dict[str, str] = field(default_factory=dict)

    def __contains__(self, batch: str) -> bool:
        if (keyed := _KEYED.fullmatch(batch)) is not None:  # stores of earlier versions have the key alone
            return keyed[1] in self.keys or f"key {keyed[1]}" in self
        if (part := _PART.fullmatch(batch)) is not None:
            number = int(part[1])
            return number < self.parted or (number == self.parted and part[2] in self.parts)
        if (numbered := _numbered(batch)) is not None:
            name, number = numbered
            ranges = self.ranges.get(name, [])
            place = bisect.bisect_right(ranges, number, key=lambda span: span[0]) - 1
            return place >= 0 and number <= ranges[place][1]
        return batch in self.others

    def add(self, batch: str) -> None:
        """Remembers one that is not known."""
        if (keyed := _KEYED.fullmatch(batch)) is not None:
            self.keys[keyed[1]] = keyed[2]
        elif (part := _PART.fullmatch(batch)) is not None:
            if int(part[1]) != self.parted:
                self.parted = int(part[1])
                self.parts = set()
            self.parts.add(part[2])
        elif (numbered := _numbered(batch)) is not None:
            name, number = numbered
            _extend(self.ranges.setdefault(name, []), number)
        else:
            self.others.add(batch)


class Batches:
    """A set of (source, batch)."""

    def __init__(self, written: Mapping[str, Any] | None = None) -> None:
        self._known: dict[str, _Known] = {}
        for source, kept in (written or {}).items():
            known = self._known[source] = _Known({"": [[int(first), int(last)] for first, last in kept["ranges"]]})
            for name, ranges in kept.get("names", {}).items():
                known.ranges[name] = [[int(first), int(last)] for first, last in ranges]
            if "parts" in kept:
                known.parted, known.parts = int(kept["parts"][0]), {str(part) for part in kept["parts"][1]}
            for batch in kept["others"]:
                known.add(str(batch))
            known.keys.update(kept.get("keys", {}))

    def __contains__(self, identity: tuple[str | None, str | int | None]) -> bool:
        source, batch = identity
        known = self._known.get(source or "")
        return batch is not None and known is not None and str(batch) in known

    def add(self, source: str | None, batch: str | int | None) -> None:
        """Remembers a batch, a number as its text; an update without one needs no remembering."""
        if batch is None or (source, batch) in self:
            return
        self._known.setdefault(source or "", _Known()).add(str(batch))

    def refuse_other(self, source: str | None, batch: str | int | None) -> None:
        """Raises ElastalogError if the key that a batch has came with other content before."""
        keyed = _KEYED.fullmatch(batch) if isinstance(batch, str) else None
        known = self._known.get(source or "")
        if keyed is not None and known is not None and known.keys.get(keyed[1], keyed[2]) != keyed[2]:
            raise errors.other_update(keyed[1])

    def written(self) -> dict[str, Any]:
        """As a JSON value."""
        return {source: _written(known) for source, known in sorted(self._known.items())}


def _written(known: _Known) -> dict[str, Any]:
    names = {name: [[*span] for span in ranges] for name, ranges in sorted(known.ranges.items()) if name}
    return {
        "ranges": [[*span] for span in known.ranges.get("", [])],
        "others": sorted(known.others),
        **({"names": names} if names else {}),
        **({"parts": [known.parted, sorted(known.parts)]} if known.parts else {}),
        **({"keys": known.keys.copy()} if known.keys else {}),
    }


def _numbered(batch: str) -> tuple[str, int] | None:
    """A batch as its last number and the rest: `7` is 7 of ``, `3-7.csv` is 7 of `3-*.csv`, `07.csv` is 7 of
    `**.csv`. None if there is no number, or if the rest could be misread."""
    match = _LAST_NUMBER.fullmatch(batch)
    if match is None or "*" in batch or match[1][-1:].isdecimal():
        return None
    digits = match[2]
    stars = "*" if digits == str(int(digits)) else "*" * len(digits)
    name = f"{match[1]}{stars}{match[3]}"
    return ("" if name == "*" else name), int(digits)


def _extend(ranges: _Ranges, number: int) -> None:
    place = bisect.bisect_right(ranges, number, key=lambda span: span[0])
    ranges.insert(place, [number, number])
    if place + 1 < len(ranges) and ranges[place + 1][0] == number + 1:
        ranges[place][1] = ranges.pop(place + 1)[1]
    if place and ranges[place - 1][1] == number - 1:
        ranges[place - 1][1] = ranges.pop(place)[1]
