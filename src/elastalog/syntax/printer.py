"""Syntax trees as text. The printed text parses to the same tree, except for spans."""

from __future__ import annotations

from typing import assert_never

from elastalog.syntax import tree
from elastalog.syntax.keywords import NOT, PRECEDENCE, PREFIX_PRECEDENCE, PREFIXES, TEXT_TESTS, write_string

_OPERAND = 12
"""Binds stronger than any operator."""


def print_tree(program: tree.Tree) -> str:
    """The program with one item per line; an empty text for an empty tree."""
    return "".join(print_item(item) + "\n" for item in program.items)


def print_item(item: tree.Item) -> str:
    """A declaration, a directive or a clause."""
    match item:
        case tree.RelationDeclaration():
            attributes = ", ".join(f"{attribute.name}: {tree.written_type(attribute)}" for attribute in item.attributes)
            qualifiers = "".join(f" {qualifier}" for qualifier, _ in item.qualifiers)
            choices = (", ".join(name for name, _ in key) for key in item.choices)
            keys = ", ".join(f"({names})" if "," in names else names for names in choices)
            return f".decl {item.name}({attributes}){qualifiers}{f' choice-domain {keys}' if keys else ''}"
        case tree.TypeDeclaration():
            if item.branches:
                return f".type {item.name} = {' | '.join(map(_print_branch, item.branches))}"
            parents = " | ".join(name for name, _ in item.parents)
            return f".type {item.name} {'<:' if item.kind == 'subtype' else '='} {parents}"
        case tree.FunctorDeclaration():
            listed = ", ".join(f"{parameter.name}: {parameter.type_name}" for parameter in item.parameters)
            return f".functor {item.name}({listed}): {item.result[0]}{' stateful' if item.is_stateful else ''}"
        case tree.Directive():
            parameters = ", ".join(f"{key}={write_string(value)}" for key, value, _ in item.parameters)
            return f".{item.kind} {item.relation}{f'({parameters})' if parameters else ''}"
        case tree.Pragma():
            return f".pragma {write_string(item.name)} {write_string(item.value)}"
        case tree.Clause():
            return print_clause(item)
        case tree.Lattice():
            operators = ", ".join(f"{name} -> {print_term(term)}" for name, term, _ in item.operators)
            return f".lattice {item.type_name}<> {{ {operators} }}"
        case tree.Subsumption():
            heads = f"{print_literal(item.dominated)} <= {print_literal(item.dominating)}"
            return f"{heads} :- {_print_body(item.body)}."
        case tree.Component():
            return _print_component(item)
        case tree.Init():
            return f".init {item.name} = {_print_component_type(item.component)}"
        case tree.Override():
            return f".override {item.relation}"
        case _:
            assert_never(item)


def _print_branch(branch: tree.BranchDeclaration) -> str:
    fields = ", ".join(f"{field.name}: {field.type_name}" for field in branch.fields)
    return f"{branch.name} {{{fields}}}" if branch.name else f"[{fields}]"


def _print_component(component: tree.Component) -> str:
    parameters = ", ".join(name for name, _ in component.parameters)
    bases = ", ".join(map(_print_component_type, component.bases))
    heading = f".comp {component.name}{f'<{parameters}>' if parameters else ''}{f' : {bases}' if bases else ''}"
    inside = "".join(f"    {line}\n" for item in component.items for line in print_item(item).split("\n"))
    return f"{heading} {{\n{inside}}}"


def _print_component_type(component: tree.ComponentType) -> str:
    arguments = ", ".join(name for name, _ in component.arguments)
    return f"{component.name}<{arguments}>" if arguments else component.name


def print_clause(clause: tree.Clause) -> str:
    """The clause on one line, with its plan on the next."""
    heads = ", ".join(map(print_literal, clause.heads))
    body = f" :- {_print_body(clause.body)}" if clause.body else ""
    return f"{heads}{body}." + (f"\n{_print_plan(clause.plan)}" if clause.plan else "")


def _print_plan(plan: tree.Plan) -> str:
    versions = ", ".join(f"{version}:({', '.join(map(str, order))})" for version, order in plan.versions)
    return f".plan {versions}" if versions else ".strict"


def _print_body(body: tree.Body) -> str:
    """A body that extends to the end of its clause or braces: if it consists of alternatives only, they need no
    parentheses."""
    if len(body) == 1 and isinstance(body[0], tree.Disjunction):
        return _print_alternatives(body[0])
    return ", ".join(map(print_literal, body))


def _print_alternatives(disjunction: tree.Disjunction) -> str:
    return "; ".join(", ".join(map(print_literal, body)) for body in disjunction.alternatives)


def print_literal(literal: tree.Literal) -> str:
    """A literal as it stands in a conjunction."""
    match literal:
        case tree.Atom():
            return f"{literal.relation}({_print_arguments(literal.arguments)})"
        case tree.Negation():
            return f"!{print_literal(literal.atom)}"
        case tree.NegatedGroup(body=(tree.Comparison(operator=operator) as single,)) if operator in TEXT_TESTS:
            return f"!{print_literal(single)}"
        case tree.NegatedGroup():
            return f"!({_print_body(literal.body)})"
        case tree.Comparison():
            return print_comparison(literal.operator, print_term(literal.left), print_term(literal.right))
        case tree.Truth():
            return "true" if literal.value else "false"
        case tree.Disjunction():
            return f"({_print_alternatives(literal)})"
        case _:
            assert_never(literal)


def print_comparison(operator: str, left: str, right: str) -> str:
    """A comparison of two terms that have been printed."""
    plain = operator.removeprefix(NOT)
    text = f"{plain}({left}, {right})" if plain in TEXT_TESTS else f"{left} {plain} {right}"
    return text if plain == operator else f"!{text}" if plain in TEXT_TESTS else f"!({text})"


def print_term(term: tree.Term) -> str:
    """A term as it stands between commas."""
    return _print_term(term, 0)


def _print_arguments(arguments: tuple[tree.Term, ...]) -> str:
    return ", ".join(map(print_term, arguments))


def _print_term(term: tree.Term, least: int) -> str:
    """A term, in parentheses if its outermost operator binds more weakly than `least`."""
    match term:
        case tree.Variable():
            return term.name
        case tree.Wildcard():
            return "_"
        case tree.Integer():
            # A negative number is a prefix minus to the operator `^`.
            text = f"{term.value}{'u' if term.is_unsigned else ''}"
            return f"({text})" if term.value < 0 and least > PREFIX_PRECEDENCE else text
        case tree.Float():
            text = repr(term.value)
            return f"({text})" if text.startswith("-") and least > PREFIX_PRECEDENCE else text
        case tree.String():
            return write_string(term.value)
        case tree.Call():
            text, precedence = _print_call(term)
            return f"({text})" if precedence < least else text
        case tree.Cast():
            return f"as({print_term(term.term)}, {term.type_name})"
        case tree.Aggregate(target=tree.Call(arguments=(start, folded))) if term.operator[0] == "@":
            return f"@{term.operator} {print_term(folded)} : {print_term(start)}, {{ {_print_body(term.body)} }}"
        case tree.Aggregate():
            target = "" if term.target is None else f" {print_term(term.target)}"
            return f"{term.operator}{target} : {{ {_print_body(term.body)} }}"
        case _:
            assert_never(term)


def _print_call(call: tree.Call) -> tuple[str, int]:
    """The text of a call, and how strongly its outermost operator binds."""
    functor, arguments = call.functor, call.arguments
    precedence = PRECEDENCE.get(functor)
    if precedence is not None and len(arguments) == 2:
        # The side to which the operator does not associate needs parentheses for the same operator.
        right_first = functor == "^"
        left = _print_term(arguments[0], precedence + right_first)
        right = _print_term(arguments[1], _least_on_right(arguments[1], precedence + (not right_first)))
        return f"{left} {functor} {right}", precedence
    if len(arguments) == 1 and functor == "neg":
        operand = arguments[0]
        if isinstance(operand, tree.Integer | tree.Float) and not repr(operand.value).startswith("-"):
            return f"-({_print_term(operand, 0)})", PREFIX_PRECEDENCE
        return f"-{_print_term(operand, PREFIX_PRECEDENCE)}", PREFIX_PRECEDENCE
    if functor == "[]":
        return f"[{_print_arguments(arguments)}]", _OPERAND
    if not arguments and (functor == "nil" or functor.startswith("$")):
        return functor, _OPERAND
    if len(arguments) == 1 and functor in ("bnot", "lnot"):
        return f"{functor}({print_term(arguments[0])})", PREFIX_PRECEDENCE
    return f"{functor}({_print_arguments(arguments)})", _OPERAND


def _least_on_right(operand: tree.Term, least: int) -> int:
    """Prefix operators and negative numbers may stand to the right of any operator, even of `^`."""
    is_prefix = isinstance(operand, tree.Integer | tree.Float) or (
        isinstance(operand, tree.Call) and len(operand.arguments) == 1 and operand.functor in PREFIXES.values()
    )
    return min(least, PREFIX_PRECEDENCE) if is_prefix else least
