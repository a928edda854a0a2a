"""The checker by hand: what it rejects, and why."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import elastalog
from elastalog.provenance import check
from elastalog.provenance.check import check_proof
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import AggregatePremise, Condition, Member, Proof

TEXT = """
.decl edge, path, far(x: number, y: number)
.decl degree(x: number, n: number)
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
far(x, y) :- path(x, y), !edge(x, y), x < y.
degree(x, n) :- edge(x, _), n = count : { edge(x, y) }.
"""
EDGES = {(1, 2), (2, 3), (1, 4)}
PROGRAM = elastalog.Program.parse(TEXT).checked
EXPLICIT: dict[str, set[tuple[Any, ...]]] = {"edge": EDGES}
ALL: dict[str, set[tuple[Any, ...]]] = {"edge": EDGES, "path": {*EDGES, (1, 3)}, "far": {(1, 3)}}


def edge(x: int, y: int) -> Proof:
    return Proof(Fact("edge", (x, y)), None, (), True, 0)


def path(x: int, y: int, *children: Proof) -> Proof:
    rule = PROGRAM.rules[len(children) - 1]
    return Proof(Fact("path", (x, y)), rule, children, True, len(children))


def far(x: int, y: int, *children: Any) -> Proof:
    return Proof(Fact("far", (x, y)), PROGRAM.rules[2], children, True, 3)


PATH = path(1, 3, edge(1, 2), path(2, 3, edge(2, 3)))
FAR = far(1, 3, PATH, Condition("negation", "!edge(1, 3)"), Condition("constraint", "1 < 3"))


def degree(number: int, result: int, *members: Proof) -> Proof:
    premise = AggregatePremise(
        f"count : {{ edge(1, y) }} = {result}", result, number, tuple(Member(0, (m,)) for m in members)
    )
    return Proof(Fact("degree", (1, result)), PROGRAM.rules[3], (edge(1, 2), premise), True, 3)


@pytest.mark.parametrize(
    "proof", [edge(1, 2), PATH, FAR, degree(2, 2, edge(1, 2), edge(1, 4)), replace(degree(2, 2), height=None)]
)
def test_right_proofs_are_accepted(proof: Proof) -> None:
    verdict = check_proof(proof, PROGRAM, EXPLICIT, ALL)
    assert verdict.accepted
    assert verdict.reason is None
    assert verdict


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (edge(1, 3), "edge(1, 3) is not an explicit fact"),
        (Proof(Fact("nothing", ()), None, (), True, 0), "nothing() is no fact of the program"),
        (Proof(Fact("edge", (1,)), None, (), True, 0), "edge(1) is no fact of the program"),
        (path(1, 3, edge(1, 2)), "path(1, 3) by rule 1: edge(1, 2) does not fit `edge(1, 3)`"),
        (path(1, 3, edge(1, 4), path(2, 3, edge(2, 3))), "path(1, 3) by rule 2: path(2, 3) does not fit `path(4, 3)`"),
        (replace(PATH, height=3), "path(1, 3) is said to have height 3, and has 2"),
        (replace(PATH, children=PATH.children[:1]), "path(1, 3) by rule 2: 1 premises for 2 literals"),
        (replace(PATH, rule=replace(PROGRAM.rules[1], body=())), "the rule of path(1, 3) is no rule of the program"),
        (replace(PATH, rule=PROGRAM.rules[2]), "path(1, 3) is not the head of rule 3"),
        (replace(PATH, is_expanded=False), "path(1, 3) is said to be unexpanded, and is not"),
        (
            far(1, 2, path(1, 2, edge(1, 2)), Condition("negation", "!edge(1, 2)"), Condition("constraint", "1 < 2")),
            "far(1, 2) by rule 3: `!edge(1, 2)` does not hold",
        ),
        (
            far(1, 3, PATH, Condition("negation", "!edge(1, 9)"), Condition("constraint", "1 < 3")),
            "far(1, 3) by rule 3: it says `!edge(1, 9)` where the rule says `!edge(1, 3)`",
        ),
        (
            far(1, 3, PATH, Condition("constraint", "1 < 3"), Condition("constraint", "1 < 3")),
            "far(1, 3) by rule 3: a premise is not of the kind of `!edge(x, y)`",
        ),
        (degree(2, 3), "degree(1, 3) by rule 4: the aggregate is 2, not 3"),
        (degree(3, 2), "degree(1, 2) by rule 4: the aggregate has 2 members, not 3"),
        (
            degree(2, 2, edge(1, 2), edge(1, 2)),
            "degree(1, 2) by rule 4: a member of the aggregate is wrong or listed twice",
        ),
    ],
)
def test_wrong_proofs_are_rejected_with_the_reason(proof: Proof, reason: str) -> None:
    assert check_proof(proof, PROGRAM, EXPLICIT, ALL).reason == reason


def test_a_fact_below_itself_is_rejected() -> None:
    edges = {(1, 2), (2, 1)}
    inner = path(1, 2, edge(1, 2))
    circle = path(1, 2, edge(1, 2), replace(path(2, 2, edge(2, 1), inner), height=2))
    verdict = check_proof(replace(circle, height=3), PROGRAM, {"edge": edges}, {"edge": edges})
    assert verdict.reason == "path(1, 2) stands below itself"


def test_partial_proofs_are_accepted_as_far_as_they_go() -> None:
    end = Proof(Fact("path", (2, 3)), None, (), False, None)
    verdict = check_proof(replace(path(1, 3, edge(1, 2), end), height=None), PROGRAM, EXPLICIT, ALL)
    assert (verdict.accepted, verdict.unexpanded) == (True, 1)


def test_the_checker_imports_nothing_of_the_engine() -> None:
    """Nor do the modules it rests on, as far as they are imported when it is."""
    package = Path(elastalog.__file__).parent
    pending, seen = [Path(check.__file__)], set()
    while pending:
        module = pending.pop()
        if module in seen:
            continue
        seen.add(module)
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("elastalog."):
                parts = node.module.split(".")[1:]
                assert parts[0] in ("analysis", "diagnostics", "late", "syntax", "provenance"), (module, node.module)
                file = package.joinpath(*parts).with_suffix(".py")
                if file.exists():
                    pending.append(file)
    assert len(seen) > 5
