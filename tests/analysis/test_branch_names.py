"""Algebraic data types in components: instances have branches of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog import Branch
from tests.analysis.checking import codes

PROGRAM = """
.comp C {
  .type T = A {x: number} | B {}
  .decl r(t: T)
  .output r
  r($A(1)).
  r($B).
  r($A(x + 1)) :- r($A(x)), x < 3.
}
.init c = C
.init d = C
.decl q(n: number)
q(x) :- c.r($c.A(x)).
.decl s(t: d.T)
.input s
"""


def test_two_instances_have_their_own_branches() -> None:
    with elastalog.open(PROGRAM, facts={"s": [(Branch("d.A", 7),)]}) as db:
        assert set(db["c.r"]) == {(Branch("c.A", n),) for n in (1, 2, 3)} | {(Branch("c.B"),)}
        assert set(db["d.r"]) == {(Branch("d.A", n),) for n in (1, 2, 3)} | {(Branch("d.B"),)}
        assert set(db["q"]) == {(1,), (2,), (3,)}
        assert set(db["s"]) == {(Branch("d.A", 7),)}
        assert db.explain("c.r($c.A(3))").height == 2
        assert set(db.query("d.r($d.A(X)), X > 2")) == {(3,)}


def test_facts_and_stores_spell_them(tmp_path: Path) -> None:
    (tmp_path / "s.facts").write_text("$d.A(5)\n$d.B\n")
    with elastalog.open(PROGRAM, facts=tmp_path, store=tmp_path / "store") as db:
        assert set(db["s"]) == {(Branch("d.A", 5),), (Branch("d.B"),)}
    with elastalog.open(store=tmp_path / "store") as db:
        db.apply({"s": [(Branch("d.A", 6),)]})
        assert (Branch("d.A", 6),) in db["s"]


@pytest.mark.parametrize("name", ["$A", "$c.A"])
def test_a_branch_that_only_one_instance_has_needs_no_qualifier(name: str) -> None:
    text = PROGRAM.replace(".init d = C\n", "").replace("$c.A", name).replace("d.T", "c.T")
    with elastalog.open(text, facts={"s": []}) as db:
        assert (Branch("c.A", 1),) in db["c.r"]
        assert set(db["q"]) == {(1,), (2,), (3,)}


def test_the_innermost_is_meant_and_others_are_unknown_outside() -> None:
    outer = ".type O = A {}\n.decl o(x: O)\no($A).\n"
    assert codes(outer + PROGRAM) == []
    assert codes(PROGRAM + ".decl u(t: c.T)\nu($A(1)).") == ["E0241"]
