"""Branches of algebraic data types that several instances of a component have: each by the name of its instance.

`$` and a name say which type a value has, so the name must be one type's own. A branch `A` that only one type has keeps
its name, wherever that is declared. Of several, those of instances are called `c.A`: inside the instance `$A`, the
innermost there is, and `$c.A` elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from elastalog.syntax import tree
from elastalog.syntax.walk import mapped


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
            return mapped(item, partial(_resolving, item.instance.name, renamed))
        case _:
            return item


def _resolving(instance: str, renamed: set[str], node: object) -> object:
    """A node in which a branch has the name that it has in the whole program."""
    if not isinstance(node, tree.Call) or node.functor[0] != "$":
        return node
    return replace(node, functor=f"${_resolved(node.functor[1:], instance, renamed)}")


def _resolved(name: str, instance: str, renamed: set[str]) -> str:
    """The branch that a name means inside an instance: from the inside out."""
    while instance:
        if f"{instance}.{name}" in renamed:
            return f"{instance}.{name}"
        instance = instance.rpartition(".")[0]
    return name
