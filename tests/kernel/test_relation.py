"""Relations and indexes of the kernel against sets and dictionaries, with words that force every way of addressing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elastalog.backends.kernel.execution.aggregates import rows_by_key
from elastalog.backends.kernel.store import memory
from elastalog.backends.kernel.store.memory import LARGE_TABLE, MOST_TAKEN_AT_ONCE, rows_for, slots_at_once, slots_for
from elastalog.backends.kernel.store.postings import DIRECT, HASHED
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.settings import SETTINGS

NARROW = st.integers(0, 6)
WORDS = st.one_of(NARROW, st.integers(-3, 3), st.sampled_from([2**30, 2**31 - 1, -(2**30), 100_000]))


def rows_of(width: int, words: st.SearchStrategy[int] = WORDS) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[words] * width), max_size=60)


def matrix(rows: list[tuple[int, ...]], width: int) -> np.ndarray:
    return np.array(rows, np.int32).reshape(-1, width)


def matches(relation: KernelRelation, columns: tuple[int, ...], keys: np.ndarray) -> list[tuple[int, int]]:
    """(position of the key, row) for all rows."""
    places, rows = rows_by_key(relation, columns, keys)
    return list(zip(places.tolist(), rows.tolist(), strict=True))


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_relation_holds_each_fact_once_and_counts_it(width: int, data: st.DataObject) -> None:
    rows = data.draw(rows_of(width))
    relation = KernelRelation("r", width, is_annotated=True)
    relation.insert(matrix(rows, width), 0, len(rows), 0)
    held = [tuple(map(int, row)) for row in relation.rows[: relation.used]]
    assert held == list(dict.fromkeys(rows))
    assert relation.count[: relation.used].tolist() == [rows.count(row) for row in held]
    others = data.draw(rows_of(width))
    found = relation.find(matrix(others, width)).tolist()
    assert found == [held.index(row) if row in held else -1 for row in others]


@pytest.mark.parametrize("columns", [(0,), (1,), (0, 2), (2, 1), (0, 1, 2)])
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(rows_of(3), max_size=4))
def test_an_index_finds_the_rows_of_a_key_in_order(columns: tuple[int, ...], parts: list) -> None:
    relation = KernelRelation("r", 3, is_annotated=False)
    for part in parts:
        relation.insert(matrix(part, 3), 0, len(part), 0)
        relation.index(columns)
    held = [tuple(map(int, row)) for row in relation.rows[: relation.used]]
    keys = sorted({tuple(row[c] for c in columns) for row in held} | {(5, 5, 5)[: len(columns)]})
    expected = [
        (position, row)
        for position, key in enumerate(keys)
        for row, fact in enumerate(held)
        if tuple(fact[c] for c in columns) == key
    ]
    assert matches(relation, columns, matrix(keys, len(columns))) == expected


def test_two_words_of_minus_one_are_a_key_like_any_other() -> None:
    relation = KernelRelation("r", 3, is_annotated=False)
    # All bits set: the sum with 1 is 0, which stands for no key.
    rows = matrix([(-1, -1, 5), (0, 0, 1), (-1, -1, 6), (-1, 0, 2)], 3)
    relation.load(rows)
    keys = matrix([(-1, -1), (0, 0), (-1, 0), (0, -1)], 2)
    assert matches(relation, (0, 1), keys) == [(0, 0), (0, 2), (1, 1), (2, 3)]


def test_direct_addressing_gives_way_to_hashing_when_a_word_does_not_fit() -> None:
    relation = KernelRelation("r", 2, is_annotated=False)
    first = matrix([(i, i) for i in range(5000)], 2)
    relation.insert(first, 0, len(first), 0)
    assert relation.index((0,)).kind == DIRECT
    second = matrix([(-1, 0), (2**31 - 1, 0), (7, 1)], 2)
    relation.insert(second, 0, len(second), 0)
    index = relation.index((0,))
    assert index.kind == HASHED
    keys = matrix([(7,), (-1,), (2**31 - 1,), (6000,)], 1)
    assert matches(relation, (0,), keys) == [(0, 7), (0, 5002), (1, 5000), (2, 5001)]


def test_a_large_index_grows_its_tables() -> None:
    rng = np.random.default_rng(1)
    words = rng.integers(-(2**31), 2**31, (200_000, 2)).astype(np.int32)
    words[::3, 0] = 17
    relation = KernelRelation("r", 2, is_annotated=False)
    relation.load(words)
    relation.index((0,))
    held = relation.rows[: relation.used]
    assert len(matches(relation, (0,), matrix([(17,)], 1))) == int((held[:, 0] == 17).sum())
    sample = np.ascontiguousarray(held[1:50:3, :1])
    assert [row for _, row in matches(relation, (0,), sample)] == [
        int(row) for word in sample[:, 0] for row in np.flatnonzero(held[:, 0] == word)
    ]


@settings(max_examples=200, deadline=None)
@given(rows=st.integers(1, 1 << 30))
def test_a_set_table_is_the_smallest_that_may_hold_its_rows(rows: int) -> None:
    slots = slots_for(rows)
    assert rows <= rows_for(slots)
    assert slots == 16 or rows > rows_for(slots // 2)
    at_once, full = slots_at_once(rows)
    assert rows <= full <= at_once * MOST_TAKEN_AT_ONCE // 16
    assert at_once == slots or (at_once == slots // 2 >= LARGE_TABLE)


def test_a_large_relation_that_is_loaded_at_once_has_a_fuller_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LARGE_TABLE", 1 << 12)
    size = (1 << 22) * 3 // 4
    words = np.arange(2 * size, dtype=np.int32).reshape(-1, 2)
    relation = KernelRelation("r", 2, is_annotated=True)
    relation.load(words)
    assert len(relation.table) == 1 << 22
    more = matrix([(-i, -i) for i in range(1, 400_000)], 2)
    relation.reserve(relation.used + 64)
    relation.insert(more, 0, len(more), relation.used)
    assert len(relation.table) == 1 << 23
    assert relation.used == size + len(more)
    assert relation.find(words[::1000]).tolist() == list(range(0, size, 1000))
    assert relation.find(more[::1000]).tolist() == list(range(size, relation.used, 1000))


def test_an_evaluation_gives_back_the_room_that_it_has_not_used() -> None:
    relation = KernelRelation("r", 2, is_annotated=True)
    relation.reserve(10_000)
    relation.insert(matrix([(i, 1) for i in range(1000)], 2), 0, 1000, 0)
    held = relation.rows[:10]
    relation.trim()
    assert len(relation.rows) >= 10_000, "somebody looks at the rows"
    del held
    relation.trim()
    assert 1000 < len(relation.rows) < 1200
    assert len(relation.rows) == len(relation.level) == len(relation.count)
    relation.insert(matrix([(i, 2) for i in range(2000)], 2), 0, 2000, 0)
    assert relation.find(matrix([(5, 1), (1999, 2), (2000, 2)], 2)).tolist() == [5, 2999, -1]


def test_direct_slots_grow_by_little_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "many_slots", 1000)
    relation = KernelRelation("r", 2, is_annotated=False)
    relation.load(matrix([(i, i) for i in range(5000)], 2))
    index = relation.index((0,))
    relation.load(matrix([(5000, 1), (5001, 1)], 2))
    assert relation.index((0,)) is index
    assert len(index.slots) == 5000 + 5000 // 8
    assert matches(relation, (0,), matrix([(4999,), (5000,), (5001,), (5002,)], 1)) == [(0, 4999), (1, 5000), (2, 5001)]


@pytest.mark.parametrize("is_annotated", [True, False])
@pytest.mark.parametrize("width", [1, 3])
def test_arrays_that_somebody_looks_at_stay_as_they_are_when_a_relation_grows(is_annotated: bool, width: int) -> None:
    relation = KernelRelation("r", width, is_annotated)
    few = np.arange(40 * width, dtype=np.int32).reshape(40, width)
    relation.load(few)
    looked_at, view = relation.rows, relation.rows[:2]
    held, seen = relation.used, looked_at[:40].copy()
    relation.reserve(10_000)
    assert relation.rows is not looked_at
    del looked_at, view
    relation.reserve(100_000)  # nobody looks now: where they are
    assert len(relation.rows) >= 100_000
    assert len(relation.level) == (len(relation.rows) if is_annotated else 0)
    assert relation.used == held
    assert (relation.rows[:held] == seen[:held]).all()
    if is_annotated:
        assert (relation.level[:held] == 0).all()
        assert (relation.count[:held] == 1).all()
    assert relation.find(few).tolist() == list(range(40))
    many = np.arange(40 * width, 90_000 * width, dtype=np.int32).reshape(-1, width)
    relation.insert(many, 0, len(many), relation.used)
    assert (relation.find(many) == np.arange(40, 90_000)).all()
