"""Which variables occur where in a checked program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Expression,
    Literal,
    Negation,
    Variable,
    Wildcard,
)


def variables_of(*terms: Expression | Wildcard) -> Iterator[Variable]:
    """The variables of terms, from left to right, with repetitions."""
    pending = list(terms)[::-1]
    while pending:
        term = pending.pop()
        # Not by `match`, which takes longer: every rule is looked at several times.
        if type(term) is Variable:
            yield term
        elif type(term) is Apply:
            pending.extend(term.arguments[::-1])


def names_of(*terms: Expression | Wildcard) -> Iterator[str]:
    """Their names."""
    return (variable.name for variable in variables_of(*terms))


def variables_in(literals: Iterable[Literal], is_deep: bool) -> Iterator[Variable]:
    """The variables of literals, in the order written: of an aggregate its result, and those inside it only where they
    are shared, unless `is_deep`."""
    for literal in literals:
        if type(literal) is Atom:
            yield from variables_of(*literal.arguments)
        elif type(literal) is Negation:
            yield from variables_of(*literal.atom.arguments)
        elif type(literal) is Comparison:
            yield from variables_of(literal.left, literal.right)
        elif type(literal) is Aggregation:
            yield literal.result
            if is_deep:
                for body in literal.bodies:
                    yield from variables_in(body, is_deep)
            else:
                yield from literal.groups
