"""Indexes that several threads extend, each by the rows of some keys: the same postings as one thread makes."""

from __future__ import annotations

import numpy as np
import pytest

from elastalog.backends.kernel.store import index as indexes
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import Matrix
from tests.forcing import forced

_CREW = Crew(3)


def _postings(index: Index, rows: Matrix) -> dict[tuple[int, ...], list[int]]:
    """The rows under each key, in the order in which they are there."""
    found = {}
    for place, length in index.slots.tolist():
        if length:
            numbers = [place] if length == 1 else index.pool[place : place + length].tolist()
            keys = {tuple(rows[number, index.columns].tolist()) for number in numbers}
            (key,) = keys
            assert key not in found
            found[key] = numbers
    return found


def _expected(columns: tuple[int, ...], rows: Matrix) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    for number, key in enumerate(rows[:, columns].tolist()):
        found.setdefault(tuple(key), []).append(number)
    return found


@pytest.mark.parametrize("columns", [(0,), (1,), (0, 1), (2, 0, 1)])
@pytest.mark.parametrize("crew", [ALONE, _CREW], ids=["alone", "together"])
@pytest.mark.parametrize("pack_from", [1, 1 << 30], ids=["packed", "appended"])
def test_parts_of_an_index_are_the_whole(columns: tuple[int, ...], crew: Crew, pack_from: int) -> None:
    """Column 0 has few words, one of them in most rows; column 1 many, and in the end one that has no slot."""
    generator = np.random.default_rng(3)
    rows = generator.integers(0, 40, (1_200, 3)).astype(np.int32)
    rows[:, 1] = generator.integers(0, 500, len(rows))
    rows[::2, 0] = 7
    rows[1_190:, 1] = -5
    with forced(divide_index_from=1, divide_table_from=1, pack_from=pack_from, direct_keys_anyway=16):
        index = Index(columns, rows, 100)
        for used in (100, 140, 700, 701, 1_190, 1_200):
            index.extend(rows, used, crew)
            assert index.done == used
            assert _postings(index, rows) == _expected(columns, rows[:used])
            if index.kind == postings.HASHED:
                assert index.state[postings.KEYS_USED] == np.count_nonzero(index.keys)


def test_rows_that_one_thread_adds_after_several() -> None:
    rows = np.random.default_rng(5).integers(0, 300, (1_000, 2)).astype(np.int32)
    with forced(divide_index_from=1):
        index = Index((0,), rows, 10)
        for turn, used in enumerate(range(50, 1_001, 50)):
            index.extend(rows, used, ALONE if turn % 3 else _CREW)
    assert _postings(index, rows) == _expected((0,), rows)


@pytest.mark.parametrize("are_skewed", [False, True])
@pytest.mark.parametrize("different", [1, 300, 15_000, 1 << 30])
def test_a_table_of_keys_is_made_for_about_as_many_as_there_are(
    different: int, are_skewed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made for as many as a sample suggests, too few if most keys are rare, and widened by one thread."""
    widened: list[int] = []
    widen = Index._wider
    monkeypatch.setattr(Index, "_wider", lambda index: (widened.append(len(index.keys)), widen(index))[1])
    rows = np.random.default_rng(7).integers(0, different, (60_000, 2)).astype(np.int32)
    if are_skewed:
        rows[::3] = rows[0]
    index = Index((0, 1), rows, len(rows), _CREW)
    index.extend(rows, len(rows), _CREW)
    assert len(_postings(index, rows)) == len(np.unique(rows, axis=0))
    assert not widened
    assert len(index.keys) <= 8 * max(len(np.unique(rows, axis=0)), 16)


@pytest.mark.parametrize("crew", [ALONE, _CREW], ids=["alone", "together"])
def test_keys_are_measured_again_when_there_are_more_than_were_told(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "_distinct_keys", lambda *_: 3.0)
    rows = np.random.default_rng(9).integers(0, 60, (5_000, 3)).astype(np.int32)
    with forced(divide_index_from=1, divide_table_from=1):
        index = Index((2, 0), rows, len(rows), crew)
        assert len(index.keys) == 64
        index.extend(rows, len(rows), crew)
    assert _postings(index, rows) == _expected((2, 0), rows)
    assert index.state[postings.KEYS_USED] == np.count_nonzero(index.keys)
