"""How tasks that run at the same time give each other rows: through files, in rounds.

In a round every task writes one file, which appears whole: a *header* that says what the task gives, then all rows for
the first share, those for the second, and so on, and in the end those for everybody. So a task reads of each other one
two stretches. It goes on when it has read the files of all. Spark's own barrier takes a second, the files take
milliseconds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elastalog.backends.spark.message_operators import distribute

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.02
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
    """The rows of one task for an address that are for this task, maybe none. `note`: what the sender says about
    them."""

    address: str
    rows: np.ndarray
    note: Any


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

    def __init__(self, folder: Path, share: int, shares: int) -> None:
        self.folder = folder
        self.share = share
        self.shares = shares
        self.notes: list[Any] = []
        self._round = 0

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Message]:
        """Gives and takes: all tasks must call it equally often. Returns the messages of all tasks, this one included;
        none if no task gave any. Raises TaskFailed if a task has failed."""
        self._round += 1
        packed = {address: self._packed(out) for address, out in outgoing.items() if len(out.rows)}
        self._write(packed, note)
        self.notes = []
        messages = []
        for share in range(self.shares):
            if share == self.share:
                self.notes.append(note)
                own = {name: _joined(p.part(share), p.part(self.shares)) for name, p in packed.items()}
            else:
                own = self._read(share)
            messages += [Message(address, rows, self.notes[-1]) for address, rows in own.items()]
        # Who has written a file has read those of the round before.
        self._path(self.share, self._round - 1).unlink(missing_ok=True)
        return messages

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
        """Writes the file of this round; None: this task has failed."""
        if self.shares == 1:
            return
        given = packed or {}
        listed = [(address, p.rows.shape[1], p.bounds) for address, p in given.items()]
        header = json.dumps({"messages": listed, "note": note, "failed": packed is None}).encode()
        header += b" " * (-len(header) % _WORD)
        path = self._path(self.share, self._round)
        fresh = path.with_suffix(".tmp")
        with open(fresh, "wb") as file:
            file.write(len(header).to_bytes(_LENGTH, "little"))
            file.write(header)
            for share in range(self.shares + 1):
                if share != self.share:
                    for p in given.values():
                        file.write(p.part(share).data)
        os.replace(fresh, path)

    def _read(self, sender: int) -> dict[str, np.ndarray]:
        """What another task gives this one, by address; notes what it says."""
        with open(self._awaited(sender), "rb", buffering=0) as file:
            length = int.from_bytes(file.read(_LENGTH), "little")
            header = json.loads(file.read(length))
            if header["failed"]:
                raise TaskFailed
            self.notes.append(header["note"])
            found: dict[str, list[np.ndarray]] = {address: [] for address, _, _ in header["messages"]}
            start = _LENGTH + length
            for share in range(self.shares + 1):
                shapes = [(bounds[share + 1] - bounds[share], width) for _, width, bounds in header["messages"]]
                number = sum(rows * width for rows, width in shapes) if share != sender else 0
                if share in (self.share, self.shares):
                    words = _words(file, start, number)
                    for parts, part in zip(found.values(), _divided(words, shapes), strict=True):
                        parts.append(part)
                start += _WORD * number
        return {address: _joined(own, everywhere) for address, (own, everywhere) in found.items()}

    def _awaited(self, sender: int) -> Path:
        """The file of another task, when it is there. If that task dies, Spark headers, and then ends this one too."""
        path, pause = self._path(sender, self._round), _SHORTEST_PAUSE
        while not path.exists():
            if not self.folder.exists():
                raise RuntimeError("the driver has given this attempt up")
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return path

    def _path(self, share: int, number: int) -> Path:
        return self.folder / f"{number}-{share}{_ROUND}"


def rounds_reached(folder: Path) -> int:
    """The latest round of the tasks whose attempts have their folders in one; 0 if there is none. For the driver, which
    looks while they go on."""
    return max((int(path.name.partition("-")[0]) for path in folder.glob(f"*/*{_ROUND}")), default=0)


def _words(file: Any, offset: int, number: int) -> np.ndarray:
    words = np.empty(number, np.int32)
    left = memoryview(words.view(np.uint8))  # type: ignore[arg-type]  # it is a buffer
    file.seek(offset)
    while left:
        done = file.readinto(left)
        if not done:
            raise RuntimeError("a file of the exchange is too short")
        left = left[done:]
    return words


def _divided(words: np.ndarray, shapes: Iterable[tuple[int, int]]) -> Iterator[np.ndarray]:
    """One after the other, blocks of so many rows of so many words."""
    start = 0
    for rows, width in shapes:
        yield words[start : start + rows * width].reshape(rows, width)
        start += rows * width


def _joined(own: np.ndarray, everywhere: np.ndarray) -> np.ndarray:
    if not len(everywhere):
        return own
    return np.concatenate((own, everywhere)) if len(own) else everywhere
