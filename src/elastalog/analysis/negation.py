"""Bodies as alternatives, each a conjunction: negated groups and disjunctions are taken apart.

A negation says that what it negates has no derivation. Groups are taken apart by De Morgan, so that single atoms and
comparisons are left negated. A comparison that is negated holds where the comparison does not, be it that a side is NaN
or has no value: `not <` is turned into `>=` only where types are known, and values are (`opposite`). What cannot be
negated on its own, since it has several values or none (a range, the least of nothing), is counted:
`0 = count : { … }`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, assert_never

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.findings import Findings
from elastalog.analysis.functors import PARTIAL, is_generator
from elastalog.analysis.program import Apply, Base, Constant, Expression
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT

_OPPOSITES: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def without_groups(body: tree.Body) -> tree.Body:
    """A conjunction in which only atoms and comparisons are negated: negated groups are replaced by what they mean."""
    found: list[tree.Literal] = []
    for literal in body:
        match literal:
            case tree.NegatedGroup():
                found.extend(negate(literal.body, literal.span))
            case tree.Negation() if not _is_single(literal.atom.arguments):
                found.append(none_of((literal.atom,), literal.span))
            case tree.Disjunction():
                found.append(replace(literal, alternatives=tuple(map(without_groups, literal.alternatives))))
            case _:
                found.append(literal)
    return tuple(found)


def negate(body: tree.Body, span: Span) -> tree.Body:
    """The literals that hold together exactly when a conjunction does not. `span` is where the negation stands."""
    if len(body) == 1:
        return _negate_literal(body[0], span)
    if not body:
        return (tree.Truth(False, span),)
    return (tree.Disjunction(tuple(_negate_literal(literal, literal.span) for literal in body), span),)


def none_of(body: tree.Body, span: Span, operator: str = "=") -> tree.Comparison:
    """The comparison that says that a conjunction has no derivation."""
    return tree.Comparison(
        operator, tree.Integer(0, False, span), tree.Aggregate("count", None, body, span), span, span
    )


def _negate_literal(literal: tree.Literal, span: Span) -> tree.Body:
    match literal:
        case tree.Atom():
            return (tree.Negation(literal, span) if _is_single(literal.arguments) else none_of((literal,), span),)
        case tree.Negation(atom=atom):
            # A wildcard does not tell derivations apart that say no more than that there is one.
            is_plain = _is_single(atom.arguments) and not any(
                True for _ in tree.nodes_of(tree.Wildcard, atom.arguments)
            )
            return (atom if is_plain else none_of((atom,), span, "!="),)
        case tree.NegatedGroup():
            return negate(negate(literal.body, literal.span), span)
        case tree.Comparison(operator, left, right, operator_span):
            if not _is_single((left, right)):
                return (none_of((literal,), span),)
            negated = operator.removeprefix(NOT) if operator.startswith(NOT) else NOT + operator
            return (tree.Comparison(negated, left, right, operator_span, span),)
        case tree.Truth():
            return (tree.Truth(not literal.value, span),)
        case tree.Disjunction():
            found: list[tree.Literal] = []
            for each in literal.alternatives:
                found.extend(negate(each, each[0].span if len(each) == 1 else literal.span))
            return tuple(found)
        case _:
            assert_never(literal)


def _is_single(terms: Iterable[tree.Term]) -> bool:
    """Whether terms have at most one value each, computed in the literal itself."""
    for term in tree.nodes_of(object, tuple(terms), closed=(tree.Aggregate,)):
        if type(term) is tree.Aggregate and term.operator not in ("count", "sum"):
            return False
        if type(term) is tree.Call and (is_generator(term.functor) or has_partial_part(term)):
            return False
    return True


def has_partial_part(call: tree.Call) -> bool:
    """Whether a record or branch is built from something that may have no value, which is computed apart from the
    literal."""
    return is_constructor(call.functor) and any(
        inner.functor in PARTIAL or inner.functor[0] == "@" for inner in tree.nodes_of(tree.Call, call.arguments)
    )


def is_partial(term: tree.Term) -> bool:
    """Whether a term may have no value, or several."""
    calls = tree.nodes_of(tree.Call, term)
    return any(c.functor in PARTIAL or is_generator(c.functor) or c.functor[0] == "@" for c in calls) or any(
        True for _ in tree.nodes_of(tree.Aggregate, term)
    )


def opposite(operator: str, base: Base, left: Expression, right: Expression) -> str:
    """The operator without `not` that means the same for values of a type; the operator itself if there is none."""
    turned = _OPPOSITES.get(operator.removeprefix(NOT)) if operator.startswith(NOT) else None
    if turned is None or may_lack_value(left) or may_lack_value(right):
        return operator
    return operator if base is Base.FLOAT and turned not in ("=", "!=") else turned


def may_lack_value(expression: Expression) -> bool:
    """Whether an expression has no value for some values of its variables."""
    if not isinstance(expression, Apply):
        return False
    functor, arguments = expression.functor, expression.arguments
    last = arguments[-1].value if arguments and isinstance(arguments[-1], Constant) else None
    match functor:
        case "/" | "%":
            is_partial = not last
        case "^":
            is_partial = expression.base is Base.NUMBER and not (isinstance(last, int) and last >= 0)
        case "to_number" | "to_unsigned" | "to_float":
            is_partial = arguments[0].base is Base.SYMBOL
        case _:
            is_partial = functor in PARTIAL or functor == "range" or functor[0] == "@"
    return is_partial or any(map(may_lack_value, arguments))


# --- disjunction -----------------------------------------------------------------------------------------------------


MOST_ALTERNATIVES: Final = 1_000
"""How many rules one clause may become."""
MOST_LITERALS: Final = 200_000
"""How many literals these rules may have in all."""


def alternatives_of(body: tree.Body, copies: int, span: Span, findings: Findings) -> list[list[tree.Literal]]:
    """The conjunctions of a body, left alternatives first, without `true`. If the body, taken `copies` times, is too
    large, that is reported and there are none."""
    body = without_groups(body)
    if copies == 1 and tree.Disjunction not in map(type, body):
        return [[literal for literal in body if type(literal) is not tree.Truth or not literal.value]]
    count, literals = _size(body)
    count *= copies
    if count > 1 and (count > MOST_ALTERNATIVES or literals * copies > MOST_LITERALS):
        report_too_large(str(count) if count < 10**9 else "billions of", span, findings)
        return []
    return _expand(body)


def report_too_large(count: str, span: Span, findings: Findings) -> None:
    """Reports that a clause stands for too many rules or literals (E0221)."""
    findings.error("E0221", span, count=count, rules=MOST_ALTERNATIVES, literals=MOST_LITERALS)


def _size(body: tree.Body) -> tuple[int, int]:
    """The number of conjunctions and the number of literals in all of them."""
    count, literals = 1, 0
    for literal in body:
        inner_count, inner_literals = 1, 1
        if type(literal) is tree.Disjunction:
            sizes = [_size(alternative) for alternative in literal.alternatives]
            inner_count, inner_literals = sum(c for c, _ in sizes), sum(n for _, n in sizes)
        count, literals = count * inner_count, literals * inner_count + inner_literals * count
    return count, literals


def _expand(body: tree.Body) -> list[list[tree.Literal]]:
    found: list[list[tree.Literal]] = [[]]
    for literal in body:
        if type(literal) is tree.Disjunction:
            choices = [choice for alternative in literal.alternatives for choice in _expand(alternative)]
            found = [before + choice for before in found for choice in choices]
        elif type(literal) is not tree.Truth or not literal.value:
            for conjunction in found:
                conjunction.append(literal)
    return found
