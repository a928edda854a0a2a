"""Functors of users over records, and aggregates that they fold: values, updates, proofs, and what is refused."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source
from elastalog.program import Program
from elastalog.provenance.check import check_proof
from elastalog.provenance.ground import Run
from elastalog.relations.functions import with_records
from elastalog.syntax.format import format_program
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from tests.refusals import refused
from tests.tables import table

STRATEGIES = ["elastic", "recompute", "dense", "dred", "dredc", "bf", "bfc"]

RECORDS = """
.type Interval = [least: number, most: number]
.type List = [head: number, tail: List]
.type Sign = Minus {} | Plus {} | Far {by: number}
.functor hull(a: Interval, b: Interval): Interval stateful
.functor tail(l: List): List stateful
.functor sign(x: number): Sign stateful
.functor width(a: Interval): number stateful
.decl given(x: number, i: Interval)
.input given
.decl joined(x: number, i: Interval)
joined(x, @hull(a, b)) :- given(x, a), given(x, b).
.decl wide(n: number)
wide(@width(a)) :- joined(_, a).
.decl list(l: List)
list([1, [2, nil]]).
list(@tail(l)) :- list(l), l != nil.
.decl signs(n: number, s: Sign)
signs(n, @sign(n)) :- wide(n).
signs(n - 3, $Far(2)) :- wide(n), @sign(n - 3) = $Minus.
"""


def hull(a: Any, b: Any) -> Any:
    return min(a[0], b[0]), max(a[1], b[1])


def sign(x: int) -> elastalog.Branch:
    return elastalog.Branch("Minus" if x < 0 else "Plus")


OF_RECORDS = {"hull": hull, "tail": lambda given: given[1], "sign": sign, "width": lambda a: a[1] - a[0]}

FOLDS = """
.type Interval = [least: number, most: number]
.functor hull(a: Interval, b: Interval): Interval stateful
.functor plus(so_far: number, x: number): number
.functor join(so_far: symbol, s: symbol): symbol
.decl given(x: number, i: Interval)
.decl text(x: number, t: symbol)
.input given, text
.decl whole(x: number, i: Interval)
whole(x, w) :- given(x, _), w = @@hull i : [0, 0], { given(x, i) }.
.decl total(x: number, n: number)
total(x, @@plus most - least : 10 * x, { given(x, [least, most]) }) :- given(x, _).
.decl all(t: symbol)
all(t) :- t = @@join s : "", text(_, s).
all(t) :- t = @@join s : "<", { text(x, s), given(x, _) }.
"""
OF_FOLDS = {"hull": hull, "plus": lambda a, b: a + b, "join": lambda a, b: a + b}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_functors_take_and_give_records(strategy: str) -> None:
    facts = {"given": [(1, (1, 2)), (1, (5, 6)), (2, (0, 1))]}
    with elastalog.open(RECORDS, facts=facts, functors=OF_RECORDS, strategy=strategy) as db:
        assert set(db["joined"]) == {(1, (1, 2)), (1, (5, 6)), (1, (1, 6)), (2, (0, 1))}
        db.apply({"given": [(2, (3, 4))]}, {"given": [(1, (5, 6))]})
        assert set(db["joined"]) == {(1, (1, 2)), (2, (0, 1)), (2, (0, 4)), (2, (3, 4))}
        assert set(db["wide"]) == {(1,), (4,)}
        assert set(db["list"]) == {((1, (2, None)),), ((2, None),), (None,)}
        assert {(n, str(s)) for n, s in db["signs"]} == {(1, "$Plus"), (4, "$Plus"), (-2, "$Far(2)")}


def test_what_is_no_value_of_the_record_is_an_error_with_the_arguments() -> None:
    wrong = {**OF_RECORDS, "hull": lambda a, b: (1, 2, 3)}
    with refused("E0640", message="`@hull([1, 2], [1, 2])` raised NotOfType: `Interval` has 2 fields, not 3"):
        elastalog.open(RECORDS, facts={"given": [(1, (1, 2))]}, functors=wrong)


def test_functions_over_arrays_do_not_take_records() -> None:
    with pytest.raises(ElastalogError, match="function of single values"):
        elastalog.open(RECORDS, facts={}, functors={**OF_RECORDS, "hull": elastalog.vectorised(hull)})


def wanted(given: set[Any], texts: set[Any]) -> tuple[set[Any], set[Any], set[Any]]:
    groups = {x: [i for y, i in given if y == x] for x, _ in given}
    whole = {(x, (min(0, *(a for a, _ in i)), max(0, *(b for _, b in i)))) for x, i in groups.items()}
    total = {(x, 10 * x + sum(b - a for a, b in i)) for x, i in groups.items()}
    both = sorted(t for x, t in texts for y, _ in given if x == y)
    every = [("".join(sorted(t for _, t in texts)),)] if texts else []
    return whole, total, {*every, *([("<" + "".join(both),)] if both else [])}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_aggregates_of_users_follow_updates(strategy: str) -> None:
    chance = random.Random(7)
    given: set[Any] = set()
    texts: set[Any] = set()
    with elastalog.open(FOLDS, facts={"given": [], "text": []}, functors=OF_FOLDS, strategy=strategy) as db:
        for _ in range(12):
            more = {(chance.randrange(3), (chance.randrange(-2, 5), chance.randrange(5, 9))) for _ in range(2)} - given
            new = {(chance.randrange(3), chance.choice("abcd"))} - texts
            gone = set(chance.sample(sorted(given), min(1, len(given))))
            out = set(chance.sample(sorted(texts), min(chance.randrange(2), len(texts))))
            db.apply({"given": list(more), "text": list(new)}, {"given": list(gone), "text": list(out)})
            given, texts = (given - gone) | more, (texts - out) | new
            assert (set(db["whole"]), set(db["total"]), set(db["all"])) == wanted(given, texts)


def test_proofs_are_checked_and_show_aggregates_as_written() -> None:
    facts = {"given": [(1, (2, 3)), (1, (4, 9))], "text": [(1, "b"), (1, "a")]}
    program = Program.parse(FOLDS, "program.dl")
    with elastalog.open(program, facts=facts, functors=OF_FOLDS) as db:
        held = {name: list(db[name]) for name in ("given", "text", "whole", "total", "all")}
        functions = with_records(program.checked, OF_FOLDS)
        for fact in ("whole(1, [0, 9])", "total(1, 16)", 'all("ab")', 'all("<aabb")'):
            proof = db.explain(fact)
            given = {name: facts[name] for name in facts}
            assert check_proof(proof, program.checked, given, held, Run(lambda text: None, functions))
            other = Run(lambda text: None, {**functions, "plus": max, "hull": lambda a, b: (a, b), "join": max})
            assert not check_proof(proof, program.checked, given, held, other)
        assert "@@hull i : [0, 0], { given(1, i) } = [0, 9]  (2 members)" in db.explain("whole(1, [0, 9])").to_tree()
        assert db.why_not("total(1, 17)") is not None


def test_a_store_keeps_them(tmp_path: Path) -> None:
    facts = {"given": [(1, (2, 3))], "text": [(1, "b"), (1, "a")]}
    with elastalog.open(FOLDS, facts=facts, functors=OF_FOLDS, store=tmp_path / "store") as db:
        assert set(db["all"]) == {("ab",), ("<ab",)}
    with elastalog.open(store=tmp_path / "store", functors=OF_FOLDS) as db:
        db.apply({"text": [(1, "c")]})
        assert set(db["all"]) == {("abc",), ("<abc",)}


def test_a_function_that_folds_to_nothing_is_an_error() -> None:
    with refused("E0640", message='`@join("", "b")` gave no value'):
        elastalog.open(FOLDS, facts={"text": [(1, "b")]}, functors={**OF_FOLDS, "join": lambda a, b: None})


HEAD = (
    ".functor f(a: number, b: number): number .functor g(a: number): number .functor h(a: number, b: symbol): number\n"
)
HEAD += ".decl p(x: number) .decl q(x: number) .decl s(x: symbol)\n"


@pytest.mark.parametrize(("rule", "code"), table(__file__, "what cannot be folded is refused"))
def test_what_cannot_be_folded_is_refused(rule: str, code: str) -> None:
    with pytest.raises(ElastalogError) as raised:
        Program.parse(HEAD + rule, "program.dl")
    assert [found.code for found in raised.value.diagnostics if found.severity == "error"] == [code]


def test_they_are_printed_and_formatted_as_written() -> None:
    source = Source("program.dl", HEAD + "q(n) :- n = @@f x+1 : 0, {p(x)}.")
    tree, _ = parse(source)
    assert print_item(tree.items[-1]) == "q(n) :- n = @@f x + 1 : 0, { p(x) }."
    assert format_program(source)[0].endswith("\nq(n) :- n = @@f x + 1 : 0, { p(x) }.\n")


def test_nan_comes_first_in_whatever_order_members_are_given() -> None:
    program = """
    .functor f(so_far: symbol, x: float): symbol
    .decl v(x: float)
    .decl r(s: symbol)
    r(s) :- s = @@f x : "", { v(x) }.
    """
    for values in ([1.0, math.nan, 0.0], [0.0, 1.0, math.nan], [math.nan, 1.0, 0.0]):
        with elastalog.open(program, {"v": [(x,) for x in values]}, functors={"f": lambda a, x: f"{a} {x}"}) as db:
            assert list(db["r"]) == [(" nan 0.0 1.0",)]
