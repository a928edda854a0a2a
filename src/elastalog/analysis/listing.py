"""A checked program as text for people to read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.values import NIL, Branch, written
from elastalog.analysis.variables import is_made_name, is_wildcard_name
from elastalog.syntax.keywords import write_string
from elastalog.syntax.printer import print_comparison
from elastalog.syntax.tree import mapped, written_type

_Node = TypeVar("_Node")
_INFIX = frozenset(("+", "-", "*", "/", "%", "^"))


def list_program(program: checked.CheckedProgram) -> Iterator[str]:
    """Every relation, fact and rule on a line of its own; rules with their numbers and the types of their variables."""
    for relation in program.relations.values():
        yield show_relation(relation)
    for fact in program.facts:
        yield f"{fact.relation}({', '.join(show_value(value) for value in fact.values)})."
    for rule in program.rules:
        yield f"{show_rule(rule)}    // {_remark(rule)}"


def list_strata(program: checked.CheckedProgram, remarks: Mapping[str, str] | None = None) -> Iterator[str]:
    """Every stratum with its relations and rules in evaluation order, and a remark on a relation if there is one."""
    for stratum in program.strata:
        kind = "recursive" if stratum.is_recursive else "not recursive" if stratum.rules else "no rules"
        yield f"stratum {stratum.number}: {', '.join(stratum.relations)} ({kind})"
        if remarks is not None and stratum.relations[0] in remarks:
            yield f"  {remarks[stratum.relations[0]]}"
        for rule in stratum.rules:
            yield f"    {show_rule(rule)}    // {_remark(rule)}"


def _remark(rule: checked.Rule) -> str:
    types = {
        variable.name: variable.base.value
        for variable in checked.variables_in((*rule.body, rule.head), is_deep=True)
        if not is_wildcard_name(variable.name) and not is_made_name(variable.name)
    }
    texts = [f"rule {rule.number}", f"{rule.head.relation} {rule.number_in_relation}"]
    if rule.is_recursive:
        texts.append("recursive")
    if types:
        texts.append(", ".join(f"{name}: {base}" for name, base in types.items()))
    return "; ".join(texts)


def show_relation(relation: checked.Relation) -> str:
    """Its declaration, with the directives and the base types of declared types in a comment."""
    attributes = ", ".join(f"{attribute.name}: {written_type(attribute)}" for attribute in relation.attributes)
    text = f".decl {relation.name}({attributes})"
    remarks = [f"{a.type_name} is {a.base.value}" for a in relation.attributes if a.type_name != a.base.value]
    remarks += [f".{directive.kind}" for directive in relation.directives]
    return f"{text}    // {'; '.join(dict.fromkeys(remarks))}" if remarks else text


def show_rule(rule: checked.Rule) -> str:
    """The rule as it would be written."""
    head, *written = inlined((rule.head, *rule.body))
    body = f" :- {', '.join(map(show_literal, written))}" if written else ""
    return f"{show_literal(head)}{body}."


def show_literal(literal: checked.Literal) -> str:
    """The literal as it would be written."""
    match literal:
        case checked.Atom():
            return f"{literal.relation}({', '.join(show_expression(term) for term in literal.arguments)})"
        case checked.Negation():
            return f"!{show_literal(literal.atom)}"
        case checked.Comparison():
            return print_comparison(literal.operator, show_expression(literal.left), show_expression(literal.right))
        case checked.Aggregation():
            bodies = " ; ".join(_conjunction(body) for body in literal.bodies) or "false"
            return f"{literal.result.name} = {_operator_and_target(literal)}{{ {bodies} }}"
        case _:
            assert_never(literal)


def _operator_and_target(aggregate: checked.Aggregation) -> str:
    """What stands before the braces of an aggregate."""
    if aggregate.target is None:
        return f"{aggregate.operator} : "
    target = _built(aggregate.target, _made(aggregate.bodies[0] if aggregate.bodies else ()))
    if aggregate.operator[0] == "@" and isinstance(target, checked.Apply):
        start, value = map(show_expression, target.arguments)
        return f"@{aggregate.operator} {value} : {start}, "
    return f"{aggregate.operator} {show_expression(target)} : "


def show_expression(term: checked.Expression | checked.Wildcard) -> str:
    """The expression as it would be written, every operation in parentheses."""
    match term:
        case checked.Variable():
            return "_" if is_wildcard_name(term.name) else term.name
        case checked.Wildcard():
            return "_"
        case checked.Constant():
            return show_value(term.value) + ("u" if term.base is checked.Base.UNSIGNED else "")
        case checked.Apply():
            arguments = [show_expression(argument) for argument in term.arguments]
            if term.functor == "[]":
                return f"[{', '.join(arguments)}]"
            if term.functor in _INFIX:
                return f"({f' {term.functor} '.join(arguments)})"
            return f"-({arguments[0]})" if term.functor == "neg" else f"{term.functor}({', '.join(arguments)})"
        case _:
            assert_never(term)


def show_value(value: checked.Value) -> str:
    """A value as the language writes it."""
    return write_string(value) if isinstance(value, str) else written(value)


def json_value(value: Any) -> Any:
    """A value in JSON: records are lists and nil is null. Branches, NaN and infinities, which JSON lacks, are texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Branch):
        return written(value)
    if isinstance(value, tuple):
        return list(map(json_value, value))
    return None if value is NIL else value


def _conjunction(body: Iterable[checked.Literal]) -> str:
    return ", ".join(map(show_literal, inlined(tuple(body)))) or "true"


def inlined(literals: tuple[checked.Literal, ...]) -> list[checked.Literal]:
    """The literals as they were written: values that were given names to be built or taken apart are back in their
    places."""
    made = _made(literals)
    if not made:
        return list(literals)
    return [
        literal if isinstance(literal, checked.Aggregation) else _built(literal, made)
        for literal in literals
        if not (
            isinstance(literal, checked.Comparison)
            and isinstance(literal.left, checked.Variable)
            and literal.left.name in made
        )
    ]


def _made(literals: Iterable[checked.Literal]) -> dict[str, checked.Expression]:
    """The expressions behind the variables that were made for values that are built or taken apart."""
    return {
        literal.left.name: literal.right
        for literal in literals
        if isinstance(literal, checked.Comparison)
        and isinstance(literal.left, checked.Variable)
        and is_made_name(literal.left.name)
    }


def _built(tree: _Node, made: Mapping[str, checked.Expression]) -> _Node:
    """The tree with those expressions in place of the variables."""

    def put(node: Any) -> Any:
        return mapped(made[node.name], put) if type(node) is checked.Variable and node.name in made else node

    return mapped(tree, put)
