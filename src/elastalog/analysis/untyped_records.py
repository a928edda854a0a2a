"""Records that only equations of a rule speak of: no column says of which type they are, and their parts are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from elastalog.analysis.variables import variables_of
from elastalog.syntax import tree


def without_untyped_records(head: tree.Atom, body: Sequence[tree.Literal]) -> Sequence[tree.Literal]:
    """A conjunction in which the parts of such records are equated instead: `x = [a, 1], x = [2, b]`, where nothing
    else reads `x`, means `a = 2, 1 = b`."""
    while any(map(_is_equation, body)):
        simpler = _simpler(head, body)
        if simpler is None:
            break
        body = simpler
    return body


def _simpler(head: tree.Atom, body: Sequence[tree.Literal]) -> list[tree.Literal] | None:
    """The conjunction with one record less; None if there is none to be taken apart."""
    for equation in body:
        if not _is_equation(equation):
            continue
        assert isinstance(equation, tree.Comparison)
        others = [literal for literal in body if literal is not equation]
        one, other = equation.left, equation.right
        if _is_record(one) and _is_record(other):
            return [*others, *_parts(one, other, equation)]
        record, name = (one, other) if _is_record(one) else (other, one)
        if not isinstance(name, tree.Variable) or _reads(head, name) or _reads(record, name):
            continue
        # The variable is that record, if nothing but equations with others like it reads it.
        uses = [literal for literal in others if _reads(literal, name)]
        if all(_is_equation(use, name) for use in uses):
            return [_with_record(literal, name, record) if literal in uses else literal for literal in others]
    return None


def _reads(node: tree.Term | tree.Literal, name: tree.Variable) -> bool:
    return any(variable.name == name.name for variable in variables_of((node,), is_deep=True))


def _parts(one: tree.Term, other: tree.Term, equation: tree.Comparison) -> list[tree.Literal]:
    assert isinstance(one, tree.Call)
    assert isinstance(other, tree.Call)
    if len(one.arguments) != len(other.arguments):
        return [tree.Truth(False, equation.span)]
    return [
        replace(equation, left=left, right=right)
        for left, right in zip(one.arguments, other.arguments, strict=True)
        if not isinstance(left, tree.Wildcard) and not isinstance(right, tree.Wildcard)
    ]


def _with_record(literal: tree.Literal, name: tree.Variable, record: tree.Term) -> tree.Literal:
    assert isinstance(literal, tree.Comparison)
    left, right = (record if _is_variable(side, name) else side for side in (literal.left, literal.right))
    return replace(literal, left=left, right=right)


def _is_equation(literal: tree.Literal, name: tree.Variable | None = None) -> bool:
    """Whether it equates a record, or a variable, with something."""
    if type(literal) is not tree.Comparison or literal.operator != "=":
        return False
    sides = literal.left, literal.right
    return any(map(_is_record, sides)) if name is None else any(_is_variable(side, name) for side in sides)


def _is_record(term: tree.Term) -> bool:
    return type(term) is tree.Call and term.functor == "[]"


def _is_variable(term: tree.Term, name: tree.Variable) -> bool:
    return type(term) is tree.Variable and term.name == name.name
