"""Branches of algebraic data types that several instances of a component have: each by the name of its instance.

`$` and a name say which type a value has, so the name must be one type's own. A branch `A` that only one type has keeps
its name, wherever that is declared. Of several, those of instances are called `c.A`: inside the instance `$A`, the
innermost there is, and `$c.A` elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from elastalog.diagnostics.source import Span
from elastalog.syntax import tree


def with_branch_names(items: Sequence[tree.Item]) -> list[tree.Item]:
    """The items of a flat program, the branches of instances told apart."""
    types = [item for item in items if type(item) is tree.TypeDeclaration]
    number = Counter(branch.name for item in types for branch in item.branches)
    shared = {name for name, count in number.items() if name and count > 1}
    if not shared:
        return list(items)
    renamed = {
        f"{item.instance.name}.{branch.name}"
        for item in types
        if item.instance is not None
        for branch in item.branches
        if branch.name in shared
    }
    return [_renamed(item, shared, renamed) for item in items]


def _renamed(item: tree.Item, shared: set[str], renamed: set[str]) -> tree.Item:
    match item:
        case tree.TypeDeclaration() if item.instance is not None:
            prefix = item.instance.name
            branches = tuple([replace(b, name=f"{prefix}.{b.name}") if b.name in shared else b for b in item.branches])
            return replace(item, branches=branches)
        case tree.Clause() | tree.Subsumption() if item.instance is not None:
            found: tree.Item = _inside(item, item.instance.name, renamed)
            return found
        case _:
            return item


def _inside(node: Any, instance: str, renamed: set[str]) -> Any:
    if isinstance(node, tuple) and not isinstance(node, Span):
        return tuple([_inside(part, instance, renamed) for part in node])
    if not is_dataclass(node) or isinstance(node, tree.Instance):
        return node
    parts = {part.name: getattr(node, part.name) for part in fields(node)}
    changed = {name: _inside(value, instance, renamed) for name, value in parts.items()}
    if isinstance(node, tree.Call) and node.functor[0] == "$":
        changed["functor"] = f"${_resolved(node.functor[1:], instance, renamed)}"
    return replace(node, **changed)


def _resolved(name: str, instance: str, renamed: set[str]) -> str:
    """The branch that a name means inside an instance: from the inside out."""
    while instance:
        if f"{instance}.{name}" in renamed:
            return f"{instance}.{name}"
        instance = instance.rpartition(".")[0]
    return name
