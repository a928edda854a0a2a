"""Which variables occur where in what was written, and which of them it may give values."""

from __future__ import annotations

from collections.abc import Iterable

from elastalog.analysis.structures import is_constructor
from elastalog.syntax import tree


def variables_of(nodes: Iterable[tree.Term | tree.Literal], is_deep: bool) -> list[tree.Variable]:
    """The variables in nodes, in the order written; those inside aggregates only when `is_deep`."""
    found: list[tree.Variable] = []
    pending: list[tree.Term | tree.Literal] = list(nodes)[::-1]
    while pending:
        node = pending.pop()
        # Not by `match`, which takes twice as long: this looks at every term several times.
        if type(node) is tree.Variable:
            found.append(node)
        elif type(node) is tree.Atom or type(node) is tree.Call:
            pending.extend(node.arguments[::-1])
        elif type(node) is tree.Negation:
            pending.append(node.atom)
        elif type(node) is tree.Comparison:
            pending.append(node.right)
            pending.append(node.left)
        elif type(node) is tree.Cast:
            pending.append(node.term)
        elif type(node) is tree.Disjunction:
            for alternative in reversed(node.alternatives):
                pending.extend(alternative[::-1])
        elif type(node) is tree.NegatedGroup:
            pending.extend(node.body[::-1])
        elif type(node) is tree.Aggregate and is_deep:
            pending.extend(node.body[::-1])
            if node.target is not None:
                pending.append(node.target)
    return found


def variables_inside(aggregate: tree.Aggregate) -> list[tree.Variable]:
    """The variables directly inside an aggregate, not those inside aggregates within it."""
    target = () if aggregate.target is None else (aggregate.target,)
    return variables_of((*target, *aggregate.body), is_deep=False)


def given_by(literal: tree.Literal) -> set[str]:
    """The variables that a literal may give a value: an atom, or an equation."""
    if type(literal) is tree.Atom:
        return patterns_in(literal.arguments)
    if type(literal) is tree.Comparison and literal.operator == "=":
        return patterns_in((literal.left, literal.right))
    return set()


def patterns_in(terms: Iterable[tree.Term]) -> set[str]:
    """The variables that terms are, or that they take out of a value."""
    pending, found = list(terms), set()
    while pending:
        term = pending.pop()
        if type(term) is tree.Variable:
            found.add(term.name)
        elif type(term) is tree.Call and is_constructor(term.functor):
            pending.extend(term.arguments)
        elif type(term) is tree.Cast:
            pending.append(term.term)
    return found


def grounded_by(body: Iterable[tree.Literal], known: Iterable[str] = ()) -> set[str]:
    """The variables that a conjunction gives a value, atoms, equations, or aggregates as their results; and those that
    are known already."""
    bound = set(known)
    equations = []
    for literal in body:
        if isinstance(literal, tree.Atom):
            bound.update(patterns_in(literal.arguments))
        elif isinstance(literal, tree.Comparison) and literal.operator == "=":
            equations += [(literal.left, literal.right), (literal.right, literal.left)]
    grows = True
    while grows:
        size = len(bound)
        for side, other in equations:
            if bound.issuperset(variable.name for variable in variables_of((other,), is_deep=False)):
                bound.update(patterns_in((side,)))
        grows = len(bound) > size
    return bound
