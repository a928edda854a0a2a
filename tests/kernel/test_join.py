"""The join of batch evaluation beside nested loops: every shape of a result, every way to find rows, blocks of any
room. Rows come in the order of the left, then of the right."""

from __future__ import annotations

from ctypes import addressof

import numpy as np
import pytest

from elastalog.backends.kernel.compile.signatures import (
    COLUMNS,
    FLAG,
    INT,
    MATRIX,
    address_of,
    keys_at,
    matrix_at,
    operator,
    words_at,
)
from elastalog.backends.kernel.execution.join import Copied, Frame, Goal, frame_at, join
from elastalog.backends.kernel.store.annotations import ABSENT, facts_of
from elastalog.backends.kernel.store.memory import empty_keys, index_descriptor_at, relation_descriptor_at
from elastalog.backends.kernel.store.postings import DIRECT, EVERY, HASHED, SLOT_WIDTH, Postings, grow, postings_of
from elastalog.backends.kernel.store.relation import KernelRelation

LEFT = np.array([(n % 7, n % 4, n) for n in range(40)], np.int32)
RIGHT = np.array([(n % 5, n % 3, n % 20) for n in range(60)] + [(6, 0, 41), (7, 0, 42)], np.int32)
LIMIT = len(RIGHT) - 3
GONE = slice(4, 40, 5)
WIDE = np.int32(2**30)

SHAPES = [
    ((), (1,)),
    ((0,), (1,)),
    ((0, 2), (1,)),
    ((0, 1, 2), (2,)),
    ((1,), (2, 0)),
    ((0, 2), (1, 2)),
    ((1,), (-1,)),
    ((0,), (2, -1)),
    ((2,), ()),
]
"""Columns that are kept of the left, and taken of the right; -1 is the number of the row."""

WAYS = [((), 0, EVERY), ((0,), 0, DIRECT), ((0,), WIDE, HASHED), ((0, 1), 0, HASHED), ((0, 1, 2), 0, HASHED)]
"""Columns of the key, what is added to every word, and how the rows of a key are found then."""


@operator(INT, INT, INT, INT, FLAG, COLUMNS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, MATRIX)
def join_with(frame, relation, index, is_checked, key, keep, keep_places, take, take_places, out):
    """The join of a frame with the rows of a relation below the limit, through an index, if there is one."""
    postings = Postings(EVERY, keys_at(index, 0), 0, matrix_at(index, 0, SLOT_WIDTH), words_at(index, 0), key)
    if index != 0:
        postings = postings_of(index_descriptor_at(index, 0))
    facts = facts_of(relation_descriptor_at(relation, 0))
    kept, taken = Copied(keep, keep_places, out), Copied(take, take_places, out)
    return join(frame_at(frame, 0), Goal(key, postings, facts, LIMIT, is_checked, False, False, kept, taken, out))


def joined(
    left: np.ndarray, right: KernelRelation, columns: tuple[int, ...], kind: int, keep: tuple[int, ...],
    take: tuple[int, ...], room: int, is_checked: bool,
) -> list[list[int]]:  # fmt: skip
    """The rows of the result, through blocks of so many."""
    index = 0
    if columns:
        assert right.index(columns).kind == kind
        index = right.index(columns).home
    key = np.array(columns, np.int64)
    kept, taken = np.array(keep, np.int64), np.array(take, np.int64)
    places = np.arange(len(keep) + len(take))[::-1].copy()  # not in order, so that mistakes show
    out = np.empty((room, len(places)), np.int32)
    frame = Frame(block=address_of(left), rows=len(left), width=left.shape[1], end=len(left))
    found: list[list[int]] = []
    while frame.begun < len(left):
        number = join_with(
            addressof(frame), right.home, index, is_checked, key, kept, places[: len(keep)].copy(), taken,
            places[len(keep) :].copy(), out,
        )  # fmt: skip
        found += out[:number, ::-1].tolist()
    return found


@pytest.mark.parametrize(("columns", "added", "kind"), WAYS)
@pytest.mark.parametrize(("keep", "take"), SHAPES)
def test_a_join_finds_what_nested_loops_find(
    keep: tuple[int, ...], take: tuple[int, ...], columns: tuple[int, ...], added: int, kind: int
) -> None:
    left = LEFT + np.int32(added)
    right = KernelRelation("r", 3, is_annotated=True)
    right.load(RIGHT + np.int32(added))
    right.level[GONE] = ABSENT
    for is_checked in (False, True):
        expected = [
            [*(int(one[c]) for c in keep), *(int(other[c]) if c >= 0 else row for c in take)]
            for one in left
            for row, other in enumerate(right.rows[:LIMIT])
            if all(one[c] == other[c] for c in columns) and not (is_checked and right.level[row] == ABSENT)
        ]
        assert expected
        for room in (1, 7, 5000):
            assert joined(left, right, columns, kind, keep, take, room, is_checked) == expected


def test_a_wider_table_keeps_keys_whose_hashes_are_equal() -> None:
    """Keys of three columns and more are hashes: two slots may have the same, and hold rows of different words."""
    keys, slots = empty_keys(64), np.zeros((64, SLOT_WIDTH), np.int32)
    keys[[3, 4]] = 7
    slots[[3, 4]] = [(10, 1), (20, 1)]
    wider_keys, wider_slots = empty_keys(256), np.zeros((256, SLOT_WIDTH), np.int32)
    grow(keys, slots, wider_keys, wider_slots, 56)
    assert sorted(wider_slots[wider_keys == 7].tolist()) == [[10, 1], [20, 1]]
