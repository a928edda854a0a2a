"""Joins of updates look many rows up in groups: by one column, by two and by three, with more found than a block has
room for; a single row goes a way of its own."""

from __future__ import annotations

import elastalog

PROGRAM = """
.decl left(x: number, y: number, z: number)
.decl right(x: number, y: number, z: number, w: number)
.decl by_one, by_two(z: number, w: number)
.decl by_three(x: number, w: number)
by_one(z, w) :- left(x, _, z), right(x, _, _, w).
by_two(z, w) :- left(x, y, z), right(x, y, _, w).
by_three(x, w) :- left(x, y, z), right(x, y, z, w).
"""
DERIVED = ("by_one", "by_two", "by_three")
LEFT = [(n % 25, n % 7 - 3, n % 3) for n in range(525)]
RIGHT = [(n % 20, n % 7 - 3, n % 3, n) for n in range(4200)]


def evaluated(left: list[tuple[int, ...]], right: list[tuple[int, ...]]) -> dict[str, list[tuple[int, ...]]]:
    with elastalog.open(PROGRAM, facts={"left": left, "right": right}, engine="local", strategy="recompute") as db:
        return {name: sorted(db[name]) for name in DERIVED}


def test_many_rows_are_joined_alike_when_they_go_and_come() -> None:
    gone, few_gone = LEFT[::2], RIGHT[::50]
    with elastalog.open(PROGRAM, facts={"left": LEFT, "right": RIGHT}, engine="local", budget=None) as db:
        db.apply(deleted={"left": gone, "right": few_gone})
        kept = [fact for fact in LEFT if fact not in set(gone)], [fact for fact in RIGHT if fact not in set(few_gone)]
        assert {name: sorted(db[name]) for name in DERIVED} == evaluated(*kept)
        db.apply(inserted={"left": gone, "right": few_gone})
        assert {name: sorted(db[name]) for name in DERIVED} == evaluated(LEFT, RIGHT)


ONE_ROW = """
.decl left(x: number, y: number)
.decl right(x: number, y: number, w: number)
.decl gone(x: number, w: number)
.decl by_one, by_two, with_all, but_gone(w: number)
by_one(w) :- left(x, _), right(x, _, w).
by_two(w) :- left(x, y), right(x, y, w).
with_all(w) :- left(_, 0), right(_, _, w).
but_gone(w) :- left(x, _), right(x, _, w), !gone(x, w).
"""


def test_a_single_row_meets_more_facts_than_a_block_has_room_for() -> None:
    derived = ("by_one", "by_two", "with_all", "but_gone")
    right, gone = [(n % 2 - 1, n % 3 // 2, n) for n in range(72_000)], [(0, n) for n in range(1, 72_000, 6)]
    with elastalog.open(ONE_ROW, facts={"right": right, "gone": gone}, engine="local", budget=None) as db:
        db.apply(inserted={"left": [(0, 0)]})
        odd = range(1, 72_000, 2)
        expected = {"by_one": [*odd], "by_two": [n for n in odd if n % 3 < 2], "with_all": [*range(72_000)]}
        expected["but_gone"] = [n for n in odd if n % 6 != 1]
        assert {name: sorted(n for (n,) in db[name]) for name in derived} == expected
        db.apply(deleted={"gone": gone[:1]})
        assert len(db["but_gone"]) == len(expected["but_gone"]) + 1
        db.apply(deleted={"left": [(0, 0)]})
        assert not any(len(db[name]) for name in derived)
