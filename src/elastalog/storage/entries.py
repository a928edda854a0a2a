"""What is remembered of an epoch: its entry in the log, its record in the journal, what it does to the program of the
store where it changes rules, and which batches of which sources have been applied, so that none is applied twice.

What is kept of batches stays small however long a stream runs. Batches that differ in a number only, as `7` and `8`, or
`7.diff` and `8.diff`, are kept as ranges of it. A batch `12 step 3` or `12 file edge.csv` is a part of the twelfth
batch of a source that sends one batch after the other, and again only the last: so it says that all before the twelfth
have been applied, and only parts of that are kept. Of the latest batches of a source a digest of what they asked for
is kept, so that another update under the same batch is found out.
"""

from __future__ import annotations

import bisect
import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields
from datetime import UTC, date, datetime, time
from itertools import accumulate
from typing import Any

import numpy as np

from elastalog.backends.protocol import GONE, StateChanges
from elastalog.diagnostics.arguments import require_whole, wrong_kind
from elastalog.diagnostics.diagnostic import error
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """The program and the layout since that epoch. `renamed`: hidden relations that have other names since, by the name
    before; `fresh`: relations that there were none of before; `made_for`: see `StoredState`."""

    text: str
    layout: Mapping[str, tuple[str, ...]]
    renamed: Mapping[str, str]
    fresh: frozenset[str]
    made_for: str | None

    def origin(self, name: str) -> str | None:
        """What a relation was called before; None if there was none."""
        if name in self.fresh:
            return None
        return next((old for old, new in self.renamed.items() if new == name), name)

    def written(self) -> dict[str, Any]:
        """As a JSON value."""
        return {**asdict(self), "fresh": sorted(self.fresh)}

    @staticmethod
    def read(written: Mapping[str, Any]) -> ProgramChange:
        """From a JSON value."""
        layout = {name: tuple(bases) for name, bases in written["layout"].items()}
        renamed, fresh = dict(written["renamed"]), frozenset(written["fresh"])
        return ProgramChange(written["text"], layout, renamed, fresh, written.get("made_for"))


_LENGTH = struct.Struct("<I")
_NOTED = "batch"
_NOTE_BEGINS = b'{"batch":'


def in_utc(moment: datetime) -> datetime:
    """A time in UTC; without a zone, it is one of this machine's zone. At the ends of the calendar no zone matters."""
    try:
        return moment.astimezone(UTC)
    except (OverflowError, ValueError):
        return moment.replace(tzinfo=UTC)


def require_epochs(*epochs: object) -> None:
    """Raises WrongArgument unless epochs are given by their numbers."""
    for epoch in epochs:
        require_whole("an epoch is a number", epoch, "give its number; `db.log()` has an entry for each")


def as_moment(given: date | str) -> datetime:
    """A time, which may be given as a text in ISO 8601; a day stands for its beginning. Raises WrongArgument for any
    other text."""
    if isinstance(given, str):
        try:
            return datetime.fromisoformat(given)
        except ValueError:
            advice = "give the number of one, or a time such as `2026-11-18 09:30`"
            raise wrong_kind("an epoch is a number, or the one in force at a time", given, advice) from None
    return given if isinstance(given, datetime) else datetime.combine(given, time())


def epoch_in_force(entries: Sequence[LogEntry], at: date | str) -> int:
    """The epoch that was in force at a time."""
    moment = as_moment(at)
    when = in_utc(moment)
    # A clock may have gone backwards: no epoch was in force before the one before it.
    since = accumulate((entry.time for entry in entries), max)  # in microseconds, as people name times
    known = [entry.epoch for entry, began in zip(entries, since, strict=True) if began <= when]
    if not known:
        raise error("E0813.before_all", when=moment, first=entries[0].epoch, began=entries[0].time)
    return known[-1]


@dataclass(frozen=True, slots=True)
class StratumEntry:
    """What was done to one stratum; see `evaluation.strategies.protocol.StratumWork`."""

    stratum: int
    relations: tuple[str, ...]
    how: str
    why: str
    derivations: int
    seconds: float
    cost: int | None = None
    other: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class LogEntry:
    """One line of the log: when an epoch was committed (seconds since 1970; `time` is the same for people), where its
    update came from, how many explicit facts it deleted, inserted and named in vain, how many facts it changed, how
    that was done and how long it took; the rules that it removed and added; and the digest of its batch."""

    epoch: int
    timestamp: float
    source: str | None
    batch: str | int | None
    deleted: int
    inserted: int
    ignored: int
    impact: int
    seconds: float
    strata: tuple[StratumEntry, ...]
    removed_rules: tuple[str, ...] = ()
    added_rules: tuple[str, ...] = ()
    digest: str | None = None

    @property
    def time(self) -> datetime:
        """When the epoch was committed, in UTC. A clock may have been wrong by more years than Python can represent."""
        try:
            return datetime.fromtimestamp(self.timestamp, UTC)
        except (ValueError, OverflowError, OSError):
            return (datetime.max if self.timestamp > 0 else datetime.min).replace(tzinfo=UTC)

    @property
    def shown_time(self) -> str:
        """When it was committed, for people: in the zone of this machine, as times without one are understood."""
        try:
            return f"{self.time.astimezone():%Y-%m-%d %H:%M:%S}"
        except (OverflowError, ValueError):
            return f"{self.time:%Y-%m-%d %H:%M:%S}"

    @property
    def derivations(self) -> int:
        return sum(stratum.derivations for stratum in self.strata)

    def __str__(self) -> str:
        by = f" by {self.source}" if self.source else ""
        rules = f", {counted(len(self.added_rules), 'rule')} added, {len(self.removed_rules)} removed"
        given = f"{self.inserted:,} inserted, {self.deleted:,} deleted"
        return (
            f"epoch {self.epoch}, {self.shown_time}{by}: {given}"
            f"{rules if self.removed_rules or self.added_rules else ''}; {counted(self.impact, 'change')} in all,"
            f" {self.seconds:.3f} s"
        )

    def __repr__(self) -> str:
        return f"<{self}>"

    def written(self) -> dict[str, Any]:
        """As a JSON value."""
        told = {"time" if name == "timestamp" else name: getattr(self, name) for name in _OF_ENTRY}
        told["strata"] = [{name: getattr(stratum, name) for name in _OF_STRATUM} for stratum in self.strata]
        if self.digest is None:
            del told["digest"]
        return told

    @staticmethod
    def read(written: Mapping[str, Any]) -> LogEntry:
        """From a JSON value."""
        written = {"timestamp" if name == "time" else name: value for name, value in written.items()}
        strata = tuple(StratumEntry(**{**s, "relations": tuple(s["relations"])}) for s in written["strata"])
        rules = {side: tuple(written.get(side, ())) for side in ("removed_rules", "added_rules")}
        return LogEntry(**{**written, "strata": strata, **rules})


_OF_STRATUM, _OF_ENTRY = ([one.name for one in fields(kind)] for kind in (StratumEntry, LogEntry))


@dataclass(frozen=True, slots=True)
class BatchNote:
    """A batch that was applied and changed nothing: it has no epoch, but is not applied again."""

    source: str | None
    batch: str | int
    digest: str | None = None

    def encode(self) -> bytes:
        """The payload of a frame."""
        told = [self.source, self.batch, *([] if self.digest is None else [self.digest])]
        text = json.dumps({_NOTED: told}, ensure_ascii=False, separators=(",", ":")).encode()
        return _LENGTH.pack(len(text)) + text

    @staticmethod
    def decode(payload: bytes) -> BatchNote | None:
        """From a payload; None if it is that of an epoch. Raises ValueError when it is damaged."""
        if payload[4 : 4 + len(_NOTE_BEGINS)] != _NOTE_BEGINS:
            return None
        return BatchNote(*json.loads(payload[4:])[_NOTED])


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """Everything that leads from one epoch to the next: state changes of all relations, what the dictionary gained
    (texts from id `first_symbol`, patterns from id `first_pattern`), what the strategy learnt, and the program, if it
    has changed since; relations have their names under the new one."""

    entry: LogEntry
    changes: Mapping[str, StateChanges]
    first_symbol: int
    symbols: list[str]
    first_pattern: int
    patterns: np.ndarray
    learnt: Mapping[str, Any]
    program: ProgramChange | None = None

    def encode(self) -> bytes:
        """The payload of a frame: the length of a JSON head, the head, and arrays of little-endian integers."""
        head = {
            "entry": self.entry.written(),
            "relations": [[name, *changes.words.shape] for name, changes in self.changes.items()],
            "first_symbol": self.first_symbol,
            "symbols": self.symbols,
            "first_pattern": self.first_pattern,
            "patterns": len(self.patterns),
            "learnt": self.learnt,
            **({} if self.program is None else {"program": self.program.written()}),
        }
        text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode()
        parts = [_LENGTH.pack(len(text)), text, self.patterns.astype("<i8").tobytes()]
        for changes in self.changes.values():
            parts += [
                array.astype("<i4").tobytes() for array in (changes.words, changes.was, changes.level, changes.count)
            ]
        return b"".join(parts)

    @staticmethod
    def decode(payload: bytes) -> JournalRecord:
        """The record in a payload. Raises ValueError, KeyError or TypeError if it holds none."""
        (length,) = _LENGTH.unpack_from(payload)
        head = json.loads(payload[4 : 4 + length])
        offset = 4 + length

        def take(count: int, form: str) -> np.ndarray:
            nonlocal offset
            array = np.frombuffer(payload, form, count, offset)
            offset += array.nbytes
            return array.astype(form.replace("<", "="), copy=False)

        patterns = take(head["patterns"], "<i8")
        changes = {}
        for name, rows, width in head["relations"]:
            words = take(rows * width, "<i4").reshape(rows, width)
            changes[name] = StateChanges(words, take(rows, "<i4"), take(rows, "<i4"), take(rows, "<i4"))
        return JournalRecord(
            LogEntry.read(head["entry"]), changes, head["first_symbol"], head["symbols"], head["first_pattern"],
            patterns, head["learnt"], ProgramChange.read(head["program"]) if "program" in head else None,
        )  # fmt: skip


def impact_of(changes: Mapping[str, StateChanges], is_hidden: Mapping[str, bool]) -> int:
    """How many facts of declared relations came or went."""
    return sum(
        int(((changed.was == GONE) != (changed.level == GONE)).sum())
        for name, changed in changes.items()
        if not is_hidden[name]
    )


# --- batches ---------------------------------------------------------------------------------------------------------


COMPARED = 1000
"""Batches of a source of which a digest is kept."""
_PART = re.compile(r"(0|[1-9][0-9]{0,17}) ((?:step|file) .+)", re.ASCII | re.DOTALL)
_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,18})([^0-9]*)", re.ASCII | re.DOTALL)

_Ranges = list[list[int]]


@dataclass(slots=True)
class _Known:
    """The batches of a source: ranges of the number in names that are otherwise the same, the names without a number,
    the last batch that came in parts, with those; and digests of the latest, the oldest first."""

    ranges: dict[str, _Ranges] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    parted: int = -1
    parts: set[str] = field(default_factory=set)
    digests: dict[str, str] = field(default_factory=dict)

    def __contains__(self, batch: str) -> bool:
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
        if (part := _PART.fullmatch(batch)) is not None:
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
            for batch, digest in kept.get("keys", {}).items():
                if batch not in known:
                    known.add(batch)
                known.digests[batch] = digest

    def __contains__(self, identity: tuple[str | None, str | int | None]) -> bool:
        source, batch = identity
        known = self._known.get(source or "")
        return batch is not None and known is not None and str(batch) in known

    def add(self, source: str | None, batch: str | int | None, digest: str | None = None) -> None:
        """Remembers a batch, a number as its text; an update without one needs no remembering."""
        if batch is None or (source, batch) in self:
            return
        known = self._known.setdefault(source or "", _Known())
        known.add(str(batch))
        if digest is not None:
            known.digests[str(batch)] = digest
            if len(known.digests) > COMPARED:
                del known.digests[next(iter(known.digests))]

    def refuse_other(self, source: str | None, batch: str | int | None, digest: str | None) -> None:
        """Raises ElastalogError if the batch is known to have asked for something else before."""
        known = self._known.get(source or "")
        if digest is not None and known is not None and known.digests.get(str(batch), digest) != digest:
            raise error("E0932", word=str(batch)[:100])

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
        **({"keys": known.digests.copy()} if known.digests else {}),
    }


def _numbered(batch: str) -> tuple[str, int] | None:
    """A batch as its last number and a pattern for the rest: `7` is 7 of ``, `3-7.csv` is 7 of `3-*.csv`, `07.csv` is 7
    of `**.csv`. None if it has no number, or if the rest could be misread."""
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
