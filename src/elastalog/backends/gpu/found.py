"""The facts that rounds find, on their way to this process while further rounds go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.arrays import Array, Arrays, Carrier
from elastalog.backends.gpu.packing import Keys, one_after_the_other
from elastalog.backends.kernel.bootstrap.handover import Given
from elastalog.late import dataclass
from elastalog.relations.facts import FactWords

Vector = npt.NDArray[np.int32]

PIECE = 1 << 22
"""Facts that are brought at a time, and for which it is worth while to bring them before the end."""
_AHEAD = 16
"""Room is reserved for this many times the facts known so far: it takes memory only where facts are written."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Facts of one round, or of several: `sizes[i]` of them have the level `levels[i]`."""

    keys: Keys
    counts: Array
    levels: tuple[int, ...]
    sizes: tuple[int, ...]

    def levels_between(self, begin: int, end: int) -> int | Vector:
        """The levels of some of its facts; one for all, if they are of one round."""
        if len(self.levels) == 1:
            return self.levels[0]
        return np.repeat(np.array(self.levels, np.int32), self.sizes)[begin:end]


@dataclass(frozen=True, slots=True)
class _Room:
    """Where facts are put in this process."""

    words: npt.NDArray[np.int32]
    levels: Vector
    counts: Vector

    def between(self, begin: int, end: int) -> _Room:
        return _Room(self.words[begin:end], self.levels[begin:end], self.counts[begin:end])


class Found:
    """The facts of a relation in the order of the rounds they were found in; explicit ones first, each with the count
    1. `rows` gives the words of facts by their keys."""

    def __init__(self, carrier: Carrier, arrays: Arrays, width: int, rows: Callable[[Keys], Array]) -> None:
        self._carrier = carrier
        self._arrays = arrays
        self._width = width
        self._rows = rows
        self._room = _made(0, 0, width)
        self._sent = 0
        self._waiting: list[_Piece] = []
        self._held = 0
        """Facts that wait."""

    def begin_with(self, given: Given) -> None:
        """Begins with the facts that this process knows already, in their order; of facts without annotations it is
        only known which are those of the last round."""
        facts, size = given.facts, len(given.facts.words)
        self._room = _made(size, _AHEAD, self._width)
        self._sent = size
        np.copyto(self._room.words[:size], facts.words)
        self._room.counts[:size] = 1 if facts.count is None else facts.count
        self._room.levels[:size] = 0 if facts.level is None else facts.level
        if facts.level is None:
            self._room.levels[given.before : size] = given.round - 1

    def add(self, keys: Keys, counts: Array | None, level: int) -> None:
        """Facts of a round; each was found once if there are no counts."""
        size = len(keys[0])
        if not size:
            return
        numbers = self._arrays.module.ones(size, np.int32) if counts is None else counts.astype(np.int32)
        self._waiting.append(_Piece(keys, numbers, (level,), (size,)))
        self._held += size
        if self._held >= PIECE:
            self.send(_AHEAD)

    def brought(self) -> FactWords:
        """All of them in this process; nothing is left here."""
        self.send()
        self._carrier.finish()
        room = self._room.between(0, self._sent)
        return FactWords(room.words, room.levels, room.counts)

    def send(self, ahead: int = 1) -> None:
        """Starts to bring what waits. `ahead`: if room must be made, it is made for this many times the facts."""
        if len(self._room.words) < self._sent + self._held:
            self._grow(ahead)
        self._arrays.claim((8 * self._width + 12) * min(self._held, PIECE))
        for piece in self._together():
            size = len(piece.keys[0])
            for begin in range(0, size, PIECE):
                end = min(begin + PIECE, size)
                place = self._room.between(self._sent + begin, self._sent + end)
                self._carrier.start(partial(self._bring, piece, begin, end, place))
            self._sent += size
        self._waiting, self._held = [], 0

    def _together(self) -> Iterator[_Piece]:
        """What waits, small pieces together: each that is brought costs launches."""
        few: list[_Piece] = []
        number = 0
        for piece in self._waiting:
            size = len(piece.keys[0])
            if few and number + size > PIECE:
                yield self._joined(few)
                few, number = [], 0
            few.append(piece)
            number += size
        if few:
            yield self._joined(few)

    def _joined(self, pieces: list[_Piece]) -> _Piece:
        if len(pieces) == 1:
            return pieces[0]
        return _Piece(
            one_after_the_other([piece.keys for piece in pieces], self._arrays),
            self._arrays.module.concatenate([piece.counts for piece in pieces]),
            tuple(level for piece in pieces for level in piece.levels),
            tuple(size for piece in pieces for size in piece.sizes),
        )

    def _grow(self, ahead: int) -> None:
        self._carrier.finish()  # what is under way goes to where it was told
        before, size = self._room, self._sent + self._held
        self._room = _made(size, ahead, self._width)
        for begin in range(0, self._sent, PIECE):
            end = min(begin + PIECE, self._sent)
            self._carrier.start(partial(_copy, before.between(begin, end), self._room.between(begin, end)))

    def _bring(self, piece: _Piece, begin: int, end: int, place: _Room) -> None:
        self._arrays.copy_out(self._rows(tuple(part[begin:end] for part in piece.keys)), place.words)
        self._arrays.copy_out(piece.counts[begin:end], place.counts)
        place.levels[:] = piece.levels_between(begin, end)


def _made(size: int, ahead: int, width: int) -> _Room:
    """Room for `size` facts; for at least `ahead` times as many, if `ahead` is above 1 and there is memory for them."""
    try:
        most = max(size * ahead, PIECE * _AHEAD) if ahead > 1 else size
        return _Room(np.empty((most, width), np.int32), np.empty(most, np.int32), np.empty(most, np.int32))
    except MemoryError:
        if ahead <= 1:
            raise
        return _made(size, 1, width)


def _copy(origin: _Room, target: _Room) -> None:
    for name in ("words", "levels", "counts"):
        np.copyto(getattr(target, name), getattr(origin, name))
