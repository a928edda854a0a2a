"""Points-to with contexts, the program of a benchmark, on a small program: against the judge, and by hand."""

from __future__ import annotations

from typing import Any

import pytest

import elastalog
from benchmarks.contexts import KINDS, program
from elastalog import Branch
from tests.engine.judging import comparable, facts_of
from tests.reference.evaluator import evaluate

MAIN, IDENTITY, SET = "<Main: void main(String[])>", "<Main: T id(T)>", "<Box: void set(T)>"
# main: a = new A; b = new B; x = id(a); y = id(b); p = new Box; q = new Box; p.set(a); q.set(b); r = p.f
FACTS: dict[str, list[tuple[Any, ...]]] = {
    "ClassType_input": [("Main",), ("A",), ("B",), ("Box",)],
    "MainClass": [("Main",)],
    "Method_input": [
        (MAIN, "main", "(java.lang.String[])", "Main", "void", "", 1),
        (IDENTITY, "id", "(T)", "Main", "T", "", 1),
        (SET, "set", "(T)", "Box", "void", "", 1),
    ],
    "Method_Modifier": [("public", MAIN), ("static", MAIN), ("static", IDENTITY)],
    "NormalHeap_input": [("new A", "A"), ("new B", "B"), ("Box 1", "Box"), ("Box 2", "Box")],
    "AssignHeapAllocation_input": [
        ("m0", 0, "new A", "a", MAIN, 1),
        ("m1", 1, "new B", "b", MAIN, 1),
        ("m4", 4, "Box 1", "p", MAIN, 1),
        ("m5", 5, "Box 2", "q", MAIN, 1),
    ],
    "StaticMethodInvocation_input": [("m2", 2, IDENTITY, MAIN), ("m3", 3, IDENTITY, MAIN)],
    "VirtualMethodInvocation_input": [("m6", 6, SET, "p", MAIN), ("m7", 7, SET, "q", MAIN)],
    "ActualParam": [(0, "m2", "a"), (0, "m3", "b"), (0, "m6", "a"), (0, "m7", "b")],
    "FormalParam": [(0, IDENTITY, "given"), (0, SET, "value")],
    "AssignReturnValue": [("m2", "x"), ("m3", "y")],
    "Return_input": [("i0", 0, "given", IDENTITY)],
    "ThisVar": [(SET, "this")],
    "StoreInstanceField_input": [("s0", 0, "value", "this", "f", SET)],
    "LoadInstanceField_input": [("m8", 8, "r", "p", "f", MAIN)],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plain", [{}, {"PLAIN": 1}])
def test_it_is_what_the_judge_says_before_and_after_an_update(kind: str, plain: dict[str, int]) -> None:
    read = elastalog.Program.parse(program(), macros={**KINDS[kind], **plain})
    with elastalog.open(read, facts=FACTS) as db:
        for change in ({}, {"StaticMethodInvocation_input": [("m3", 3, IDENTITY, MAIN)]}):
            db.apply(deleted=change)
            facts = {name: [row for row in rows if row not in change.get(name, [])] for name, rows in FACTS.items()}
            wanted = evaluate(read.tree, facts)
            assert facts_of(db) == {name: set(map(comparable, known)) for name, known in wanted.items()}


def test_contexts_tell_calls_and_receivers_apart() -> None:
    by_site = elastalog.open(elastalog.Program.parse(program(), macros=KINDS["call-site"]), facts=FACTS)
    by_object = elastalog.open(elastalog.Program.parse(program(), macros=KINDS["object"]), facts=FACTS)
    assert ("new A", ("given", Branch("Called", "m2"))) in by_site["VarPointsTo"]
    assert ("new B", ("value", Branch("Received", "Box 2"))) in by_object["VarPointsTo"]
    for db, results in (
        (by_site, {("new A", "x"), ("new B", "y")}),
        (by_object, {(h, v) for h in ("new A", "new B") for v in "xy"}),
    ):
        points_to = set(db["PointsTo"])
        assert {fact for fact in points_to if fact[1] in "xy"} == results
        assert {fact for fact in points_to if fact[1] == "r"} == {("new A", "r")}
        db.close()
