"""The machine leaves off whenever something has to be done in Python, and goes on as if it had not: relations, indexes,
the queue and its levels to grow, actions to run, limits to look at."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import elastalog
from elastalog.backends.kernel.machine import layout, stratum_update
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store.annotations import TOUCHED_WIDTH
from elastalog.backends.kernel.store.index import Index
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.evaluation.costs import Budget
from elastalog.settings import SETTINGS
from tests import closures
from tests.engine.judging import Kind, follow, followed, is_as_anew, levels_of
from tests.forcing import forced
from tests.generators.seeded import seeded_case

CLOSURE = f"""{closures.CLOSURE}.decl loop(x: number)
loop(x) :- path(x, x).
.decl apart(x: number, y: number)
apart(x, y) :- edge(x, _), edge(_, y), !path(x, y).
"""

COMPUTED = """
.decl n(x: number)
.decl total, steps(x: number, y: number)
total(x, x + y) :- n(x), n(y), x < y, x * y % 3 != 1.
steps(x, i) :- total(x, y), i = range(0, y).
.decl up(x: number)
up(x) :- n(x).
up(x + 1) :- up(x), x < 400.
"""


class Reasons:
    """Counts why the machine returns."""

    def __init__(self) -> None:
        self.seen: Counter[int] = Counter()
        self._advance = stratum_update.advance

    def __call__(self, *arguments: Any) -> int:
        reason = self._advance(*arguments)
        self.seen[int(reason)] += 1
        return reason


@pytest.fixture
def reasons(monkeypatch: pytest.MonkeyPatch) -> Reasons:
    counting = Reasons()
    monkeypatch.setattr("elastalog.backends.kernel.levels.scheduler._advance", counting)
    return counting


def judge(program: str, facts: dict[str, Any], updates: list[dict[str, Any]], levels: str = "local") -> None:
    with followed(program, facts, "anew", budget=None, levels=levels, engine="local") as session:
        for change in updates:
            session.apply(**change)


@pytest.mark.parametrize("levels", ["local", "global"])
def test_a_chain_of_many_levels(reasons: Reasons, levels: str) -> None:
    chain = [(i, i + 1) for i in range(1500)]
    facts = {"source": [(0,)], "edge": [*chain, (0, 1000)]}
    middle = [(700, 701)]
    judge(
        closures.FROM_SOURCES,
        facts,
        [{"deleted": {"edge": middle}}, {"deleted": {"edge": [(0, 1000)]}}, {"inserted": {"edge": middle}}],
        levels,
    )
    assert reasons.seen[layout.NO_LEVELS]


@pytest.mark.parametrize("levels", ["local", "global"])
def test_an_update_that_multiplies_a_relation(reasons: Reasons, levels: str) -> None:
    left, right = [(i, 1000) for i in range(150)], [(1001, 2000 + i) for i in range(150)]
    bridge = [(1000, 1001)]
    judge(
        CLOSURE,
        {"edge": [*left, *right]},
        [{"inserted": {"edge": bridge}}, {"deleted": {"edge": bridge}}, {"inserted": {"edge": [*bridge, (2000, 0)]}}],
        levels,
    )
    assert reasons.seen[layout.NO_ROOM]
    assert reasons.seen[layout.NO_NODES]


def test_an_index_of_the_stratum_that_is_full(reasons: Reasons) -> None:
    judge(
        ".decl e, p(x: number, y: number)\np(x, y) :- e(x, y).\np(x, z) :- p(x, y), p(y, z).",
        {"e": [(0, 1)]},
        [{"inserted": {"e": [(i, i + 1) for i in range(1, 60)]}}, {"deleted": {"e": [(30, 31)]}}],
    )
    assert reasons.seen[layout.NO_INDEX]


def test_expressions_and_ranges(reasons: Reasons) -> None:
    judge(
        COMPUTED,
        {"n": [(1,), (5,)]},
        [
            {"inserted": {"n": [(i,) for i in range(2, 40)]}},
            {"deleted": {"n": [(1,), (20,)]}},
            {"inserted": {"n": [(900,)]}},
        ],
    )
    assert reasons.seen[layout.ACTIONS]


ARITHMETIC = """
.decl n, m(x: number, y: number)
.decl total, rest(x: number, y: number, z: number)
.decl less, most, more, least, other, turned, few, many, some(x: number, y: number)
.decl next, before, from, after(x: number, z: number)
total(x, y, x + y) :- n(x, y).
rest(x, y, x - y) :- n(x, y).
less(x, y) :- n(x, y), x < y.
most(x, y) :- n(x, y), x <= y.
more(x, y) :- n(x, y), x > y.
least(x, y) :- n(x, y), x >= y.
other(x, y) :- n(x, y), x != y.
few(x, y) :- n(x, y), x < 7, 1 <= y.
many(x, y) :- n(x, y), x >= 1073741823, -1073741824 > y.
some(x, y) :- n(x, y), x <= 1073741824, y > -4611686018427387904.
next(x, y + 1) :- n(x, y).
after(x, 7 + y) :- n(x, y).
before(x, y - 1073741823) :- n(x, y).
from(x, 7 - y) :- n(x, y).
turned(x, z) :- n(x, y), z = x - y, m(y, z), z > y.
"""


@pytest.mark.parametrize("strategy", ["elastic", "dense", "bfc"])
def test_numbers_that_are_their_own_words_and_others(reasons: Reasons, strategy: str) -> None:
    wide = 1 << 30
    narrow, others = [0, 1, -1, 7, wide // 2, -wide // 2], [wide - 1, wide, -wide, -wide - 1, 1 << 40, -(1 << 62)]
    given: set[tuple[int, int]] = set()
    m = [(y, x - y) for x in (*narrow, *others) for y in (*narrow, *others)]

    def expected() -> dict[str, set[tuple[int, ...]]]:
        return {
            "total": {(x, y, x + y) for x, y in given}, "rest": {(x, y, x - y) for x, y in given},
            "less": {(x, y) for x, y in given if x < y}, "most": {(x, y) for x, y in given if x <= y},
            "more": {(x, y) for x, y in given if x > y}, "least": {(x, y) for x, y in given if x >= y},
            "other": {(x, y) for x, y in given if x != y},
            "few": {(x, y) for x, y in given if x < 7 and y >= 1},
            "many": {(x, y) for x, y in given if x >= wide - 1 and -wide > y},
            "some": {(x, y) for x, y in given if x <= wide and y > -(1 << 62)},
            "next": {(x, y + 1) for x, y in given}, "after": {(x, 7 + y) for x, y in given},
            "before": {(x, y - wide + 1) for x, y in given}, "from": {(x, 7 - y) for x, y in given},
            "turned": {(x, x - y) for x, y in given if x - y > y},
        }  # fmt: skip

    steps = (
        [(x, y) for x in narrow for y in narrow],
        [(x, y) for x in narrow for y in others],
        [(x, y) for x in others for y in (*narrow, *others)],
    )
    with elastalog.open(ARITHMETIC, facts={"m": m}, budget=None, engine="local", strategy=strategy) as db:
        for come, gone in [*((rows, []) for rows in steps), *(([], rows[::2]) for rows in steps)]:
            db.apply({"n": come}, {"n": gone})
            given = given - set(gone) | set(come)
            assert {name: set(db[name]) for name in db if name not in "nm"} == expected()


PRODUCTS = """
.decl n(x: number, y: number)
.decl product, id, quotient, remainder, nested, late(x: number, y: number, z: number)
product(x, y, x * y) :- n(x, y).
id(x, y, 4 * x + y) :- n(x, y).
quotient(x, y, x / 7) :- n(x, y).
remainder(x, y, y % 7) :- n(x, y).
nested(x, y, 1 + (x - 3) / 2 * y) :- n(x, y), x != y.
late(x, y, z) :- n(x, y), x > 2, z = x * y - x, z > 10.
"""


def _quotient(x: int, y: int) -> int:
    """Towards zero."""
    return abs(x) // y * (1 if x >= 0 else -1)


@pytest.mark.parametrize("strategy", ["elastic", "dense", "bfc"])
def test_products_and_quotients_towards_zero(reasons: Reasons, strategy: str) -> None:
    """A block in which a number, or what an action makes of it, is not its own word is left to Python, though actions
    have run on it before."""
    narrow, others = [0, 1, -1, 3, 7, -8, 13, -32768, 32768], [(1 << 30) - 1, 1 << 30, -(1 << 30), 1 << 31, -(1 << 31)]
    given: set[tuple[int, int]] = set()

    def expected() -> dict[str, set[tuple[int, int, int]]]:
        return {
            "product": {(x, y, x * y) for x, y in given},
            "id": {(x, y, 4 * x + y) for x, y in given},
            "quotient": {(x, y, _quotient(x, 7)) for x, y in given},
            "remainder": {(x, y, y - 7 * _quotient(y, 7)) for x, y in given},
            "nested": {(x, y, 1 + _quotient(x - 3, 2) * y) for x, y in given if x != y},
            "late": {(x, y, x * y - x) for x, y in given if x > 2 and x * y - x > 10},
        }

    steps = (
        [(x, y) for x in narrow[:6] for y in narrow],
        [(x, y) for x in narrow for y in narrow[3:]],
        [(x, y) for x in (*narrow, *others) for y in others],
    )
    with elastalog.open(PRODUCTS, budget=None, engine="local", strategy=strategy) as db:
        for come, gone in [*((rows, []) for rows in steps), *(([], rows[::2]) for rows in steps)]:
            db.apply({"n": come}, {"n": gone})
            given = given - set(gone) | set(come)
            assert {name: set(db[name]) for name in db if name != "n"} == expected()
        assert strategy != "elastic" or reasons.seen[layout.ACTIONS]
        reasons.seen.clear()
        db.apply({"n": [(5, -9)]})
        db.apply(deleted={"n": [(5, -9)]})
        assert not reasons.seen[layout.ACTIONS]


def test_an_index_that_a_drive_finds_behind_is_caught_up_with(reasons: Reasons) -> None:
    """`q` grows in its own stratum, whose rules do not use the index by which the stratum above reads it."""
    program = ".decl e, q, r(x: number, y: number)\n.decl s(x: number)\n"
    program += "q(y, x) :- e(x, y).\nr(x, z) :- s(x), q(x, z).\nr(x, z) :- r(x, y), q(y, z), s(z)."
    edges = [(i + 1, i) for i in range(200)]
    with elastalog.open(program, facts={"e": edges, "s": [(i,) for i in range(300)]}, engine="local") as db:
        db.engine.warm()
        db.apply({"e": [(201, 200)]})
        reasons.seen.clear()
        for last in range(201, 206):
            db.apply({"e": [(last + 1, last)]})
            db.apply({"s": [(last + 1000,)]})
            assert set(db["r"]) == {(x, z) for x in range(last + 1) for z in range(x + 1, min(last + 2, 300))}
        assert reasons.seen[layout.NO_INDEX] < 2  # one may be full


def test_an_index_that_has_to_grow_waits_while_a_stratum_is_under_way(reasons: Reasons) -> None:
    """`a` grows on a drive that leaves off in the stratum above, to look at limits, before anything there has asked for
    its index of `a`: from walks to node 100, of which there are none until then."""
    program = ".decl begin, step, e, a, walk(x: number, y: number)\n.decl end(x: number)\n"
    program += "a(x, y) :- e(x, y).\nwalk(x, y) :- begin(x, y).\nwalk(x, z) :- walk(x, y), step(y, z).\n"
    program += "walk(x, z) :- walk(x, y), end(y), a(y, z)."
    steps, before = [(i, i + 1) for i in range(100)], [(1000 + i, 0) for i in range(200)]
    facts = {"begin": before, "step": steps, "e": [(100, 200)], "end": [(100,)]}
    with elastalog.open(program, facts=facts, engine="local") as db:
        db.engine.warm()
        reasons.seen.clear()
        later, more = [(2000 + i, 0) for i in range(50)], [*((300 + i, i) for i in range(1000)), (100, 201)]
        db.apply({"begin": later, "e": more})
        assert reasons.seen[layout.CHECK]
        assert set(db["walk"]) == {(x, y) for x, _ in (*before, *later) for y in (*range(101), 200, 201)}


def test_sums_and_comparisons_of_narrow_numbers_need_no_python(reasons: Reasons) -> None:
    # What compares with a wide number, or takes from a constant, is left to Python.
    in_python = ("some(x, y) ", "many(x, y) ", "from(x, 7", "before(x, y")
    program = "\n".join(line for line in ARITHMETIC.splitlines() if not line.startswith(in_python))
    with elastalog.open(program, facts={"m": [(1, 2)]}, engine="local") as db:
        db.apply({"n": [(3, 1), (4, 4)]})
        reasons.seen.clear()
        db.apply({"n": [(5, 2)]})
        assert not reasons.seen[layout.ACTIONS]
        db.apply({"n": [(1 << 30, 2)]})
        assert reasons.seen[layout.ACTIONS]


def test_a_range_of_more_rows_than_a_block(reasons: Reasons) -> None:
    judge(
        ".decl n(x: number)\n.decl i(x: number, y: number)\ni(x, y) :- n(x), y = range(0, x).",
        {"n": [(3,)]},
        [{"inserted": {"n": [(layout.BLOCK * 2 + 5,)]}}, {"deleted": {"n": [(3,)]}}],
    )


def test_a_range_of_more_rows_than_a_block_before_other_actions(reasons: Reasons) -> None:
    """The block that the range has given is used up only after the blocks of the next step."""
    program = """
    .decl n(x: number)
    .decl m(y: number, z: number)
    .decl r(x: number, y: number, z: number)
    r(x, y, z) :- n(x), y = range(0, x), m(y, z), y * z % 7 != 3.
    """
    size = layout.BLOCK * 2 + 5
    pairs = [(y, y % 5) for y in range(size)]
    with elastalog.open(program, facts={"n": [(3,)], "m": pairs}, budget=None, engine="local") as db:
        reasons.seen.clear()
        db.apply(inserted={"n": [(size,)]})
        assert {(y, z) for x, y, z in db["r"] if x == size} == {(y, z) for y, z in pairs if y * z % 7 != 3}
    assert reasons.seen[layout.ACTIONS] > 2


@pytest.mark.parametrize(
    ("strategy", "levels", "budget"),
    [
        ("elastic", "local", None),
        ("elastic", "local", "auto"),
        ("elastic", "global", None),
        ("elastic", "global", "auto"),
        ("dense", "local", None),
    ],
)
def test_wherever_it_leaves_off(
    strategy: str, levels: Kind, budget: Budget, reasons: Reasons, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With room for nothing and a look at the limits after every block."""
    make_workspace, make_relation, make_index = Workspace.__init__, KernelRelation.__init__, Index.__init__

    def small_workspace(made: Workspace, words: int = 0, **options: Any) -> None:
        make_workspace(made, words, **options)
        made._take_nodes(np.empty(1, np.dtype(layout.Node)), np.empty((1, words), np.int32))
        made._take_levels(np.full(2, -1, np.int32), np.empty(2, np.int32))

    def small_relation(made: KernelRelation, *arguments: Any, **options: Any) -> None:
        make_relation(made, *arguments, **options)
        made.touched = np.empty((1, TOUCHED_WIDTH), np.int32)

    def small_index(made: Index, *arguments: Any) -> None:
        make_index(made, *arguments)
        made.pool = np.empty(1, np.int32)

    monkeypatch.setattr(Workspace, "__init__", small_workspace)
    monkeypatch.setattr(KernelRelation, "__init__", small_relation)
    monkeypatch.setattr(Index, "__init__", small_index)
    with forced(work_between_checks=1, first_rows=1, spare_counts=1, first_changes=1):
        for seed in range(30):
            follow(*seeded_case(seed), levels, strategy=strategy, budget=budget, engine="local")
    expected = {*range(layout.DONE, layout.CHECK + 1), layout.NO_LISTS, layout.OTHERWISE}
    of_kind = {layout.NO_COUNTS} if strategy == "dense" else set()
    assert set(reasons.seen) == expected | of_kind


def test_a_small_update_is_one_call_once_its_strata_are_laid_out(reasons: Reasons) -> None:
    program = """
    .decl a, b, c, d, e, f(x: number)
    b(x) :- a(x).
    c(x) :- b(x), x > 0.
    d(x) :- c(x), !e(x).
    f(x) :- e(x).
    """
    with elastalog.open(program, facts={"a": [(1,), (2,)], "e": [(2,)]}, engine="local") as db:
        for _ in range(3):
            db.apply(deleted={"a": [(1,)]})
            db.apply(inserted={"a": [(1,)]})
        reasons.seen.clear()
        changes = db.apply(deleted={"a": [(1,)]})
        assert reasons.seen == {layout.DONE: 1}
        assert {name: set(changed.deleted) for name, changed in changes.items()} == {key: {(1,)} for key in "abcd"}
        assert [work.relations for work in db.log()[-1].strata] == [("a",), ("b",), ("c",), ("d",)]
        # It goes no further than changes do.
        db.apply(deleted={"a": [(2,)]})
        assert set(db["d"]) == set()
        assert [work.relations for work in db.log()[-1].strata] == [("a",), ("b",), ("c",), ("d",)]
        db.apply(inserted={"a": [(-1,)]})
        assert [work.relations for work in db.log()[-1].strata] == [("a",), ("b",), ("c",)]


def test_limits_are_looked_at_though_nothing_is_derived(reasons: Reasons, monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
    .decl a, b(x: number)
    .decl c, r(x: number, y: number)
    r(x, y) :- a(x), b(y), !c(x, y).
    """
    some = [(i,) for i in range(100)]
    facts = {"a": [], "b": some, "c": [(x, y) for (x,) in some for (y,) in some]}
    monkeypatch.setattr(SETTINGS, "work_between_checks", 1000)
    with elastalog.open(program, facts=facts, budget=None, engine="local") as db:
        db.apply(inserted={"a": some})
        assert len(db["r"]) == 0
    assert reasons.seen[layout.CHECK] > 0


def test_limits_are_looked_at_and_nothing_is_left_of_an_interrupted_update(
    reasons: Reasons, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    edges = [tuple(edge) for edge in rng.integers(0, 120, (400, 2)).tolist()]
    monkeypatch.setattr(SETTINGS, "work_between_checks", 50)
    with elastalog.open(CLOSURE, facts={"edge": edges[:300]}, budget=None, engine="local") as db:
        before = levels_of(db)
        backend = db._backend
        stops = iter(range(2, 400, 3))
        check = backend.watch.check
        left = next(stops)

        def interrupting() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
            check()

        monkeypatch.setattr(backend.watch, "check", interrupting)
        change = {"inserted": {"edge": edges[300:]}, "deleted": {"edge": edges[:30]}}
        interrupted = 0
        while True:
            try:
                db.apply(**change)
                break
            except KeyboardInterrupt:
                interrupted += 1
                assert levels_of(db) == before
                left = next(stops)
        assert interrupted > 3
        assert reasons.seen[layout.CHECK] > interrupted
        explicit = set(edges[:300]) - set(edges[:30]) | set(edges[300:])
        is_as_anew(db, CLOSURE, {"edge": explicit})
