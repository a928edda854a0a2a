"""How tasks that run at the same time give each other rows, in rounds.

Every two tasks are linked (see `transports`). In a round every task sends each other one a block: a *header* that says
what the task gives, then the rows for that share and those for everybody. It goes on when it has the blocks of all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    GROUP,
    INT,
    LOW,
    MATRIX,
    ONE,
    TABLE,
    WORDS,
    group_of_keys,
    group_of_numbers,
    hash_row,
    int64,
    operator,
    prefetch,
    types,
    uint64,
)
from elastalog.backends.kernel.store.set_table import has_tag, row_in
from elastalog.backends.spark.transports import Link, Unlinked
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, put
from elastalog.folders.remote import UnreachableError

_LENGTH = 8
_WORD = 4

_GIVEN_UP = "given-up"
"""The file by which tasks know that one has given up, and is not gone."""

_REACHED = "round"
"""The file by which the driver knows how far tasks are."""

_SECONDS_BETWEEN_NEWS = 1.0


class TaskFailed(Exception):
    """Another task cannot go on, so this one need not."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Rows for an address, and the share that wants each (EVERYWHERE: all do). `count`: a number that goes with each
    row, as one more column."""

    rows: np.ndarray
    shares: np.ndarray
    count: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """The rows that one task gives this one for an address, if any."""

    address: str
    rows: np.ndarray


@dataclass(frozen=True, slots=True)
class _Packed:
    """Rows ordered by the share that wants them: those of share s are rows bounds[s] to bounds[s + 1], the last ones
    are for everybody."""

    rows: np.ndarray
    bounds: tuple[int, ...]

    def parts(self, share: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows for a share, and those for everybody."""
        return self.rows[self.bounds[share] : self.bounds[share + 1]], self.rows[self.bounds[-2] :]


class Messages:
    """The rounds of one task, which is linked with all others. `folder` is that of the attempt, the same for all
    tasks; the driver looks into the `news` folder while they run."""

    def __init__(self, folder: str, news: str, share: int, links: Mapping[int, Link]) -> None:
        self.folder = folder
        self.share = share
        self.notes: list[Any] = []
        self.rounds = 0
        self.waited = 0.0
        self.sent = 0
        self._news = news
        self._links = links
        self._told = time.monotonic()

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Message]:
        """Gives rows to the other tasks and takes theirs. All tasks must call it equally often. Returns the messages of
        all tasks, this one included; none if no task gave any. Raises TaskFailed if a task has failed."""
        self.rounds += 1
        packed = {address: self._packed(out) for address, out in outgoing.items() if len(out.rows)}
        self.notes = []
        messages: list[Message] = []
        try:
            for share, link in self._links.items():
                content = self._content(packed, note, share)
                self.sent += sum(memoryview(part).nbytes for part in content)
                link.send(*content)
            for share in range(len(self._links) + 1):
                if share == self.share:
                    self.notes.append(note)
                    messages += [Message(address, rows) for address, p in packed.items() for rows in p.parts(share)]
                else:
                    began = time.perf_counter()
                    block = self._links[share].receive()
                    self.waited += time.perf_counter() - began
                    messages += self._read(block)
        except Unlinked:
            given_up = inside(self.folder, _GIVEN_UP)
            if files_at(given_up).exists(given_up):
                raise TaskFailed from None
            raise
        self._tell_driver()
        return messages

    def give_up(self) -> None:
        """Tells the others that this task cannot go on, before it ends its connections."""
        put(inside(self.folder, _GIVEN_UP))

    def close(self) -> None:
        """Nothing more will be exchanged."""
        for link in self._links.values():
            link.close()

    def _packed(self, out: Outgoing) -> _Packed:
        rows = np.ascontiguousarray(out.rows, np.int32)
        width = rows.shape[1] + (out.count is not None)
        count = np.empty(0, np.int32) if out.count is None else out.count
        ordered = np.empty((len(rows), width), np.int32)
        bounds = np.zeros(len(self._links) + 3, np.int64)
        distribute(rows, count, out.shares.astype(np.int32, copy=False), ordered, bounds)
        return _Packed(ordered, tuple(bounds.tolist()))

    @staticmethod
    def _content(packed: Mapping[str, _Packed], note: Any, share: int) -> tuple[bytes | memoryview, ...]:
        """The block for a share."""
        given = {address: p.parts(share) for address, p in packed.items()}
        listed = [(address, len(own) + len(everybody), own.shape[1]) for address, (own, everybody) in given.items()]
        header = json.dumps({"messages": listed, "note": note}).encode()
        header += b" " * (-len(header) % _WORD)
        rows = (part.data for parts in given.values() for part in parts)
        return len(header).to_bytes(_LENGTH, "little"), header, *rows

    def _read(self, block: bytearray) -> list[Message]:
        """What another task gives this one; its note is kept."""
        start = _LENGTH + int.from_bytes(block[:_LENGTH], "little")
        header = json.loads(block[_LENGTH:start])
        self.notes.append(header["note"])
        words, messages = np.frombuffer(block, np.int32, offset=start), []
        for address, rows, width in header["messages"]:
            given, words = np.split(words, [rows * width])
            messages.append(Message(address, given.reshape(rows, width)))
        return messages

    def _tell_driver(self) -> None:
        """Tells the driver now and then how far tasks are."""
        now = time.monotonic()
        if self.share == 0 and now - self._told >= _SECONDS_BETWEEN_NEWS:
            self._told = now
            put(inside(self._news, _REACHED), str(self.rounds).encode())


def rounds_reached(folder: str) -> int:
    """The round that the tasks of a stratum have told last; 0 before. The driver asks while they run."""
    location = inside(folder, _REACHED)
    with suppress(FileNotFoundError, UnreachableError):  # news are not worth an error
        return int(files_at(location).content(location))
    return 0


@operator(types.void, MATRIX, WORDS, WORDS, MATRIX, COLUMNS)
def distribute(rows, count, shares, ordered, bounds):
    """Copies rows, and their counts as a last column unless there are none, in the order of their shares; rows for
    everybody (a negative share) come last. Rows of share s are those from bounds[s], which is 0 before, to
    bounds[s + 1]."""
    size, width = rows.shape
    last = bounds.shape[0] - 2
    for i in range(size):
        share = shares[i]
        bounds[(last if share < 0 else share) + 1] += 1
    for share in range(last + 1):
        bounds[share + 1] += bounds[share]
    has_count = count.shape[0] > 0
    # Backwards, so that bounds[share + 1], the end of a share, is counted down to its beginning.
    for i in range(size - 1, -1, -1):
        share = last if shares[i] < 0 else shares[i]
        bounds[share + 1] -= 1
        place = bounds[share + 1]
        for c in range(width):
            ordered[place, c] = rows[i, c]
        if has_count:
            ordered[place, width] = count[i]
    for share in range(last + 1):
        bounds[share] = bounds[share + 1]
    bounds[last + 1] = size


@operator(types.void, MATRIX, MATRIX, TABLE, INT, WORDS, INT)
def add_counts(block, rows, table, shift, count, first):
    """Adds the counts in the last column of a block to its facts, which were inserted with a count of 1: to those from
    row `first` on."""
    width = rows.shape[1]
    mask = uint64(table.shape[0] - 1)
    high = uint64(shift)
    size = block.shape[0]
    members = group_of_numbers()
    hashes = group_of_keys()
    i = 0
    while i < size:
        held = 0
        while i < size and held < GROUP:
            if block[i, width] > 1:
                value = hash_row(block, i, width)
                members[held] = i
                hashes[held] = value
                prefetch(table, int64(value >> high))
                held += 1
            i += 1
        for g in range(held):
            member = members[g]
            slot = hashes[g] >> high
            tag = hashes[g] & LOW
            while table[slot] != 0:
                entry = uint64(table[slot])
                if has_tag(entry, tag, mask):
                    row = row_in(entry, mask)
                    is_same = True
                    for c in range(width):
                        if rows[row, c] != block[member, c]:
                            is_same = False
                    if is_same:
                        if row >= first:
                            count[row] += block[member, width] - 1
                        break
                slot = (slot + ONE) & mask
