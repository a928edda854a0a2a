"""Branches of algebraic data types that are declared in components: each by the name of its instance, `$c.A`.

`$` and a name say which type a value has, so the name must be one type's own, as it is in Soufflé. Inside the instance
`$A` is the innermost there is; elsewhere it is the only one that ends so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from elastalog.syntax import tree
from elastalog.syntax.walk import mapped


def with_branch_names(items: Sequence[tree.Item]) -> list[tree.Item]:
    """The items of a flat program, the branches of instances told apart."""
    renamed = [_renamed(item) if type(item) is tree.TypeDeclaration else item for item in items]
    names = [branch.name for item in renamed if type(item) is tree.TypeDeclaration for branch in item.branches]
    if not any("." in name for name in names):
        return list(items)
    meant: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        meant.setdefault(name.rpartition(".")[2], []).append(name)
    return [_resolved(item, frozenset(names), meant) for item in renamed]


def _renamed(item: tree.TypeDeclaration) -> tree.TypeDeclaration:
    if item.instance is None:
        return item
    prefix = item.instance.name
    branches = tuple([replace(b, name=f"{prefix}.{b.name}") if b.name else b for b in item.branches])
    return replace(item, branches=branches)


def _resolved(item: tree.Item, names: frozenset[str], meant: Mapping[str, list[str]]) -> tree.Item:
    if not isinstance(item, tree.Clause | tree.Subsumption):
        return item
    instance = "" if item.instance is None else item.instance.name
    return mapped(item, partial(_resolving, instance, names, meant))


def _resolving(instance: str, names: frozenset[str], meant: Mapping[str, list[str]], node: object) -> object:
    """A node in which a branch has the name that it has in the whole program."""
    if not isinstance(node, tree.Call) or node.functor[0] != "$":
        return node
    name = node.functor[1:]
    while instance and f"{instance}.{name}" not in names:
        instance = instance.rpartition(".")[0]
    if instance:
        return replace(node, functor=f"${instance}.{name}")
    alike = meant.get(name, [])
    return replace(node, functor=f"${alike[0]}") if name not in names and len(alike) == 1 else node
