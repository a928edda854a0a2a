"""Rows that threads are given while they insert together, and shares of a run: everything once, whatever the sizes."""

from __future__ import annotations

import numpy as np
import pytest

from elastalog.backends.kernel.compile.signatures import COLUMNS, INT, MATRIX, operator
from elastalog.backends.kernel.store import inserting
from elastalog.backends.kernel.store.annotations import facts_of
from elastalog.backends.kernel.store.crew import Crew
from elastalog.backends.kernel.store.inserting import Noted, insert_together
from elastalog.backends.kernel.store.memory import relation_descriptor_at
from elastalog.backends.kernel.store.relation import KernelRelation


@operator(INT, INT, MATRIX, INT, INT, INT, COLUMNS, INT)
def insert(address, block, start, stop, level, turns, thread):
    """Inserts while other threads do, counts everything, and gives new facts a level."""
    facts = facts_of(relation_descriptor_at(address, 0))
    return insert_together(facts, Noted(facts.count, 0, facts.level, level), block, start, stop, turns, thread)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_threads_that_insert_the_same_facts_add_each_once(width: int) -> None:
    threads, distinct = 4, 20_000
    relation = KernelRelation("r", width, is_annotated=True)
    relation.reserve(2 * distinct)
    facts = np.arange(distinct * width, dtype=np.int32).reshape(-1, width)
    generator = np.random.default_rng(8)
    blocks = [np.ascontiguousarray(facts[generator.integers(0, distinct, 50_000)]) for _ in range(threads)]
    given = np.zeros(inserting.size_of_turns(threads), np.int64)
    inserting.give_out(given, 0, 256)

    def work(number: int) -> None:
        assert insert(home, blocks[number], 0, 50_000, 7, given, number) == 50_000

    home = relation.home
    Crew(threads).do(work, lambda: None)
    inserting.close_gaps(home, given)
    expected, counts = np.unique(np.concatenate(blocks), axis=0, return_counts=True)
    rows = relation.find(expected)
    assert np.array_equal(np.sort(rows), np.arange(relation.used))
    assert len(expected) == relation.used == np.count_nonzero(relation.table)
    assert np.array_equal(relation.rows[rows], expected)
    assert np.array_equal(relation.count[rows], counts)
    assert (relation.level[: relation.used] == 7).all()


def test_a_thread_stops_where_no_row_is_left() -> None:
    relation = KernelRelation("r", 2, is_annotated=True)
    relation.reserve(1000)
    relation.lay_out().room = 600
    block = np.arange(2000, dtype=np.int32).reshape(-1, 2)
    given = np.zeros(inserting.size_of_turns(2), np.int64)
    inserting.give_out(given, 0, 256)
    assert insert(relation.home, block, 0, 1000, 0, given, 1) == 512
    # Facts that are there already need no row.
    assert insert(relation.home, block, 100, 512, 0, given, 1) == 512
    inserting.close_gaps(relation.home, given)
    assert relation.used == 512


@pytest.mark.parametrize(
    ("gaps", "kept"),
    [
        ([], 20),
        ([18, 20], 18),
        ([5, 8], 17),
        ([0, 4, 16, 20], 12),
        ([4, 8, 12, 20], 8),
        ([0, 20], 0),
        ([2, 3, 9, 12], 16),
        ([9, 12, 2, 3], 16),
        ([16, 20, 0, 4], 12),
        ([12, 20, 2, 5, 8, 12], 5),
    ],
)
def test_gaps_are_filled_with_the_last_rows(gaps: list[int], kept: int) -> None:
    relation = KernelRelation("r", 1, is_annotated=True)
    relation.load(np.arange(100, 120, dtype=np.int32).reshape(-1, 1))
    relation.count[:20] = np.arange(100, 120)
    is_gap = np.zeros(20, np.bool_)
    given = np.zeros(inserting.size_of_turns(3), np.int64)
    given[[inserting.GIVEN, inserting.TURN]] = 20, 1
    for thread, (first, last) in enumerate(zip(gaps[::2], gaps[1::2], strict=True)):
        is_gap[first:last] = True
        own = inserting.APART * (1 + thread)
        given[[own + inserting.OWN, own + inserting.OWN_END]] = first, last
    expected = relation.rows[:20][~is_gap]
    relation.used = 0
    inserting.close_gaps(relation.home, given)
    assert relation.used == kept
    assert sorted(relation.rows[:kept, 0].tolist()) == expected[:, 0].tolist()
    assert np.array_equal(relation.count[:kept], relation.rows[:kept, 0])
    assert sorted(relation.find(expected).tolist()) == list(range(kept))
