"""What an update costs whatever it changes: counted, since clocks differ."""

from __future__ import annotations

from typing import Any

import elastalog
from tests.interrupting import calls_of

CLOSURE = """
.decl e(a: number, b: number)
.input e
.decl p(a: number, b: number)
.output p
p(a, b) :- e(a, b).
p(a, c) :- p(a, b), e(b, c).
"""


def test_an_update_of_one_fact_takes_few_calls_of_python() -> None:
    facts = {"e": [(3 * chain + i, 3 * chain + i + 1) for chain in range(100) for i in range(2)]}
    with elastalog.open(CLOSURE, facts=facts, engine="local") as db:
        db.engine.warm()
        update = {"e": [(1, 2)]}
        deletions, insertions = _calls_of_updates(db, update)
        assert deletions <= 48
        assert insertions <= 48


def test_a_further_stratum_takes_a_call_or_two_for_what_is_learnt_of_it() -> None:
    strata = "".join(f".decl r{i}(a: number)\n.output r{i}\nr{i}(a) :- r{i - 1}(a).\n" for i in range(1, 11))
    program = f".decl r0(a: number)\n.input r0\n{strata}"
    with elastalog.open(program, facts={"r0": [(i,) for i in range(100)]}, engine="local") as db:
        db.engine.warm()
        update = {"r0": [(7,)]}
        deletions, _ = _calls_of_updates(db, update)
        assert deletions <= 48 + 10


def _calls_of_updates(db: elastalog.Session, update: dict[str, Any]) -> tuple[int, int]:
    """The least calls that deleting and inserting took: at first things are laid out that stay, and whenever garbage is
    collected others are called too."""
    calls = [
        (calls_of(lambda: db.apply(deleted=update)), calls_of(lambda: db.apply(inserted=update))) for _ in range(6)
    ]
    deletions, insertions = zip(*calls, strict=True)
    return min(deletions), min(insertions)
