"""A checked program as text for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Base,
    CheckedProgram,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Relation,
    Rule,
    Value,
    Variable,
    Wildcard,
)
from elastalog.analysis.values import written
from elastalog.syntax.constants import write_string

_INFIX = frozenset(("+", "-", "*", "/", "%", "^"))


def list_program(program: CheckedProgram) -> Iterator[str]:
    """Every relation, fact and rule, a line each; rules with their numbers and the types of their variables."""
    for relation in program.relations.values():
        yield show_relation(relation)
    for fact in program.facts:
        yield f"{fact.relation}({', '.join(show_value(value) for value in fact.values)})."
    for rule in program.rules:
        yield f"{show_rule(rule)}    // {_remark(rule)}"


def list_strata(program: CheckedProgram) -> Iterator[str]:
    """Every stratum with its relations and rules, in the order of evaluation."""
    for stratum in program.strata:
        kind = "recursive" if stratum.is_recursive else "not recursive" if stratum.rules else "no rules"
        yield f"stratum {stratum.number}: {', '.join(stratum.relations)} ({kind})"
        for rule in stratum.rules:
            yield f"    {show_rule(rule)}    // {_remark(rule)}"


def _remark(rule: Rule) -> str:
    types = {variable.name: variable.base.value for variable in _variables(rule) if not variable.name.startswith("_@")}
    texts = [f"rule {rule.number}", f"{rule.head.relation} {rule.number_in_relation}"]
    if rule.is_recursive:
        texts.append("recursive")
    if types:
        texts.append(", ".join(f"{name}: {base}" for name, base in types.items()))
    return "; ".join(texts)


def show_relation(relation: Relation) -> str:
    """Its declaration, with the directives and the base types of declared types in a comment."""
    attributes = ", ".join(f"{attribute.name}: {attribute.type_name}" for attribute in relation.attributes)
    text = f".decl {relation.name}({attributes})"
    remarks = [f"{a.type_name} is {a.base.value}" for a in relation.attributes if a.type_name != a.base.value]
    remarks += [f".{directive.kind}" for directive in relation.directives]
    return f"{text}    // {'; '.join(dict.fromkeys(remarks))}" if remarks else text


def show_rule(rule: Rule) -> str:
    """The rule as it would be written."""
    body = f" :- {_conjunction(rule.body)}" if rule.body else ""
    return f"{show_literal(rule.head)}{body}."


def show_literal(literal: Literal) -> str:
    """The literal as it would be written."""
    match literal:
        case Atom():
            return f"{literal.relation}({', '.join(show_expression(term) for term in literal.arguments)})"
        case Negation():
            return f"!{show_literal(literal.atom)}"
        case Comparison():
            left, right = show_expression(literal.left), show_expression(literal.right)
            if literal.operator in ("match", "contains"):
                return f"{literal.operator}({left}, {right})"
            return f"{left} {literal.operator} {right}"
        case Aggregation():
            target = "" if literal.target is None else f" {show_expression(literal.target)}"
            bodies = " ; ".join(_conjunction(body) for body in literal.bodies) or "false"
            return f"{literal.result.name} = {literal.operator}{target} : {{ {bodies} }}"
        case _:
            assert_never(literal)


def show_expression(term: Expression | Wildcard) -> str:
    """The expression as it would be written, every operation in parentheses."""
    match term:
        case Variable():
            return "_" if term.name.startswith("_@") else term.name
        case Wildcard():
            return "_"
        case Constant():
            return show_value(term.value) + ("u" if term.base is Base.UNSIGNED else "")
        case Apply():
            arguments = [show_expression(argument) for argument in term.arguments]
            if term.functor == "[]":
                return f"[{', '.join(arguments)}]"
            if term.functor in _INFIX:
                return f"({f' {term.functor} '.join(arguments)})"
            return f"-({arguments[0]})" if term.functor == "neg" else f"{term.functor}({', '.join(arguments)})"
        case _:
            assert_never(term)


def show_value(value: Value) -> str:
    """A value as the language writes it."""
    return write_string(value) if isinstance(value, str) else written(value)


def _conjunction(body: Iterable[Literal]) -> str:
    return ", ".join(show_literal(literal) for literal in body) or "true"


def _variables(rule: Rule) -> Iterator[Variable]:
    pending: list[Literal | Expression | Wildcard] = [rule.head, *reversed(rule.body)]
    while pending:
        node = pending.pop()
        match node:
            case Variable():
                yield node
            case Atom() | Apply():
                pending.extend(reversed(node.arguments))
            case Negation():
                pending.append(node.atom)
            case Comparison():
                pending.extend((node.right, node.left))
            case Aggregation():
                yield node.result
                pending.extend([literal for body in node.bodies for literal in body][::-1])
            case Constant() | Wildcard():
                pass
            case _:
                assert_never(node)
