"""The variables of what was written: where they occur, which of them get values, how they are named, and how terms
replace them.

Some variables have names that no program can write: `_@1` for wildcards, `x@1` for variables renamed so that each scope
has its own, `@r1` for values that an expression builds or takes apart, `count@1` and `range@2` for the values of an
aggregate or range in an expression, and `x@=1` for a value that must equal another variable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from elastalog.analysis.draft import is_constructor
from elastalog.diagnostics.source import Span
from elastalog.syntax import tree
from elastalog.syntax.keywords import AGGREGATES
from elastalog.syntax.tree import nodes_of, with_parts


def variables_of(nodes: Iterable[tree.Term | tree.Literal], is_deep: bool) -> list[tree.Variable]:
    """The variables in nodes, in the order written; those inside aggregates only when `is_deep`."""
    return list(nodes_of(tree.Variable, tuple(nodes), closed=() if is_deep else (tree.Aggregate,)))


def mentions(node: tree.Term | tree.Literal, names: Collection[str]) -> bool:
    """Whether one of some variables occurs in a node."""
    return any(variable.name in names for variable in variables_of((node,), is_deep=True))


def variables_inside(aggregate: tree.Aggregate) -> list[tree.Variable]:
    """The variables directly inside an aggregate, without those of nested aggregates."""
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
    """The variables that a conjunction gives values (by atoms, equations, or as results of aggregates), together with
    those already known."""
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


# --- names -----------------------------------------------------------------------------------------------------------


def wildcard_name(number: int) -> str:
    """The variable that a wildcard of a positive atom becomes."""
    return f"_@{number}"


def fresh_name(stem: str, number: int) -> str:
    """The name of a variable like another, in a scope of its own."""
    return f"{stem}@{number}"


def made_name(number: int) -> str:
    """The variable that stands for what an expression builds or takes apart."""
    return f"@r{number}"


def is_made_name(name: str) -> bool:
    """Whether a variable stands for what an expression builds or takes apart."""
    return name.startswith("@r")


def equal_name(stem: str, number: int) -> str:
    """The name of a variable that must equal another."""
    return f"{stem}@={number}"


def is_implied_name(name: str) -> bool:
    """Whether the value of a variable follows from what is written: the value of an aggregate in an expression, of a
    value that is built or taken apart, or one that must equal another variable. A range has several values."""
    return name.startswith("@") or "@=" in name or written_name(name) in AGGREGATES


def is_wildcard_name(name: str) -> bool:
    """Whether a variable was written as `_`."""
    return name.startswith("_@")


def is_written(name: str) -> bool:
    """Whether a variable has the name that the user gave it, in the rule's own scope."""
    return "@" not in name


def written_name(name: str) -> str:
    """The name of a variable as the user wrote it."""
    return name.partition("@")[0]


# --- substitution ----------------------------------------------------------------------------------------------------

Fresh = Callable[[str, Span], tree.Term]
"""Makes the variable that stands for a wildcard, or the wildcard itself."""
_Node = TypeVar("_Node")


def substitute(tree_of: _Node, terms: Mapping[str, tree.Term], wildcard: Fresh | None = None) -> _Node:
    """A body, literal or term with terms in place of variables. A wildcard of a positive atom is replaced by what
    `wildcard` makes; one in a negated atom stays."""

    def put(node: Any) -> Any:
        if type(node) is tree.Variable:
            return terms.get(node.name, node)
        if type(node) is tree.Wildcard:
            return node if wildcard is None else wildcard("any", node.span)
        if type(node) is tree.Negation:
            arguments = (term if type(term) is tree.Wildcard else put(term) for term in node.atom.arguments)
            return replace(node, atom=replace(node.atom, arguments=tuple(arguments)))
        return with_parts(node, put)

    found: _Node = put(tree_of)
    return found
