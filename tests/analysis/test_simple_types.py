"""Clauses whose types follow from their atoms alone: what is found without inference is what inference finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from elastalog.analysis.build_typed import TypedBuilder
from elastalog.analysis.check import PASSES, flatten
from elastalog.analysis.draft import Draft, FlatClause, TypedRule
from elastalog.analysis.findings import Findings
from elastalog.analysis.infer import StructuredTypes, infer, simple_rule
from elastalog.analysis.infer_types import infer_types
from elastalog.analysis.resolve_names import constructors_of
from elastalog.diagnostics.source import Source
from elastalog.program.program import examine
from elastalog.syntax.parser import parse
from tests.generators.seeded import seeded_program

DECLARED = """
.type Pair = [a: number, b: number]
.decl e(x: number, y: number)
.decl u(x: unsigned)
.decl f(x: float)
.decl s(x: symbol)
.decl r(p: Pair)
.functor g(x: number): number
"""
PROGRAMS = Path(__file__).parents[1] / "programs"


def both_ways(text: str) -> Iterator[tuple[FlatClause, TypedRule | None, TypedRule | None]]:
    """Every clause without aggregates and ranges, as it is found quickly, and by inference."""
    tree, _ = flatten(parse(Source("<text>", text))[0])
    draft = Draft(tree)
    for run, _ in PASSES:
        if run is infer_types:
            break
        draft, _ = run(draft)
    types = StructuredTypes(draft.types, constructors_of(draft), draft.functors)
    kinds = {name: tuple(types.kind(a.type_name) for a in known.attributes) for name, known in draft.relations.items()}
    for clause in draft.flat_clauses:
        if clause.is_flat:
            builder = TypedBuilder(draft, kinds, types, infer(clause, kinds, types), Findings(tree.source))
            yield clause, simple_rule(clause, kinds), builder.rule(clause)


@pytest.mark.parametrize(
    "clause",
    [
        "e(x, y) :- e(y, x), !e(x, _), x != y.",
        "e(x, n) :- e(x, y), n = y * 2 + 1, n < 100.",
        "e(x, n) :- e(x, y), 7 - y = n.",
        "e(x, -1) :- e(x, _), x > -(3).",
        "e(x, x + 1) :- e(x, _).",
        "u(x + 1) :- u(x), x < 10u.",
        "f(x * 2) :- f(x), x != 1.",
        's(x + "a") :- s(x), x < "b".',
        "s(cat(x, y, x)) :- s(x), s(y), min(x, y) = x.",
    ],
)
def test_simple_clauses_need_no_inference(clause: str) -> None:
    (_, quick, slow), *_ = both_ways(DECLARED + clause)
    assert quick is not None
    assert quick == slow


@pytest.mark.parametrize(
    "clause",
    [
        "e(x, 1) :- x < 3, e(x, _).",  # nothing is known of `x` yet
        "e(x, n) :- s(t), e(x, _), n = strlen(t).",
        "e(x, n) :- e(x, _), n = 3.",
        "e(x, y) :- r(p), p = [x, y].",
        "r([x, y]) :- e(x, y).",
        "e(x, @g(x)) :- e(x, _).",
        "e(x, as(x, number)) :- e(x, _).",
        's(x) :- s(x), match("a.*", x).',
    ],
)
def test_others_are_left_to_inference(clause: str) -> None:
    (_, quick, slow), *_ = both_ways(DECLARED + clause)
    assert quick is None
    assert slow is not None


@pytest.mark.parametrize(
    "clause",
    [
        "s(x) :- e(x, _).",
        "e(x, y) :- e(x, _), s(t), y = t.",
        "e(x, 18446744073709551615) :- e(x, _).",
        "f(x % 2) :- f(x).",
        "u(x) :- u(x), x > -1.",
        'e(x, x + "a") :- e(x, _).',
    ],
)
def test_faults_are_left_to_inference(clause: str) -> None:
    (_, quick, slow), *_ = both_ways(DECLARED + clause)
    assert quick is None
    assert slow is None


def test_programs_have_the_same_types_either_way() -> None:
    texts = [path.read_text() for path in sorted(PROGRAMS.rglob("*.dl"))]
    texts += [seeded_program(seed).text for seed in range(20)]
    sound = [text for text in texts if examine(Source("<text>", text))[1] is not None]
    found = [both for text in sound for both in both_ways(text)]
    quickly = [(quick, slow) for _, quick, slow in found if quick is not None]
    assert all(quick == slow for quick, slow in quickly)
    assert len(quickly) > len(found) / 2
