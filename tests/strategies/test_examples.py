"""The worked examples of the papers, with their exact numbers."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

import elastalog
from elastalog.backends.kernel.store.annotations import COUNT, NEW, REFERENCE
from elastalog.backends.sets import Mark, SetMaintenance
from elastalog.evaluation.strategies import dredc
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.session import Session
from tests.refusals import refused
from tests.strategies.running import backend_of, contents, counters

# --- [H] Example 3 ---------------------------------------------------------------------------------------------------

ONE_RULE = ".decl A(x: symbol)\n.decl B(x: symbol, y: symbol)\nA(y) :- A(x), B(x, y).\n"
FACTS = {"A": [("a",), ("b",), ("d",)], "B": [("a", "c"), ("b", "c"), ("c", "d"), ("d", "e")]}


def test_counters_before_and_after_the_update() -> None:
    with elastalog.open(ONE_RULE, FACTS, strategy="dredc") as db:
        assert counters(db, "A") == {("a",): (1, 0), ("b",): (1, 0), ("c",): (0, 2), ("d",): (1, 1), ("e",): (0, 1)}
        db.apply(deleted={"A": [("a",)]})
        assert counters(db, "A") == {("b",): (1, 0), ("c",): (0, 1), ("d",): (1, 1), ("e",): (0, 1)}


def test_counters_between_over_deletion_and_rederivation() -> None:
    with elastalog.open(ONE_RULE, FACTS, strategy="dredc") as db:
        backend = backend_of(db)
        relation = backend.held.relations["A"]
        names = [name for (name,) in db["A"]]
        backend.begin({"A": db.engine.encode("A", [("a",)])}, {})
        stratum = next(s for s in backend.program.strata if "A" in s.relations)

        def over_deletion_only(maintenance: SetMaintenance) -> None:
            deleted = dredc.over_delete(maintenance, Counters())
            found = {}
            for row, name in enumerate(names):
                level = int(relation.level[row])
                if level >= REFERENCE:
                    entry = relation.touched[level - REFERENCE]
                    found[name] = (int(entry[COUNT]), int(entry[NEW]) >> 1)
                else:
                    found[name] = (int(relation.count[row]), level >> 1)
            assert found == {"a": (0, 0), "b": (1, 0), "c": (0, 1), "d": (1, 0), "e": (0, 1)}
            assert {names[row] for row in maintenance.rows_of(deleted)["A"].tolist()} == {"a", "c"}
            assert not maintenance.having(deleted, Mark.PRESENT)
            raise KeyboardInterrupt  # half of it is no new fixpoint

        with pytest.raises(KeyboardInterrupt):
            backend.maintain(stratum, over_deletion_only, is_portable=False)
        backend.rollback()


@pytest.mark.parametrize(("strategy", "over_deleted"), [("dred", 3), ("dredc", 1)])
def test_dred_over_deletes_more_than_dredc(strategy: str, over_deleted: int) -> None:
    """Besides A(a), which was deleted: A(c), A(d), A(e) against A(c)."""
    with elastalog.open(ONE_RULE, FACTS, strategy=strategy) as db:
        update = db.update()
        update.delete("A", [("a",)])
        update.commit()
        assert update.stats.work.counters.over_deletions == over_deleted
        assert set(db["A"]) == {("b",), ("c",), ("d",), ("e",)}


# --- [M] Example 3 ---------------------------------------------------------------------------------------------------

FOUR_RULES = """
.decl p1, p2, p3, p4, q, r, s(x: symbol)
q(x) :- p1(x), p2(x).
q(x) :- p3(x).
r(x) :- q(x).
s(x) :- q(x), p4(x).
"""


@pytest.mark.parametrize("strategy", ["bf", "bfc"])
@pytest.mark.parametrize(("marks", "deletions"), [("eager", 0), ("linked", 0), (None, 1)])
def test_a_marked_fact_needs_no_deletion_rule(strategy: str, marks: str | None, deletions: int) -> None:
    facts = {name: [("c",)] for name in ("p1", "p2", "p3")}
    with elastalog.open(FOUR_RULES, facts, strategy=strategy) as db:
        first, second = db.update(), db.update()
        first.delete("p1", [("c",)])
        first.insert("p4", [("c",)])
        second.delete("p4", [("c",)])
        if marks is not None:
            db.engine.announce(second, marks)
        first.commit()
        done = first.stats.work.counters
        assert (done.deletions, done.insertions) == (1, 1)
        assert (done.marked_explicit, done.marked_implicit) == ((1, 1) if marks else (0, 0))
        assert {n for n, facts in contents(db, db.schemas).items() if facts} == {"p2", "p3", "q", "r", "p4", "s"}
        second.commit()
        assert second.stats.work.counters.deletions == deletions
        assert {n for n, facts in contents(db, db.schemas).items() if facts} == {"p2", "p3", "q", "r"}


# --- [M] Table 2 -----------------------------------------------------------------------------------------------------

NAMES = ("edge", "edge1", "edge2", "edge3", "edge4")
SEQUENCE = "".join(f".decl {name}(x: number, y: number)\n" for name in NAMES) + "".join(
    f"{after}(x, y) :- {before}(x, y).\n" for before, after in pairwise(NAMES)
)
EXPECTED = {10: (1960, 1480, 2360, 480, 480), 20: (3920, 2960, 4320, 960, 960)}
"""By update size: deletions without and with linked marks, insertions, marked explicit, marked implicit."""


Edges = list[tuple[int, int]]


def random_stream(size: int) -> list[tuple[Edges, Edges]]:
    """100 edges first, then 49 updates that delete and insert `size` different edges each."""
    random = Random(size)
    unused = [(x, y) for x in range(100) for y in range(100)]
    random.shuffle(unused)
    present = [unused.pop() for _ in range(100)]
    updates: list[tuple[Edges, Edges]] = [([], list(present))]
    for _ in range(49):
        deleted = random.sample(present, size)
        inserted = [unused.pop() for _ in range(size)]
        present = [edge for edge in present if edge not in deleted] + inserted
        updates.append((deleted, inserted))
    return updates


def play(db: Session, updates: list[tuple[Edges, Edges]], marks: str | None) -> Counters:
    total = Counters()
    prepared = []
    for deleted, inserted in updates:
        update = db.update()
        update.delete("edge", deleted)
        update.insert("edge", inserted)
        prepared.append(update)
    for number, update in enumerate(prepared):
        # As in the paper, the first update is complete before any other is considered.
        if marks is not None and 0 < number < len(prepared) - 1:
            db.engine.announce(prepared[number + 1], marks)
        update.commit()
        total += update.stats.work.counters
    return total


@pytest.mark.parametrize("size", sorted(EXPECTED))
@pytest.mark.parametrize("strategy", ["bf", "bfc"])
def test_sequences_with_linked_marks(strategy: str, size: int) -> None:
    old, new, insertions, explicit, implicit = EXPECTED[size]
    updates = random_stream(size)
    with elastalog.open(SEQUENCE, strategy=strategy) as db:
        plain = play(db, updates, None)
    with elastalog.open(SEQUENCE, strategy=strategy) as db:
        linked = play(db, updates, "linked")
    assert (plain.deletions, linked.deletions) == (old, new)
    assert plain.insertions == linked.insertions == insertions
    assert (linked.marked_explicit, linked.marked_implicit) == (explicit, implicit)
    assert plain.backward == plain.forward == linked.backward == linked.forward == 0


# --- counting --------------------------------------------------------------------------------------------------------

MUTUAL = ".decl e(x: number)\n.decl a(x: number)\n.decl b(x: number)\na(x) :- e(x).\na(x) :- b(x).\nb(x) :- a(x).\n"


def test_counting_refuses_recursion_and_names_the_cycle() -> None:
    with refused("E0901") as refusal:
        elastalog.open(MUTUAL, strategy="counting")
    (found,) = refusal.value.diagnostics
    assert "`a` uses `b` uses `a`" in found.message
    assert [MUTUAL[label.span.start : label.span.end] for label in found.labels] == ["a(x) :- b(x).", "b(x) :- a(x)."]


def test_set_strategies_refuse_global_levels() -> None:
    with refused("E0902"):
        elastalog.open(MUTUAL, strategy="dred", levels="global")


def test_strategies_without_marks_say_so() -> None:
    with elastalog.open(MUTUAL, strategy="dredc") as db, refused("E0903"):
        db.engine.announce(db.update(), "linked")
