"""What the variables of a rule are, for the reference evaluator: witnesses, and those that tell derivations apart."""

from collections.abc import Collection
from typing import Any

from elastalog.syntax import tree as syntax
from tests.reference.walking import is_made, name_of, names, walk

LEAST = ("min", "max")


def witnesses(head: syntax.Atom, body: syntax.Body) -> dict[Any, tuple[Any, syntax.Aggregate, set[str]]]:
    """By equation of a least or greatest value: its result, the aggregate, and the variables in it that the rule uses
    outside, and that nothing outside gives a value."""
    found, visible, bound = {}, names((head, body), is_deep=False), bound_by(body)
    for equation in equations_of(body):
        for aggregate, result in ((equation.right, equation.left), (equation.left, equation.right)):
            if isinstance(aggregate, syntax.Aggregate) and aggregate.operator in LEAST:
                own = (names((aggregate.target, aggregate.body), is_deep=False) & visible) - bound
                found.update({equation.span: (result, aggregate, own)} if own else {})
    return found


def hidden(aggregate: syntax.Aggregate) -> set[str]:
    """The variables of a target that the body gives values: the aggregate's own, whatever has their names outside."""
    target = aggregate.target
    if aggregate.operator[0] == "@" and isinstance(target, syntax.Call):
        target = target.arguments[-1]  # what is folded; before it, what a functor of the user starts with
    return set() if target is None else names(target, is_deep=False) & bound_by(aggregate.body)


def equations_of(body: syntax.Body) -> list[syntax.Comparison]:
    return [literal for literal in body if isinstance(literal, syntax.Comparison) and literal.operator == "="]


def bound_by(body: syntax.Body) -> set[str]:
    """The variables that get values from a body, what is inside of aggregates left out."""
    bound = {name for atom in body if isinstance(atom, syntax.Atom) for name in given(atom.arguments)}
    for group in (literal for literal in body if isinstance(literal, syntax.Disjunction)):
        bound |= set.intersection(*(bound_by(alternative) for alternative in group.alternatives))
    sides = [pair for c in equations_of(body) for pair in ((c.left, c.right), (c.right, c.left))]
    for _ in range(len(sides) + 1):
        for side, other in sides:
            if isinstance(other, syntax.Aggregate) or names(other) <= bound:
                bound |= given((side,))
    return bound


def given(terms: tuple[Any, ...]) -> set[str]:
    """The variables that a value in the place of a term gives values."""
    inner = [given(term.arguments) for term in terms if is_made(term)]
    return set().union(*inner) | {term.name for term in terms if isinstance(term, syntax.Variable)}


def telling_apart(body: syntax.Body, closed: Collection[str]) -> tuple[syntax.Body, list[str]]:
    """The literals that do not depend on numbers of derivations, and the variables that they give values, in the order
    in which they are written. Beside a value in an atom of an equivalence (`closed`), a wildcard tells nothing."""
    kept, size = body, -1
    depending: set[str] = set()
    while size < len(depending):
        size = len(depending)
        kept = tuple(
            literal
            for literal in body
            if not any(call.functor == "autoinc" for call in walk(literal, syntax.Call))
            and not names(literal) & depending
        )
        depending |= {n for c in body if c not in kept and isinstance(c, syntax.Comparison) for n in names(c)}
        depending -= {name for atom in body if isinstance(atom, syntax.Atom) for name in names(atom)}
    positive = [literal for literal in kept if not isinstance(literal, syntax.Negation | syntax.NegatedGroup)]
    ordered = [name_of(term) for literal in positive for term in told(literal, closed)]
    return kept, [name for name in dict.fromkeys(ordered) if name is not None]


def told(literal: Any, closed: Collection[str]) -> list[Any]:
    terms = list(walk(literal, syntax.Variable | syntax.Wildcard))
    if not (isinstance(literal, syntax.Atom) and literal.relation in closed):
        return terms
    if all(isinstance(term, syntax.Wildcard) for term in literal.arguments):
        return terms[:1]
    return [term for term in terms if isinstance(term, syntax.Variable)]
