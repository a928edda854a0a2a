"""How tasks that run at the same time give each other rows: through files, in rounds.

In a round every task writes one file, on a disk or at an address, which appears whole: a *header* that says what the
task gives, then all rows for the first share, those for the second, and so on, and in the end those for everybody. So a
task reads two ranges of every other task's file. It goes on when it has read the files of all: on a disk it looks
often, at an address, where a look is a request, seldom. Spark's own barrier takes a second, files on a disk take
milliseconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
from elastalog.folders.addresses import inside, is_address, name_in
from elastalog.folders.files import files_at, put, remove
from elastalog.folders.local import ReadInto

_LENGTH = 8
_WORD = 4
_ROUND = ".round"


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

    def part(self, share: int) -> np.ndarray:
        return self.rows[self.bounds[share] : self.bounds[share + 1]]


class Messages:
    """The rounds of one task. `folder` is that of the attempt, the same for all tasks."""

    def __init__(self, folder: str, share: int, shares: int) -> None:
        self.folder = folder
        self.share = share
        self.shares = shares
        self.notes: list[Any] = []
        self.waited = 0.0
        self.sent = 0
        self._round = 0
        self._is_far = is_address(folder)

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Message]:
        """Gives rows to the other tasks and takes theirs. All tasks must call it equally often. Returns the messages of
        all tasks, this one included; none if no task gave any. Raises TaskFailed if a task has failed."""
        self._round += 1
        packed = {address: self._packed(out) for address, out in outgoing.items() if len(out.rows)}
        self._write(packed, note)
        self.notes, messages = [], []
        for share in range(self.shares):
            if share == self.share:
                self.notes.append(note)
                own = {name: _joined(p.part(share), p.part(self.shares)) for name, p in packed.items()}
            else:
                began = time.perf_counter()
                own = self._given_by(share)
                self.waited += time.perf_counter() - began
            messages += [Message(address, rows) for address, rows in own.items()]
        self._forget()
        return messages

    def _forget(self) -> None:
        """Removes this task's file of the round before: a task that has written a file has read all those of the round
        before. At an address all files go at the end, in one request."""
        if not self._is_far and self.shares > 1:
            remove([inside(self.folder, round_name(self.share, self._round - 1))])

    def _given_by(self, sender: int) -> dict[str, np.ndarray]:
        with opened_when_there(self.folder, round_name(sender, self._round)) as read_into:
            return self._read(read_into, self._others(sender))

    @property
    def rounds_done(self) -> int:
        """How many rounds there have been."""
        return self._round

    def close(self) -> None:
        """Nothing more will be exchanged."""

    def give_up(self) -> None:
        """Tells the others, in the next round, that this task cannot go on."""
        self._round += 1
        self._write(None, None)

    def _packed(self, out: Outgoing) -> _Packed:
        rows = np.ascontiguousarray(out.rows, np.int32)
        width = rows.shape[1] + (out.count is not None)
        count = np.empty(0, np.int32) if out.count is None else out.count
        ordered = np.empty((len(rows), width), np.int32)
        bounds = np.zeros(self.shares + 2, np.int64)
        distribute(rows, count, out.shares.astype(np.int32, copy=False), ordered, bounds)
        return _Packed(ordered, tuple(bounds.tolist()))

    def _write(self, packed: Mapping[str, _Packed] | None, note: Any) -> None:
        """Writes the file of this round; None says that this task has failed."""
        if self.shares > 1:
            content = self._content(packed, note, self._others(self.share))
            self.sent += sum(memoryview(part).nbytes for part in content)
            put(inside(self.folder, round_name(self.share, self._round)), *content)

    def _content(
        self, packed: Mapping[str, _Packed] | None, note: Any, readers: Sequence[int]
    ) -> tuple[bytes | memoryview, ...]:
        """The header, and the rows for some readers, `shares` for everybody."""
        given = packed or {}
        listed = [(address, p.rows.shape[1], p.bounds) for address, p in given.items()]
        header = json.dumps({"messages": listed, "note": note, "failed": packed is None}).encode()
        header += b" " * (-len(header) % _WORD)
        rows = (p.part(share).data for share in readers for p in given.values())
        return len(header).to_bytes(_LENGTH, "little"), header, *rows

    def _others(self, sender: int) -> Sequence[int]:
        """The tasks whose rows are in the file of a task: all but itself."""
        return [share for share in range(self.shares + 1) if share != sender]

    def _read(self, read_into: ReadInto, readers: Sequence[int]) -> dict[str, np.ndarray]:
        """What another task gives this one, by address; its note is kept. `readers`: whose rows the file has."""
        length = int.from_bytes(_bytes(read_into, 0, _LENGTH), "little")
        header = json.loads(_bytes(read_into, _LENGTH, length))
        if header["failed"]:
            raise TaskFailed
        self.notes.append(header["note"])
        found: dict[str, list[np.ndarray]] = {address: [] for address, _, _ in header["messages"]}
        start = _LENGTH + length
        for share in readers:
            shapes = [(bounds[share + 1] - bounds[share], width) for _, width, bounds in header["messages"]]
            number = sum(rows * width for rows, width in shapes)
            if share in (self.share, self.shares):
                words = np.empty(number, np.int32)
                read_into(memoryview(words.view(np.uint8)), start)  # type: ignore[arg-type]  # it is a buffer
                for parts, part in zip(found.values(), _divided(words, shapes), strict=True):
                    parts.append(part)
            start += _WORD * number
        return {address: _joined(own, everywhere) for address, (own, everywhere) in found.items()}


def round_name(share: int, number: int) -> str:
    """The file of a task in a round, in the folder of the attempt."""
    return f"{number}-{share}{_ROUND}"


def rounds_reached(folder: str) -> int:
    """The latest round that tasks have reached, by the files below the folder of their stratum; 0 if there is none. The
    driver asks while they run."""
    names = map(name_in, files_at(folder).listed(folder))
    return max((int(name.partition("-")[0]) for name in names if name.endswith(_ROUND)), default=0)


def _bytes(read_into: ReadInto, offset: int, number: int) -> bytearray:
    room = bytearray(number)
    read_into(memoryview(room), offset)
    return room


def _divided(words: np.ndarray, shapes: Iterable[tuple[int, int]]) -> Iterator[np.ndarray]:
    """The blocks that lie in `words` one after the other; `shapes` has the rows and the words per row of each."""
    start = 0
    for rows, width in shapes:
        yield words[start : start + rows * width].reshape(rows, width)
        start += rows * width


def _joined(own: np.ndarray, everywhere: np.ndarray) -> np.ndarray:
    if not len(everywhere):
        return own
    return np.concatenate((own, everywhere)) if len(own) else everywhere


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


_PAUSES = (0.0002, 0.02)
_PAUSES_AT_AN_ADDRESS = (0.02, 0.5)
"""The shortest and the longest time between two looks for a file."""

_SECONDS_UNTIL_GIVEN_UP = 5.0
"""How often a task that waits looks whether the driver has given up, where that is a request."""

_TOLD = 512
"""The size of a small file."""


@contextmanager
def opened_when_there(folder: str, name: str) -> Iterator[ReadInto]:
    """Opens a file of another task in the folder of the attempt as soon as it is there. If that task dies, Spark hears
    of it and ends this one too."""
    path, files = inside(folder, name), files_at(folder)
    is_far = is_address(folder)
    pause, longest = _PAUSES_AT_AN_ADDRESS if is_far else _PAUSES
    until_given_up = _SECONDS_UNTIL_GIVEN_UP if is_far else 0.0
    looked = time.monotonic()
    with ExitStack() as stack:
        while True:
            with suppress(FileNotFoundError):
                file = stack.enter_context(files.opened(path))
                break
            if time.monotonic() - looked >= until_given_up:
                looked = time.monotonic()
                if not files.is_folder(folder):
                    raise RuntimeError("the driver has given this attempt up")
            time.sleep(pause)
            pause = min(pause * 1.5, longest)
        yield file


def tell(folder: str, name: str, text: str) -> None:
    """Writes a small file for the other tasks."""
    put(inside(folder, name), text.encode().ljust(_TOLD))


def told(folder: str, name: str) -> str:
    """The text in a small file of another task, as soon as it is there."""
    with opened_when_there(folder, name) as read_into:
        return _bytes(read_into, 0, _TOLD).decode().rstrip()
