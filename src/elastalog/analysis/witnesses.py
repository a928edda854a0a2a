"""Witnesses: variables inside a `min` or `max` that the rule uses outside, and that nothing outside gives a value.

`first(p, a) :- a = min y : { age(p, y) }.` means those `p` that have the least age. The aggregate ranges over
everything, and the body of the rule gets another copy of what it ranges over, in which the target is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from elastalog.analysis.negation import without_groups
from elastalog.analysis.substitute import substitute, substitute_term
from elastalog.analysis.variables import grounded_by, variables_inside
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree

Fresh = Callable[[str, Span], tree.Variable]


def with_witnesses(body: Sequence[tree.Literal], visible: set[str], fresh: Fresh) -> Sequence[tree.Literal]:
    """A conjunction in which every witness gets its values from an atom; itself if it has none. `visible`: the
    variables outside of aggregates, the head's among them."""
    if all(_aggregate_in(literal) is None for literal in body):
        return body
    found: list[tree.Literal] = []
    grounded: set[str] | None = None
    for literal in body:
        found.append(literal)
        place = _aggregate_in(literal)
        if place is None:
            continue
        result, aggregate = place[0], replace(place[1], body=without_groups(place[1].body))
        grounded = grounded_by(body) if grounded is None else grounded
        own = {variable.name for variable in variables_inside(aggregate)}
        witnesses = (own & visible) - grounded
        if witnesses and not any(isinstance(inner, tree.Disjunction) for inner in aggregate.body):
            found[-1:] = _taken_apart(literal, result, aggregate, witnesses, own - visible, fresh)
    return found


def _aggregate_in(literal: tree.Literal) -> tuple[tree.Term, tree.Aggregate] | None:
    """The result and the aggregate of a literal `result = min …` or `result = max …`."""
    if type(literal) is tree.Comparison and literal.operator == "=":
        for aggregate, result in ((literal.right, literal.left), (literal.left, literal.right)):
            if isinstance(aggregate, tree.Aggregate) and aggregate.operator in ("min", "max"):
                return result, aggregate
    return None


def _taken_apart(
    literal: tree.Literal,
    result: tree.Term,
    aggregate: tree.Aggregate,
    witnesses: set[str],
    own: set[str],
    fresh: Fresh,
) -> Iterator[tree.Literal]:
    assert isinstance(literal, tree.Comparison)
    assert aggregate.target is not None
    inner = {name: fresh(name, aggregate.span) for name in sorted(witnesses)}
    over = replace(
        aggregate,
        target=substitute_term(aggregate.target, inner, _wildcard),
        body=substitute(aggregate.body, inner, _wildcard),
    )
    yield replace(literal, left=result, right=over)
    copies = {name: fresh(name, aggregate.span) for name in sorted(own)}
    yield from substitute(aggregate.body, copies, _wildcard)
    target = substitute_term(aggregate.target, copies, _wildcard)
    yield replace(literal, left=target, right=result)


def _wildcard(_: str, span: Span) -> tree.Term:
    return tree.Wildcard(span)
