"""What the negation of a body says: by De Morgan, so that only atoms are left negated."""

from __future__ import annotations

from typing import Final, assert_never

from elastalog.diagnostics.source import Span
from elastalog.syntax.keywords import TEXT_TESTS
from elastalog.syntax.tree import Atom, Body, Comparison, Disjunction, Literal, Negation, Truth

_OPPOSITES: Final = {
    "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
    **{word: word[1:] if word[0] == "!" else f"!{word}" for word in TEXT_TESTS},
}  # fmt: skip


def negate(body: Body, span: Span) -> Body:
    """The literals that hold together exactly when a conjunction does not. `span` is where the negation stands."""
    if len(body) == 1:
        return _negate_literal(body[0], span)
    if not body:
        return (Truth(False, span),)
    return (Disjunction(tuple(_negate_literal(literal, literal.span) for literal in body), span),)


def _negate_literal(literal: Literal, span: Span) -> Body:
    match literal:
        case Atom():
            return (Negation(literal, span),)
        case Negation():
            return (literal.atom,)
        case Comparison(operator, left, right, operator_span):
            return (Comparison(_OPPOSITES[operator], left, right, operator_span, span),)
        case Truth():
            return (Truth(not literal.value, span),)
        case Disjunction():
            return tuple(
                negated for alternative in literal.alternatives for negated in negate(alternative, literal.span)
            )
        case _:
            assert_never(literal)
