"""Walking through syntax trees, for the reference evaluator."""

from collections.abc import Iterator
from typing import Any

from elastalog.diagnostics.source import Span
from elastalog.syntax import tree as syntax

LEAVES = {str, int, float, bool, type(None), Span}
"""What has no nodes in it: most of what is in a tree."""


def walk(node: Any, kind: Any, is_deep: bool = True) -> Iterator[Any]:
    """The nodes of a kind in a node; those inside of aggregates only if `is_deep`."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, kind):
            yield node
        children = node if isinstance(node, tuple) else [getattr(node, name) for name in getattr(node, "__slots__", ())]
        inner = [child for child in reversed(children) if type(child) not in LEAVES]
        waiting += inner if is_deep else [child for child in inner if not isinstance(child, syntax.Aggregate)]


def names(node: Any, is_deep: bool = True) -> set[str]:
    return {variable.name for variable in walk(node, syntax.Variable, is_deep)}


def name_of(term: Any) -> str | None:
    """The name of a variable, cast or not; a wildcard is a variable of its own."""
    while isinstance(term, syntax.Cast):
        term = term.term
    return f"_@{term.span.start}" if isinstance(term, syntax.Wildcard) else getattr(term, "name", None)


def is_made(term: Any) -> bool:
    """Whether a term builds a value out of parts, or takes one apart."""
    return isinstance(term, syntax.Call) and (term.functor in ("[]", "nil") or term.functor.startswith("$"))
