"""Records, equivalences, choice domains and subsumption among components, inline relations, queries and rules that
come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog import Branch, ElastalogError
from elastalog.provenance.check import check_proof

EQUIVALENCE = """
.comp Eq<T> {
    .decl base, other(x: T, y: T)
    .decl same(x: T, y: T) eqrel
    same(x, y) :- base(x, y).
}
.init a = Eq<number>
.init b = Eq<symbol>
a.base(1, 2).
b.base("u", "v").
"""

DISTANCES = """
.decl edge(x: number, y: number, w: number)
.comp Distances {
    .decl far(x: number, n: number)
    far(0, 0).
    far(y, n + w) :- far(x, n), edge(x, y, w).
    far(x, a) <= far(x, b) :- b < a.
    .decl next(x: number, y: number) choice-domain x
    next(x, y) :- far(x, _), edge(x, y, _).
}
.init d = Distances
"""

TREES = """
.type Tree = Leaf {v: number} | Node {l: Tree, r: Tree}
.type Pair = [a: number, b: symbol]
.decl tree, part, other(t: Tree)
.decl pair(p: Pair)
.decl is_leaf(t: Tree, v: number) inline
is_leaf(t, v) :- t = $Leaf(v).
.decl value(v: number)
tree($Node($Leaf(1), $Node($Leaf(2), $Leaf(3)))).
pair([1, "a"]).
pair(nil).
part(t) :- tree(t).
part(t) :- part($Node(t, _)) ; part($Node(_, t)).
value(v) :- part(t), is_leaf(t, v).
other(t) :- part(t), !(t = $Leaf(1)), !is_leaf(t, 2).
"""


def code_of(error: pytest.ExceptionInfo[ElastalogError]) -> str:
    return error.value.diagnostics[0].code


def test_every_instance_has_its_own_equivalence() -> None:
    with elastalog.open(EQUIVALENCE) as db:
        assert set(db["a.same"]) == {(x, y) for x in (1, 2) for y in (1, 2)}
        assert set(db["b.same"]) == {(x, y) for x in "uv" for y in "uv"}
        with db.update() as update:
            update.add_rules("a.same(x, y) :- a.other(x, y).")
            update.insert("a.other", [(2, 3)])
        assert set(db["a.same"]) == {(x, y) for x in (1, 2, 3) for y in (1, 2, 3)}
        assert db.program.flat_text.count("eqrel") == 2
        assert "a.same(y, x)" not in db.program.flat_text
        with db.update() as update:
            update.remove_rules("a.same(x, y) :- a.base(x, y).")
        assert set(db["a.same"]) == {(x, y) for x in (2, 3) for y in (2, 3)}
        assert db.verify()


def test_proofs_name_the_rules_of_an_equivalence() -> None:
    with elastalog.open(EQUIVALENCE) as db:
        text = str(db.explain("a.same(2, 2)"))
        assert "eqrel: a.same(x, x) :- a.same(x, _)." in text
        assert "eqrel: a.same(y, x) :- a.same(x, y)." in str(db.explain("a.same(2, 1)"))


@pytest.mark.parametrize("rule", [1, "a.same(y, x) :- a.same(x, y)."])
def test_a_rule_that_eqrel_stands_for_is_not_removed_alone(rule: int | str) -> None:
    with elastalog.open(EQUIVALENCE) as db:
        with pytest.raises(ElastalogError) as error, db.update() as update:
            update.remove_rules(rule)
        assert code_of(error) == "E0616"
        assert db.epoch == 1


def test_choice_and_subsumption_in_a_component() -> None:
    with elastalog.open(DISTANCES, {"edge": [(0, 1, 5), (0, 2, 1), (2, 1, 1)]}) as db:
        assert set(db["d.far"]) == {(0, 0), (1, 2), (2, 1)}
        assert set(db["d.next"]) == {(0, 1), (2, 1)}
        db.apply({"edge": [(1, 3, 1), (0, 3, 9)]})
        assert set(db["d.far"]) == {(0, 0), (1, 2), (2, 1), (3, 3)}
        assert set(db["d.next"]) == {(0, 1), (1, 3), (2, 1)}


def test_a_subsumption_that_is_added_takes_facts_away_at_once() -> None:
    text = ".decl given, far(x: number, n: number)\nfar(x, n) :- given(x, n)."
    with elastalog.open(text, {"given": [(1, 2), (1, 3)]}) as db:
        with db.update() as update:
            update.add_rules("far(x, a) <= far(x, b) :- b < a.")
        assert set(db["far"]) == {(1, 2)}
        db.apply({"given": [(1, 1), (2, 9)]})
        assert set(db["far"]) == {(1, 1), (2, 9)}


def test_subsumptions_count_for_themselves() -> None:
    text = """
    .decl w, a, b(x: number, y: number)
    .decl c(x: number)
    a(x, y) :- w(x, y).
    b(x, y) :- w(x, y).
    c(n) :- n = count : { w(_, _) }.
    a(x, y) <= a(x, z) :- z < y, w(x, _), 1 < count : { w(x, _) }.
    b(x, y) <= b(x, z) :- z < y, w(x, _), 0 < sum k : { w(x, k), k > 2 }.
    """
    with elastalog.open(text, {"w": [(1, 1), (1, 2), (2, 1), (2, 3), (3, 7)]}) as db:
        assert set(db["a"]) == {(1, 1), (2, 1), (3, 7)}
        assert set(db["b"]) == {(1, 1), (1, 2), (2, 1), (3, 7)}
        with db.update() as update:
            update.add_rules("c(x) :- w(x, _).")
            update.insert("w", [(1, 3)])
        assert set(db["b"]) == {(1, 1), (2, 1), (3, 7)}
        assert set(db["c"]) == {(6,), (1,), (2,), (3,)}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("q(x) <= q(y) :- x < y.", "E0204"),
        (".decl q(x: number) inline\n.decl r(x: number)\nr(x) :- q(x).\nq(1).\nq(x) <= q(y) :- x < y.", "E0226"),
    ],
)
def test_what_cannot_be_subsumed(text: str, code: str) -> None:
    with pytest.raises(ElastalogError) as error:
        elastalog.open(text)
    assert code_of(error) == code


@pytest.mark.parametrize("engine", ["local", "gpu"])
def test_inline_rules_take_records_apart(engine: str) -> None:
    with elastalog.open(TREES, engine=engine) as db:
        assert set(db["value"]) == {(1,), (2,), (3,)}
        assert len(db["part"]) == 5
        assert Branch("Leaf", 3) in {t for (t,) in db["other"]}
        assert len(db["other"]) == 3
        assert [rule for rule in db.program.checked.rules if rule.head.relation == "tree"] == []


def test_queries_about_records() -> None:
    with elastalog.open(TREES) as db:
        assert set(db.query("part($Leaf(X))")) == {(1,), (2,), (3,)}
        assert list(db.query("pair([1, X])")) == [("a",)]
        assert set(db.query("pair(X)")) == {((1, "a"),), (None,)}
        assert list(db.query("part(X), X = $Leaf(3)")) == [(Branch("Leaf", 3),)]
        assert list(db.query("part(?t)", t=Branch("Leaf", 2))) == [()]
        assert list(db.query("part(?t)", t=Branch("Leaf", 9))) == []
        assert list(db.query("pair(?p), value(X), X < 2", p=(1, "a"))) == [(1,)]
        assert len(db.query("pair(?p)", p=None)) == 1


def test_facts_of_the_text_with_records_are_no_rules(tmp_path: Path) -> None:
    with elastalog.open(TREES, store=tmp_path / "store") as db:
        with db.update() as update:
            update.add_rules('pair([v, "z"]) :- value(v), v > 2.')
        assert set(db["pair"]) == {((1, "a"),), (None,), ((3, "z"),)}
    with elastalog.open(store=tmp_path / "store") as db:
        with db.update() as update:
            update.remove_rules('pair([v, "z"]) :- value(v), v > 2.')
        assert set(db["pair"]) == {((1, "a"),), (None,)}
        assert db.verify()


def test_an_upgrade_does_not_lose_a_subsumption_or_change_a_choice() -> None:
    text = ".decl w, far(x: number, n: number)\nfar(x, n) :- w(x, n).\n"
    with elastalog.open(text, {"w": [(1, 2), (1, 3)]}) as db:
        db.upgrade(text + "far(x, a) <= far(x, b) :- b < a.\n")
        assert set(db["far"]) == {(1, 2)}
        with pytest.raises(ElastalogError) as error:
            db.upgrade(text)
        assert code_of(error) == "E0820"
        with pytest.raises(ElastalogError) as error:
            db.upgrade(text.replace(")\nfar", ") choice-domain x\nfar", 1) + "far(x, a) <= far(x, b) :- b < a.\n")
        assert code_of(error) == "E0820"


FALLING = """
.decl start(x: number)
.decl low(x: number, n: number)
low(x, x) :- start(x).
low(x, n - 1) :- low(x, n), n > 1.
low(x, a) <= low(x, b) :- b < a.
"""


def test_every_proof_says_what_superseded_its_premises() -> None:
    with elastalog.open(FALLING, {"start": [(3,)]}) as db:
        assert list(db["low"]) == [(3, 1)]
        (proof,) = db.proofs("low(3, 1)")
        explicit, facts = ({name: set(read(name)) for name in db} for read in (db.explicit, db.__getitem__))
        assert check_proof(proof, db.program.checked, explicit, facts).accepted
        (derivation,) = elastalog.open(FALLING, {"start": [(3,)]}).derivations("low(3, 1)")
        for found in (proof, derivation):
            premise = found.children[0]
            assert str(premise.superseded_by) == "low(3, 1)"


def test_faults_behind_an_equivalence_are_found_under_every_strategy() -> None:
    program = ".decl same(x: number, y: number) eqrel\n.decl near(x: number)\nnear(x) :- same(1, x).\n"
    for strategy in ("elastic", "counting", "dredc"):
        with elastalog.open(program, {"same": [(1, 2)]}, strategy=strategy) as db:
            db.apply({"same": [(2, 3)]})
            assert list(db.suggest(unwanted=["near(3)"]).elements) == [("+", ("same", (2, 3)))]
