"""Trees gone through, whatever they are made of: those of the syntax, and those of what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar

from elastalog.diagnostics.source import Span

_Node = TypeVar("_Node")


def nodes_of(kind: type[_Node], tree: object) -> Iterator[_Node]:
    """The nodes of a kind in a tree, in the order written, each before those inside it."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, kind):
            yield node
        if isinstance(node, Span):
            continue
        if isinstance(node, tuple):
            pending.extend(reversed(node))
        elif is_dataclass(node) and not isinstance(node, type):
            pending.extend(getattr(node, part.name) for part in reversed(fields(node)))


def mapped(tree: _Node, change: Callable[[Any], Any]) -> _Node:
    """A tree with every node changed, from below. Where nothing changes it is itself."""
    node: Any = tree
    if isinstance(node, tuple) and not isinstance(node, Span):
        parts: Any = tuple([mapped(part, change) for part in node])
        return tree if all(map(is_, parts, node)) else parts
    if not is_dataclass(node):
        return tree
    before = {part.name: getattr(node, part.name) for part in fields(node)}
    after = {name: mapped(part, change) for name, part in before.items()}
    changed = {name: part for name, part in after.items() if part is not before[name]}
    made: _Node = change(replace(node, **changed) if changed else node)  # type: ignore[type-var]
    return made
