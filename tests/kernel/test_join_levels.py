"""Joins of updates look many rows up in groups: by one column, by two and by three, with more found than a block has
room for."""

from __future__ import annotations

import elastalog

PROGRAM = """
.decl left(x: number, y: number, z: number)
.decl right(x: number, y: number, z: number, w: number)
.decl by_one(z: number, w: number)
.decl by_two(z: number, w: number)
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
