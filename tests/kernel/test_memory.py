"""How many bytes facts take: set tables, packed postings, blocks that are used again."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.store import postings
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation


def pairs(count: int, nodes: int, seed: int = 1) -> Matrix:
    """Distinct pairs in no order."""
    numbers = np.random.default_rng(seed).choice(nodes * nodes, count, replace=False)
    return np.column_stack(np.divmod(numbers, nodes)).astype(np.int32)


def rows_by_key(rows: Matrix, columns: tuple[int, ...]) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows.tolist()):
        found.setdefault(tuple(row[column] for column in columns), []).append(number)
    return found


def rows_in(index: Index, rows: Matrix) -> dict[tuple[int, ...], list[int]]:
    """What an index holds, read without the operators that join."""
    found = {}
    for place, length in index.slots.tolist():
        if length:
            posting = [place] if length == 1 else index.pool[place : place + length].tolist()
            found[tuple(rows[posting[0], index.columns].tolist())] = posting
    return found


@pytest.mark.parametrize(
    ("is_annotated", "indexed", "most"),
    [(False, [(0,)], 24.0), (True, [(0,), (1,)], 40.0)],
    ids=["plain with an index", "annotated with two"],
)
def test_bytes_a_fact_of_what_is_loaded(is_annotated: bool, indexed: list[tuple[int, ...]], most: float) -> None:
    first = KernelRelation("r", 2, is_annotated)
    first.load(pairs(2000, 100))  # by which operators are loaded, and here
    first.index((0,))
    taken = []
    for count in (100_000, 120_000, 140_000, 170_000):
        block = pairs(count, 2000)
        tracemalloc.start()
        relation = KernelRelation("r", 2, is_annotated)
        relation.load(block)
        for columns in indexed:
            relation.index(columns)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert abs(held - relation.nbytes) < 20_000  # nothing is kept that nobody speaks of
        taken.append(held / count)
    assert sum(taken) / len(taken) <= most
    assert max(taken) <= most + 2


def test_bytes_a_fact_of_what_grows_round_by_round() -> None:
    block = pairs(200_000, 2000)
    relation = KernelRelation("r", 2, is_annotated=True)
    for first in range(0, 200_000, 10_000):
        relation.insert(block, first, first + 10_000, 0)
        relation.index((0,))
        relation.index((1,))
    for index in map(relation.index, relation.indexed):
        # Four bytes a row, eight for each of the 2,000 keys. All keys leave their blocks at about the same time.
        assert index.nbytes / 200_000 < 10.0
    relation.trim()
    assert relation.nbytes / 200_000 <= 40.0


@pytest.mark.parametrize("columns", [(0,), (1,), (0, 1), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("is_dense", [True, False])
def test_packed_postings_grow_like_others(columns: tuple[int, ...], is_dense: bool) -> None:
    generator = np.random.default_rng(3)
    rows = generator.integers(0, 30, (9000, 3)).astype(np.int32)
    rows[:, 1] = np.minimum(rows[:, 1], 3)
    if not is_dense:
        rows *= np.int32(70_000_001)  # some are negative then
    index = Index(columns, rows, 2000)
    index.extend(rows, 2000)
    is_packed = len(columns) <= 2
    assert (index.state[postings.PACKED] > 0) == is_packed
    for used in (2000, 2001, 2500, 2501, 6000, 9000):
        index.extend(rows, used)
        assert rows_in(index, rows) == rows_by_key(rows[:used], columns)


def test_blocks_that_were_left_are_used_again() -> None:
    # One key after the other gets 48 rows: blocks of 4 to 32 that one leaves serve the next.
    rows = np.repeat(np.arange(500, dtype=np.int32), 48).reshape(-1, 1)
    index = Index((0,), rows, 0)
    index.extend(rows[:500], 500)
    index.extend(rows, len(rows))
    assert rows_in(index, rows) == rows_by_key(rows, (0,))
    assert index.state[postings.POOL_USED] < 500 * 48 + 200


def test_a_word_without_a_slot_leaves_nothing_packed() -> None:
    rows = np.arange(3000, dtype=np.int32).reshape(-1, 1) % 1500
    index = Index((0,), rows[:100], 100)  # as one made for fewer rows: slots up to 99
    index.extend(rows, 3000)
    assert rows_in(index, rows) == rows_by_key(rows, (0,))
    assert index.state[postings.PACKED] == 0


def test_a_set_table_tells_facts_apart_that_share_home_and_tag() -> None:
    # Of a million facts in a table of 2^21 slots, with 11 bits of a tag, many thousands do.
    block = pairs(1_000_000, 3000)
    relation = KernelRelation("r", 2, is_annotated=False)
    relation.load(block)
    assert relation.used == len(block)
    assert np.array_equal(relation.find(block), np.arange(len(block)))
    others = block + np.int32(3000)
    assert (relation.find(others) == -1).all()


def test_a_forgotten_set_table_is_made_when_a_fact_is_looked_for() -> None:
    block = pairs(5000, 200)
    relation = KernelRelation("r", 2, is_annotated=False)
    relation.load(block)
    with_table = relation.nbytes
    relation.forget_table()
    assert relation.nbytes <= with_table - 4 * 5000
    assert np.array_equal(relation.find(block[::7]), np.arange(0, 5000, 7))
    relation.forget_table()
    relation.insert(np.concatenate([block[:10], block[:3] + np.int32(1000)]), 0, 13, 0)
    assert relation.used == 5003
    relation.forget_table()
    relation.load(block + np.int32(1000))
    assert relation.used == 10_000
    other = KernelRelation("r", 2, is_annotated=False)
    other.load(block[::-1])
    other.forget_table()
    assert (relation.matches(other)[:5000] == np.arange(5000)[::-1]).all()
    other.forget_table()
    assert other.lay_out().table_size == len(other.table) >= 5000


def test_annotated_facts_keep_their_set_table() -> None:
    relation = KernelRelation("r", 2, is_annotated=True)
    relation.load(pairs(1000, 100))
    before = relation.nbytes
    relation.forget_table()
    assert relation.nbytes == before


PROBED = """
.decl edge, blocked, path(x: number, y: number)
path(x, y) :- edge(x, y), !blocked(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl ends(x: number)
ends(y) :- path(_, y).
.decl back(x: number, y: number)
back(x, y) :- path(x, y), path(y, x).
"""


def test_relations_that_nobody_looks_facts_up_in_have_no_set_table() -> None:
    edges = [(i, (i * 7 + 1) % 500) for i in range(500)]
    facts = {"edge": edges, "blocked": edges[::50]}
    tables = {}
    with elastalog.open(PROBED, facts, strategy="recompute", engine="local") as db:
        tables = {name: len(relation._table) for name, relation in db._backend.held.relations.items()}
        assert tables == dict.fromkeys(("edge", "blocked", "path", "ends", "back"), 0)
        before = {name: set(db[name]) for name in db}
        assert before["back"] == {(x, y) for x, y in before["path"] if (y, x) in before["path"]}
        first = min(before["path"])
        assert first in db["path"]
        assert (-1, 5) not in db["path"]
        db.apply(inserted={"edge": [(1, 2), edges[0]]}, deleted={"blocked": edges[::50]})
        after = {name: set(db[name]) for name in db}
    with elastalog.open(PROBED, {"edge": [*edges, (1, 2)]}, engine="local") as db:
        assert after == {name: set(db[name]) for name in db}
