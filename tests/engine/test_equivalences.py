"""Equivalences kept as classes: what readers see, what updates change, what it costs, and when all pairs are kept."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.evaluation.strategies import STRATEGIES
from elastalog.planning.lower import lower
from elastalog.program import Program
from elastalog.provenance.check import check_proof
from elastalog.relations.pairs import Pairs
from elastalog.session import Session
from elastalog.settings import SETTINGS
from tests.engine.judging import facts_of, judge
from tests.reference.cases import parse_accepted
from tests.refusals import refused

SAME = """
.decl edge(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
.decl mate(x: number, y: number)
mate(x, y) :- same(x, y), x < y.
.decl member(x: number)
member(x) :- same(x, _).
.decl size(x: number, n: number)
size(x, n) :- same(x, x), n = count : { same(x, _) }.
"""
CONGRUENT = """
.decl edge, next(x: number, y: number)
.decl same(x: number, y: number) eqrel
same(x, y) :- edge(x, y).
same(a, b) :- same(x, y), next(x, a), next(y, b).
"""


def closed(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The equivalence that pairs generate, by Warshall's way."""
    found = pairs | {(y, x) for x, y in pairs} | {(x, x) for pair in pairs for x in pair}
    values = {x for x, _ in found}
    for z in values:
        found |= {(x, y) for x in values for y in values if (x, z) in found and (z, y) in found}
    return found


def kept_as_classes(db: Session) -> frozenset[str]:
    return db._backend.program.equivalences


# --- what is kept --------------------------------------------------------------------------------------------------


def test_a_class_of_many_members_is_a_row_a_member() -> None:
    many = 200_000
    edges = pa.table({"x": np.arange(many - 1), "y": np.arange(1, many)})
    text = SAME.split(".decl mate")[0]
    with elastalog.open(text, {"edge": edges}) as db:
        assert len(db["same"]) == many * many
        assert (0, many - 1) in db["same"]
        assert (0, many) not in db["same"]
        assert len(db.query("same(7, X)")) == many
        assert len(db["same"].head(3)) == 3
        first = next(iter(db["same"]))
        assert first in db["same"]
        with refused("E0660"):
            db["same"].to_arrow()
        with db.update() as update:
            update.delete("edge", [(many // 2 - 1, many // 2)])
        assert len(update.changes["same"].deleted) == many * many // 2
        assert len(db["same"]) == many * many // 2
        stored = db._backend.profile().bytes
        assert sum(size for name, size in stored.items() if "same" in name) < 200 * many


def test_global_levels_keep_all_pairs_and_the_plan_says_why() -> None:
    from elastalog.planning.listing import list_plans
    from elastalog.planning.order import NoStatistics

    with elastalog.open(CONGRUENT, {"edge": [(1, 2)], "next": [(1, 5), (2, 6)]}, levels="global") as db:
        assert not kept_as_classes(db)
        assert set(db["same"]) == closed({(1, 2), (5, 6)})
    plans = "\n".join(list_plans(lower(Program.parse(CONGRUENT).checked), NoStatistics()))
    assert "all pairs of same are kept: a rule of it reads it" in plans
    plans = "\n".join(list_plans(lower(Program.parse(SAME).checked), NoStatistics()))
    assert "classes of same: each member with the one that represents its class" in plans


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("edge(x, y) :- same(x, y).", "it depends on itself through `edge`"),
        (".limitsize same(n=5)", "it has a `.limitsize`"),
        ("same(x, a) <= same(x, b) :- b < a.", "it has a subsumption"),
    ],
)
def test_why_all_pairs_are_kept(more: str, why: str) -> None:
    from elastalog.planning.equivalences import why_by_pairs

    program = Program.parse(SAME + more).checked
    assert why_by_pairs(program.relations["same"], program) == why


def test_a_pair_does_not_keep_itself_alive() -> None:
    text = SAME.split(".decl mate")[0] + "edge(x, y) :- same(x, y).\n"
    with elastalog.open(text, {"edge": [(1, 2), (2, 3)]}) as db:
        db.apply(deleted={"edge": [(2, 3)]})
        assert set(db["edge"]) == set(db["same"]) == closed({(1, 2)})
        db.apply(deleted={"edge": [(1, 2)]})
        assert not db["edge"]
        assert not db["same"]


@pytest.mark.parametrize("options", [{"levels": "global"}, {"metric": "size"}, {"engine": "gpu"}, {"jobs": 2}])
def test_options_do_not_change_the_facts(options: dict[str, str]) -> None:
    edges = {(1, 2), (2, 3), (5, 6)}
    with elastalog.open(SAME, {"edge": edges, "same": [(3, 5)]}, **options) as db:
        assert bool(kept_as_classes(db)) == ("levels" not in options)
        assert set(db["same"]) == closed({*edges, (3, 5)})
        db.apply(deleted={"same": [(3, 5)]})
        judge(db, parse_accepted(SAME), {"edge": edges}, is_annotated=False)
        for fact in ("same(1, 3)", "mate(1, 3)", "member(1)", "size(1, 3)"):
            proof = db.explain(fact)
            facts = {name: set(db[name]) for name in db}
            assert check_proof(proof, db.program.checked, {"edge": edges}, facts)


# --- levels --------------------------------------------------------------------------------------------------------


def test_levels_of_pairs() -> None:
    """By hand: 1-2 and 2-3 are given, 3-4 is derived."""
    with elastalog.open(SAME, {"same": [(1, 2), (2, 3)], "edge": [(3, 4), (1, 2)]}) as db:
        table = db["same"].to_arrow(annotations=True).to_pylist()
    level = {(row["x"], row["y"]): row["@level"] for row in table}
    assert {row["@count"] for row in table} == {1}
    assert level[1, 2] == level[2, 3] == 0
    assert level[2, 1] == level[1, 3] == level[1, 1] == level[3, 3] == 1
    assert level[3, 4] == 1
    assert level[4, 3] == level[4, 4] == level[1, 4] == 2


# --- updates -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_merges_and_splits_classes(strategy: str) -> None:
    random = Random(5)
    edges: set[tuple[int, int]] = set()
    given: set[tuple[int, int]] = set()
    before: set[tuple[int, int]] = set()
    with elastalog.open(SAME, strategy=strategy) as db:
        for _ in range(25):
            came, put = ({(random.randrange(9), random.randrange(9)) for _ in range(2)} for _ in range(2))
            gone, taken = ({pair for pair in sorted(known) if random.random() < 0.25} for known in (edges, given))
            with db.update() as update:
                for name, deleted, inserted in (("edge", gone, came), ("same", taken, put)):
                    update.delete(name, deleted)
                    update.insert(name, inserted)
            edges, given = (edges - gone) | came, (given - taken) | put
            now = closed(edges | given)
            assert facts_of(db) == {
                "edge": edges,
                "same": now,
                "mate": {(x, y) for x, y in now if x < y},
                "member": {(x,) for x, _ in now},
                "size": {(x, sum(x == other for other, _ in now)) for x, _ in now},
            }
            assert set(update.changes["same"].inserted) == now - before
            assert set(update.changes["same"].deleted) == before - now
            assert update.changes.impact >= len(now ^ before)
            before = now


def test_few_rows_change_when_a_value_joins_a_large_class() -> None:
    """The class that most members come from keeps its representative, though a lesser value joins it."""
    with elastalog.open(SAME, {"edge": [(x, x + 1) for x in range(100, 150)]}) as db:
        with db.update() as update:
            update.insert("edge", [(150, 1)])
        changed = db._backend.held.relations["@classes.same"]
        assert changed.used == 52
        assert len(update.changes["same"].inserted) == 2 * 51 + 1


# --- changes of rules ----------------------------------------------------------------------------------------------


def test_a_rule_that_reads_the_relation_has_all_pairs_written_out(tmp_path: Path) -> None:
    rule = "same(a, b) :- same(x, y), next(x, a), next(y, b)."
    facts = {"edge": [(1, 2), (2, 3)], "next": [(1, 7), (3, 8)], "same": [(0, 1)]}
    text = CONGRUENT.replace(rule, "") + ".decl mate(x: number, y: number)\nmate(x, y) :- same(x, y), x < y.\n"
    given = {(1, 2), (2, 3), (0, 1)}
    with elastalog.open(text, facts, store=tmp_path / "store") as db:
        assert kept_as_classes(db) == {"same"}
        with db.update() as update:
            update.add_rules(rule)
        assert not kept_as_classes(db)
        grown = closed({*given, (7, 8)})
        assert set(db["same"]) == grown
        assert set(update.changes["same"].inserted) == grown - closed(given)
        assert set(db["mate"]) == {(x, y) for x, y in grown if x < y}
        assert db.verify().is_exact
    with elastalog.open(store=tmp_path / "store") as db:
        assert set(db["same"]) == grown
        with db.update() as update:
            update.remove_rules(rule)
        assert set(update.changes["same"].deleted) == grown - closed(given)
        assert set(db["same"]) == closed(given)
        assert set(db.diff(1, 2)["same"].inserted) == grown - closed(given)
        assert "same" not in db.diff(1, 3)
        db.apply(deleted={"edge": [(2, 3)]})
        assert set(db["same"]) == closed({(1, 2), (0, 1)})


def test_a_rule_that_is_refused_leaves_the_classes_as_they_were() -> None:
    with elastalog.open(SAME, {"edge": [(1, 2)]}) as db:
        with pytest.raises(ElastalogError), db.update() as update:
            update.add_rules(f"same(a, a + {2**63 - 1}) :- same(a, _), a > 0.")
        assert kept_as_classes(db) == {"same"}
        assert set(db["same"]) == closed({(1, 2)})
        db.apply({"edge": [(2, 3)]})
        assert set(db["same"]) == closed({(1, 2), (2, 3)})
        assert db.verify().is_exact


def test_an_upgrade_may_declare_another_equivalence() -> None:
    more = ".decl alike(x: number, y: number) eqrel\nalike(x, y) :- same(x, y), x < 3, y < 3.\n"
    with elastalog.open(SAME, {"edge": [(1, 2), (2, 3)]}) as db:
        db.upgrade(SAME + more)
        assert set(db["alike"]) == closed({(1, 2)})
        db.apply({"edge": [(0, 1)]}, {"edge": [(2, 3)]})
        assert set(db["alike"]) == set(db["same"]) == closed({(0, 1), (1, 2)})
        assert db.verify().is_exact


def test_verification_sees_wrong_classes() -> None:
    with elastalog.open(SAME, {"edge": [(1, 2), (3, 4)]}) as db:
        classes = db._backend.held.relations["@classes.same"]
        classes.rows[:4, 1] = classes.rows[0, 1]
        assert db.verify().misplaced["same"] == 8


# --- stores --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["elastic", "recompute"])
def test_a_store_keeps_classes_and_their_history(strategy: str, tmp_path: Path) -> None:
    edges = {(1, 2), (3, 4)}
    with elastalog.open(SAME, {"edge": edges}, store=tmp_path / "store", strategy=strategy) as db:
        db.apply({"edge": [(2, 3)]})
        db.apply(deleted={"edge": [(1, 2)]})
        db.apply({"edge": [(1, 2)]})
        whole = closed({(1, 2), (2, 3), (3, 4)})
    with elastalog.open(store=tmp_path / "store") as db:
        assert kept_as_classes(db) == {"same"}
        assert set(db["same"]) == whole
        assert [(turn.epoch, turn.what) for turn in db.history("same(1, 4)")] == [
            (2, "appeared"),
            (3, "disappeared"),
            (4, "appeared"),
        ]
        assert set(db.diff(1, 3)["same"].inserted) == closed({(2, 3), (3, 4)}) - closed(edges)
        assert set(db.diff(1, 3)["same"].deleted) == closed(edges) - closed({(2, 3), (3, 4)})
        assert set(db.changes_since(1)["same"].inserted) == whole - closed(edges)
        # An edge, 8 pairs of `same`, 4 of `mate`, and all four sizes.
        assert db.log()[1].impact == 1 + 8 + 4 + 8
        assert set(db.at(1)["same"]) == closed(edges)
        assert db.verify().is_exact


# --- proofs, faults ------------------------------------------------------------------------------------------------


def test_a_proof_is_the_shortest_chain_that_attains_the_level() -> None:
    """From 1 to 4: two links by derived pairs, three by given ones, which are lower."""
    given = [(1, 2), (3, 2), (3, 4)]
    with elastalog.open(SAME, {"same": given, "edge": [(1, 9), (9, 4)]}) as db:
        proof = db.explain("same(1, 4)")
        assert [child.fact.values for child in proof.children] == given
        assert proof.height == 1
        assert "eqrel: same(x, z) :- same(x, y), same(y, z)." in str(proof)
        assert [child.fact.values for child in db.explain("same(2, 9)").children] == [(1, 2), (1, 9)]
        assert len(db.derivations("same(1, 4)")) == 1
        assert [proof.height for proof in db.proofs("same(1, 4)")] == [1]


def test_the_checker_rejects_chains_that_do_not_connect() -> None:
    from dataclasses import replace

    with elastalog.open(SAME, {"same": [(1, 2), (2, 3), (3, 4), (5, 6)]}) as db:
        facts = {name: set(db[name]) for name in db}
        explicit = {"same": {(1, 2), (2, 3), (3, 4), (5, 6)}}
        proof = db.explain("same(1, 4)")
        other = db.explain("same(5, 6)")
        assert check_proof(proof, db.program.checked, explicit, facts)
        for children in (proof.children[1:], proof.children[::2], (*proof.children[:2], other), ()):
            wrong = replace(proof, children=children)
            assert not check_proof(wrong, db.program.checked, explicit, facts)
        wrong = replace(db.explain("same(1, 1)"), children=(other,))
        assert not check_proof(wrong, db.program.checked, explicit, facts)


def test_why_not_says_which_classes_are_apart() -> None:
    with elastalog.open(SAME, {"edge": [(1, 2), (2, 3), (7, 8)]}) as db:
        absence = db.why_not("same(1, 8)")
        assert absence.notes == ("1 is in a class of 3, 8 is in a class of 2, and nothing connects them",)
        assert "1 is in a class of 3" in str(absence)
        assert [found.rule.is_closure for found in absence.instantiations] == [False]
        assert "9 is in no class" in str(db.why_not("same(1, 9)"))


def test_faults_are_looked_for_among_all_pairs() -> None:
    with elastalog.open(SAME, {"edge": [(1, 2), (3, 4)]}) as db:
        db.apply({"edge": [(2, 3), (8, 9)]})
        assert [str(element) for element in db.suggest(unwanted=["same(1, 4)"]).elements] == ["+edge(2, 3)"]
        assert [str(element) for element in db.localise(unwanted=["mate(1, 3)"]).elements] == ["+edge(2, 3)"]
        assert db.blame("same(4, 1)").epoch == 2


# --- pairs ---------------------------------------------------------------------------------------------------------


def test_pairs_are_counted_and_written_out_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(3)
    monkeypatch.setattr(SETTINGS, "pairs_at_once", 5)
    for _ in range(50):
        these, those = ({x: random.randrange(4) for x in range(8) if random.random() < 0.8} for _ in range(2))
        named = [np.array(sorted(c.items()), np.int32).reshape(-1, 2) for c in (these, those)]
        pairs = Pairs.between(*named)
        want = {
            (x, y)
            for x in these
            for y in these
            if these[x] == these[y] and not (x in those and y in those and those[x] == those[y])
        }
        blocks = [tuple(row) for block in pairs.blocks() for row in block.tolist()]
        assert len(pairs) == len(blocks) == len(want)
        assert set(blocks) == want == {tuple(row) for row in pairs.words().tolist()}
        assert all(pairs.has((x, y)) == ((x, y) in want) for x in range(8) for y in range(8))


def test_changes_of_classes_are_counted_before_they_are_written_out() -> None:
    random = Random(5)
    for _ in range(60):
        before, now = ({x: random.choice((0, 3, 5)) for x in range(9) if random.random() < 0.8} for _ in range(2))
        went = {(x, name) for x, name in before.items() if now.get(x) != name}
        came = {(x, name) for x, name in now.items() if before.get(x) != name}
        touched = {name for _, name in came | went}
        rows = [
            np.array(sorted(some), np.int32).reshape(-1, 2)
            for some in ({(x, name) for x, name in now.items() if name in touched}, came, went)
        ]
        for pairs, these, those in zip(Pairs.changed(*rows), (now, before), (before, now), strict=True):
            want = {
                (x, y)
                for x in these
                for y in these
                if these[x] == these[y] and not (x in those and y in those and those[x] == those[y])
            }
            assert len(pairs) == len(want)
            assert {tuple(row) for row in pairs.words().tolist()} == want


@pytest.mark.parametrize("is_searched", [True, False])
@pytest.mark.parametrize("shape", ["path", "tree", "star", "cycles", "random"])
def test_classes_divide_and_join_as_union_and_find_says(
    shape: str, is_searched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_searched:  # as where large parts come apart
        monkeypatch.setattr(SETTINGS, "separation_least", 0)
        monkeypatch.setattr(SETTINGS, "separation_share", 1 << 30)
    random = Random(shape)
    size = 120
    edges = {
        "path": {(x, x + 1) for x in range(size)},
        "tree": {(random.randrange(x), x) for x in range(1, size)},
        "star": {(0, x) for x in range(1, size)} | {(x, x + 1) for x in range(1, 40)},
        "cycles": {(x, x // 20 * 20 + (x + 1) % 20) for x in range(size)} | {(x, x + 20) for x in range(0, size, 40)},
        "random": {(random.randrange(size), random.randrange(size)) for _ in range(size)},
    }[shape]
    with elastalog.open(SAME, {"edge": edges}) as db:
        for number in (1, 1, 2, 5, 20, 1, 40, 3):
            gone = set(random.sample(sorted(edges), min(number, len(edges))))
            come = {
                (random.randrange(size + 9), random.randrange(size + 9)) for _ in range(random.choice((0, 0, 1, 9)))
            }
            known = set(db["same"])
            changes = db.apply({"edge": come}, {"edge": gone})
            edges = (edges - gone) | come
            classes: dict[int, set[int]] = {}
            for x, y in edges:
                merged = classes.get(x, {x}) | classes.get(y, {y})
                classes.update(dict.fromkeys(merged, merged))
            want = {(x, y) for x, members in classes.items() for y in members}
            assert set(db["same"]) == want
            assert len(db["same"]) == len(want)
            if "same" in changes:
                assert set(changes["same"].inserted) == want - known
                assert set(changes["same"].deleted) == known - want
            else:
                assert known == want
        assert db.verify().is_exact
