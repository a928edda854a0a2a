"""Columns that improve: least and greatest values of every type, and lattices that users declare."""

from __future__ import annotations

from math import inf, isnan, nan
from typing import Any

import pytest

import elastalog
from elastalog import Branch, Program
from elastalog.diagnostics.diagnostic import ElastalogError
from tests.tables import table

SIGNS = """
.type Sign = Bot {} | Neg {} | Pos {} | Top {}
.functor lub(a: Sign, b: Sign): Sign stateful
.functor glb(a: Sign, b: Sign): Sign stateful
.lattice Sign<> { Bottom -> $Bot, Top -> $Top, Lub -> @lub(_, _), Glb -> @glb(_, _) }
.decl assign(x: symbol, y: symbol)
.decl value, known, both(x: symbol, v: Sign<>)
value(x, v) :- value(y, v), assign(x, y).
both(x, v) :- value(x, v), known(x, v).
"""
BOT, NEG, POS, TOP = (Branch(name) for name in ("Bot", "Neg", "Pos", "Top"))


def lub(a: Branch, b: Branch) -> Branch:
    return b if a in (b, BOT) else a if b == BOT else TOP


def glb(a: Branch, b: Branch) -> Branch:
    return b if a in (b, TOP) else a if b == TOP else BOT


@pytest.mark.parametrize("strategy", ["elastic", "recompute", "dred"])
def test_a_lattice_of_signs(strategy: str) -> None:
    facts: dict[str, Any] = {
        "assign": {("b", "a"), ("c", "b"), ("b", "c")},
        "value": {("a", NEG), ("d", POS), ("e", NEG)},
        "known": {("b", POS), ("d", TOP), ("e", POS)},
    }
    functors = {"lub": lub, "glb": glb}
    with elastalog.open(SIGNS, facts, functors=functors, strategy=strategy) as db:
        assert dict(db["value"]) == {"a": NEG, "b": NEG, "c": NEG, "d": POS, "e": NEG}
        assert dict(db["both"]) == {"d": POS}  # `b` and `e` have nothing in common
        db.apply({"value": [("c", POS)]})
        assert dict(db["value"]) == {"a": NEG, "b": TOP, "c": TOP, "d": POS, "e": NEG}
        assert dict(db["both"]) == {"b": POS, "d": POS}
        assert "@glb" in str(db.explain(("both", ("b", POS))))
        db.apply(deleted={"value": [("a", NEG)], "assign": [("c", "b")]})
        assert dict(db["value"]) == {"b": POS, "c": POS, "d": POS, "e": NEG}
        assert db.verify().is_exact


def test_leq_says_which_values_leave() -> None:
    text = (
        ".functor join(a: number, b: number): number\n.functor below(a: number, b: number): number\n"
        ".type Bits <: number\n.lattice Bits<> { Lub -> @join(_, _), Leq -> @below(_, _) }\n"
        ".decl p(x: symbol, v: Bits<>, n: max number)\n"
    )
    functors = {"join": lambda a, b: a | b, "below": lambda a, b: int(a | b == b)}
    given = [("a", 1, 7), ("a", 4, 2), ("b", 2, 1), ("b", 2, 3)]
    with elastalog.open(text, {"p": given}, functors=functors) as db:
        assert set(db["p"]) == {("a", 5, 7), ("b", 2, 3)}
        db.apply(deleted={"p": [("a", 4, 2), ("b", 2, 3)]})
        assert set(db["p"]) == {("a", 1, 7), ("b", 2, 1)}


def test_a_lattice_of_a_component() -> None:
    text = (
        ".functor join(a: number, b: number): number\n"
        ".comp C { .type T <: number .lattice T<> { Lub -> @join(_, _) } .decl p(v: T<>) .decl q(x: T, v: min T)\n"
        "q(v, v) :- p(v). q(0, 3). q(0, 2). }\n.init i = C\n"
    )
    with elastalog.open(text, {"i.p": [(1,), (6,)]}, functors={"join": lambda a, b: a | b}) as db:
        assert list(db["i.p"]) == [(7,)]
        assert set(db["i.q"]) == {(7, 7), (0, 2)}


@pytest.mark.parametrize(
    ("kind", "values", "best"),
    [
        ("min float", [0.5, -inf, nan], -inf),
        ("max float", [0.5, nan, inf], inf),
        ("max float", [nan, -2.0], -2.0),
        ("min symbol", ["b", "é", ""], ""),
        ("max symbol", ["b", "é", ""], "é"),
        ("min unsigned", [2**64 - 1, 2**63], 2**63),
        ("max unsigned", [2**64 - 1, 7], 2**64 - 1),
        ("max number", [-(2**63), -5], -5),
        ("min number", [-(2**63), 2**63 - 1], -(2**63)),
    ],
)
def test_every_type_with_an_order_has_a_best_value(kind: str, values: list[Any], best: Any) -> None:
    with elastalog.open(f".decl p(x: number, v: {kind})", {"p": [(1, value) for value in values]}) as db:
        assert list(db["p"]) == [(1, best)]
        db.apply(deleted={"p": [(1, best)]})
        ((_, left),) = db["p"]
        assert any(left is value or left == value or value != value for value in values)


def test_nan_stays_where_there_is_nothing_else() -> None:
    with elastalog.open(".type W <: float\n.decl p(v: min W)", {"p": [(nan,), (1.0,)]}) as db:
        assert list(db["p"]) == [(1.0,)]
        db.apply(deleted={"p": [(1.0,)]})
        ((left,),) = db["p"]
        assert isnan(left)


@pytest.mark.parametrize(("text", "code", "message"), table(__file__, "what cannot improve is said"))
def test_what_cannot_improve_is_said(text: str, code: str, message: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse(".functor f(a: number, b: number): number\n" + text)
    assert [found.code for found in raised.value.diagnostics if message in found.message] == [code]


def test_an_upgrade_does_not_change_what_is_kept() -> None:
    with (
        elastalog.open(".decl p(x: number, n: min number)", {"p": [(1, 2), (1, 3)]}) as db,
        pytest.raises(ElastalogError, match="declares `p` with other attributes"),
    ):
        db.upgrade(".decl p(x: number, n: number)")
