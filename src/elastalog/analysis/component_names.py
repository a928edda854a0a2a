"""What names mean inside an instance of a component: from the inside out, its own, inherited, and enclosing ones; and
items of a component under the names that they have in an instance.

A branch of an algebraic data type that a component declares has the name of its instance, `$c.A`: `$` and a name say
which type a value has, so the name must be one type's own, as it is in Soufflé. Inside the instance `$A` is the
innermost there is; elsewhere it is the only one that ends so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Final, TypeVar

from elastalog.analysis.graphs import reached
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.tree import Component, mapped, with_parts

_Item = TypeVar("_Item", bound=tree.Item)


@dataclass(slots=True, eq=False)
class Definition:
    """A component where it is written: `outer` is the component around it, `nested` are those inside."""

    component: Component
    outer: Definition | None
    nested: dict[str, Definition] = field(default_factory=dict)

    def outwards(self) -> Iterator[Definition]:
        """The component and those around it."""
        definition: Definition | None = self
        while definition is not None:
            yield definition
            definition = definition.outer


@dataclass(frozen=True, slots=True)
class Argument:
    """What a parameter stands for: the name of a type, resolved where the instance is made, or a component."""

    type_name: str
    definition: Definition | None


Binding = Mapping[str, Argument]


class Names(dict[str, str]):
    """What names mean, each found out once."""

    def __init__(self, meaning: Callable[[str], str]) -> None:
        self.meaning = meaning

    def __missing__(self, name: str) -> str:
        found = self[name] = self.meaning(name)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The names that an instance declares, without its `prefix`; the whole program's for the outermost, whose prefix is
    empty."""

    prefix: str
    relations: frozenset[str]
    types: frozenset[str]
    instances: frozenset[str]
    outer: Scope | None

    def relation(self, name: str) -> str:
        """The full name of a relation; itself where nothing of the name is known, for a later pass to report."""
        return self._resolve(name, lambda scope: scope.relations)

    def type_name(self, name: str) -> str:
        """The full name of a type, like `relation`."""
        return self._resolve(name, lambda scope: scope.types)

    def _resolve(self, name: str, declared: Callable[[Scope], frozenset[str]]) -> str:
        first, dot, _ = name.partition(".")
        scope: Scope | None = self
        while scope is not None:
            if name in declared(scope) or (dot and first in scope.instances):
                return scope.prefix + name
            scope = scope.outer
        return name


def look_up(name: str, inside: Definition | None, binding: Binding, top: Mapping[str, Definition]) -> Definition | None:
    """The component of a name: a parameter, one nested in the component at hand or in its bases, or one around it. A
    parameter may stand for a component that only the one at hand holds: its name is then looked up here."""
    if name in binding:
        if binding[name].definition is not None:
            return binding[name].definition
        name = binding[name].type_name
    seen: set[int] = set()
    found = (_inherited(name, each, top, seen) for each in inside.outwards()) if inside is not None else ()
    return next((each for each in found if each is not None), top.get(name))


def _inherited(name: str, inside: Definition, top: Mapping[str, Definition], seen: set[int]) -> Definition | None:
    if id(inside) in seen:
        return None
    seen.add(id(inside))
    if name in inside.nested:
        return inside.nested[name]
    for base in inside.component.bases:
        if base.name != name:
            definition = look_up(base.name, inside.outer, {}, top)
            found = _inherited(name, definition, top, seen) if definition is not None else None
            if found is not None:
                return found
    return None


def inherits_from_itself(definition: Definition, top: Mapping[str, Definition]) -> bool:
    """Whether the way through the bases of a component leads back to it."""

    def bases(current: Definition) -> list[Definition]:
        found = [look_up(base.name, current.outer, {}, top) for base in current.component.bases]
        return [each for each in found if each is not None]

    return definition in reached(bases(definition), bases)


def parameters_around(definition: Definition) -> frozenset[str]:
    """The parameters of a component and of those around it."""
    return frozenset(name for each in definition.outwards() for name, _ in each.component.parameters)


def is_open(definition: Definition | None) -> bool:
    """Whether a component or one around it inherits from a parameter, so that what it holds is not known yet."""
    around = definition.outwards() if definition is not None else ()
    return any(base.name in parameters_around(each) for each in around for base in each.component.bases)


_PLAIN: Final = frozenset((tree.Variable, tree.Wildcard, tree.Integer, tree.Float, tree.String)).__contains__
"""Whether a class of terms names no relation and no type."""


def renamed(item: _Item, instance: tree.Instance, relations: Names, types: Names, name: str | None) -> _Item:
    """An item in an instance, under a name if it declares one, with the relations and types that it names under other
    names. Nodes that name none are shared with the component."""

    def put(node: Any) -> Any:
        kind = type(node)
        if kind is tree.Atom:
            arguments = node.arguments
            if not all(map(_PLAIN, map(type, arguments))):
                arguments = with_parts(arguments, put)
            return tree.Atom(relations[node.relation], arguments, node.relation_span, node.span)
        if kind is tree.Cast or kind is tree.Attribute:
            named = types[node.type_name]
            return with_parts(node, put, **{} if named == node.type_name else {"type_name": named})
        return node if _PLAIN(kind) else with_parts(node, put)

    others: dict[str, Any] = {} if name is None else {"name": name}
    match item:
        case tree.Directive():
            others["relation"] = relations[item.relation]
        case tree.Lattice():
            others["type_name"] = types[item.type_name]
        case tree.TypeDeclaration():
            others["parents"] = tuple([(types[parent], span) for parent, span in item.parents])
    return with_parts(item, put, instance=instance, **others)


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
