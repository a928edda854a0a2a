"""A query reads only the facts that it needs, and answers as if it had read all: compared with the reference
evaluator, over facts at random."""

from __future__ import annotations

from random import Random

import pytest

import elastalog
from elastalog.diagnostics.source import Source
from elastalog.settings import SETTINGS
from elastalog.syntax.parser import parse
from tests.reference.evaluator import evaluate

DECLARED = """
.decl a(x: number, y: number)
.decl b(x: number, y: number)
.decl c(x: number, s: symbol)
.decl f(x: float, y: number)
"""
QUERIES = {
    "X, Y": "a(1, X), b(X, Y)",
    "X, Z": "a(X, 2), a(Z, X), b(Z, _)",
    "X, Y, Z": "a(X, Y), b(Y, Z), X = 3",
    "X": "a(X, X), b(X, _)",
    "X, S": 'c(X, S), a(X, _), S != "t2"',
    "Y": 'c(X, "t1"), a(X, Y)',
    "Z": "a(1, X), !b(X, _), a(X, Z)",
    "X, N": "a(2, X), N = count : { b(X, Y), a(Y, _) }",
    "X, M": 'c(X, "t0"), M = max y : { b(X, y), !a(y, X) }',
    "P, Q": "(a(1, P), b(P, Q) ; b(P, Q), a(Q, 4))",
    "V, W": "f(V, X), a(X, W), V = 0.0",
    "K": "a(99, K), b(K, _)",
    "T": 'c(T, "nowhere"), a(T, _)',
    "U": "a(U, W), b(W, V), V = 77",
}


@pytest.mark.parametrize("limits", [(10_000, 8), (3, 1), (0, 0)])
@pytest.mark.parametrize("columns", QUERIES)
def test_answers_are_those_of_all_facts(columns: str, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "most_values", limits[0])
    monkeypatch.setattr(SETTINGS, "few_values", limits[1])
    random = Random(f"{columns}{limits}")
    facts = {name: {(random.randrange(6), random.randrange(6)) for _ in range(random.choice((3, 12)))} for name in "ab"}
    given = {
        **facts,
        "c": {(x, f"t{random.randrange(3)}") for x in range(6)},
        "f": {(random.choice((0.0, -0.0, 1.5)), x) for x in range(6)},
    }
    kinds = {"S": "symbol", "V": "float"} if columns == "V, W" else {"S": "symbol"}
    names = columns.split(", ")
    declared = ", ".join(f"{name}: {kinds.get(name, 'number')}" for name in names)
    rule = f".decl answer({declared})\nanswer({columns}) :- {QUERIES[columns]}.\n"
    tree, _ = parse(Source("p.dl", DECLARED + rule))
    expected = {tuple(fact) for fact in evaluate(tree, {n: set(rows) for n, rows in given.items()})["answer"]}
    with elastalog.open(DECLARED, {name: sorted(rows) for name, rows in given.items()}) as db:
        found = db.query(f"answer({columns}) :- {QUERIES[columns]}")
        assert set(found) == expected
        # Facts that are gone are not read either.
        db.apply(deleted={"a": [next(iter(facts["a"]))]})
        left = {**given, "a": set(db["a"])}
        again = {tuple(fact) for fact in evaluate(tree, {n: set(rows) for n, rows in left.items()})["answer"]}
        assert set(db.query(f"answer({columns}) :- {QUERIES[columns]}")) == again
