"""Sizes of the kernel's relations for the planner: how many facts, and how many agree on some columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elastalog.backends.kernel.store.memory import Matrix
from elastalog.settings import SETTINGS

_SAMPLE = 4096
_ALIKE = 16
"""A relation has about the size that it had if that has changed by at most one fact in this many."""
_MANY = 256
"""With at least this many relations, the largest is not looked for at every question."""

_MIXER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@cache
def _draws(size: int) -> npt.NDArray[np.float64]:
    """`size` random places in a relation, as fractions of its length, in order."""
    return np.sort(np.random.default_rng(size).random(size))


class Rows(Protocol):
    """What is looked at of a relation: the first `used` rows of a matrix."""

    @property
    def rows(self) -> Matrix: ...
    @property
    def used(self) -> int: ...


class KernelStatistics:
    """Estimates from a sample of rows, made when first asked for, and again when a relation has got another size.

    The fan-out of some columns is what a present fact expects to meet: 1 + (rows - 1) times the chance that two
    facts agree on them. That weighs frequent values as joins do, and sees columns that depend on each other."""

    def __init__(self, relations: Mapping[str, Rows], sample: int = _SAMPLE) -> None:
        self._relations = relations
        self._sample_size = sample
        self._fanouts: dict[tuple[str, tuple[int, ...]], tuple[int, float]] = {}
        self._samples: dict[str, tuple[int, Matrix]] = {}
        self._largest = self._asked = 0

    def small_sizes(self, relations: Iterable[str]) -> tuple[int, ...] | None:
        """The logarithms of sizes: plans for similar sizes are used again, also in other sessions. None if a relation
        is large, where plans matter more: then they go by its facts."""
        sizes = [self._relations[name].used for name in relations]
        return tuple([size.bit_length() for size in sizes]) if max(sizes) <= SETTINGS.share_plans_up_to else None

    def rows(self, relation: str) -> float:
        return float(self._relations[relation].used or self._typical())

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        if not columns:
            return self.rows(relation)
        key = (relation, columns)
        used = self._relations[relation].used
        known = self._fanouts.get(key)
        if known is None or used == 0 or not _is_alike(known[0], used):
            known = self._fanouts[key] = used, self._estimate(relation, columns)
        return known[1]

    def _typical(self) -> float:
        """The size of a relation of which nothing is known yet: it is about to be derived."""
        if not self._asked:
            self._largest = max((r.used for r in self._relations.values()), default=0)
        self._asked = (self._asked + 1) % (1 + len(self._relations) // _MANY)
        return float(self._largest + 1)

    def _estimate(self, relation: str, columns: tuple[int, ...]) -> float:
        used = self._relations[relation].used
        if used == 0:
            return float(self._typical() ** (0.5 ** len(columns)))
        if used == 1:
            return 1.0
        sample = self._sample(relation)
        return 1.0 + (used - 1) * float(_agreeing(sample, columns)) / (len(sample) * (len(sample) - 1))

    def _sample(self, relation: str) -> Matrix:
        stored = self._relations[relation]
        known = self._samples.get(relation)
        if known is None or not _is_alike(known[0], stored.used):
            is_small = stored.used <= self._sample_size
            # A copy: what is kept must not keep a relation that is gone.
            rows = (
                stored.rows[: stored.used].copy() if is_small else _drawn(stored.rows, stored.used, self._sample_size)
            )
            known = self._samples[relation] = stored.used, rows
        return known[1]


def _drawn(rows: Matrix, used: int, size: int) -> Matrix:
    """A random sample of at most `size` of the first `used` rows."""
    chosen = (_draws(size) * used).astype(np.int64)
    return rows.take(chosen[np.flatnonzero(np.diff(chosen, prepend=-1))], axis=0)


def _agreeing(sample: Matrix, columns: Sequence[int]) -> int:
    """How many rows, each with every other one, agree on some columns."""
    size, (first, *others) = len(sample), columns
    keys = sample[:, first].copy()
    if others:
        wide = keys.astype(np.uint64) * _MIXER
        for column in others:
            wide = (wide ^ sample[:, column].astype(np.uint64)) * _MIXER
        keys = (wide >> _HALF).astype(np.uint32)  # half as long to sort, and as good as all
    keys.sort()
    ends = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    counts = np.concatenate((ends, (size,)))
    counts[1:] -= ends
    return int(counts @ counts) - size


def _is_alike(before: int, now: int) -> bool:
    return _ALIKE * abs(now - before) <= before
