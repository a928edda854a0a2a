"""What names mean inside an instance of a component, searched from the inside out (its own names, inherited ones,
enclosing ones), and the items of a component under the names that they have in an instance.

A branch of an algebraic data type that is declared in a component is named after its instance, `$c.A`: as in Soufflé,
`$` and a name determine the type of a value, so no two types may share the name. Inside the instance, `$A` is the
innermost such branch; elsewhere it is the only branch whose name ends that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from elastalog.diagnostics.source import NOWHERE
from elastalog.late import dataclass
from elastalog.syntax import tree
from elastalog.syntax.tree import Component, mapped, with_parts

if TYPE_CHECKING:
    from typing import Self

_Item = TypeVar("_Item", bound=tree.Item)


@dataclass(slots=True, eq=False)
class Definition:
    """A component where it is written: `outer` is the one around it, `nested` are those inside. The whole program
    is one too, without a name and around all others."""

    component: Component
    outer: Definition | None
    nested: dict[str, Self] = field(default_factory=dict, init=False)

    def outwards(self) -> Iterator[Self]:
        """This component and those around it, from the inside out."""
        definition: Any = self
        while definition is not None:
            yield definition
            definition = definition.outer

    def inherited(self) -> list[Self]:
        """The components that this one inherits from directly, as far as they are known."""
        _, *around = self.outwards()
        found = [around[0].called(base.name) for base in self.component.bases]
        return [each for each in found if each is not None]

    def lineage(self) -> Iterator[Self]:
        """This component and all those that it inherits from."""
        pending, seen = [self], set[Definition]()
        while pending:
            each = pending.pop()
            if each not in seen:
                seen.add(each)
                yield each
                pending.extend(each.inherited()[::-1])

    def called(self, name: str) -> Self | None:
        """The component with a name: one nested in this component or in its bases, or one around it."""
        known = (each.nested for around in self.outwards() for each in around.lineage())
        return next((nested[name] for nested in known if name in nested), None)

    @property
    def parameters(self) -> frozenset[str]:
        """The parameters of the component and of those around it."""
        return frozenset(name for each in self.outwards() for name, _ in each.component.parameters)

    @property
    def is_open(self) -> bool:
        """Whether this component or one around it inherits from a parameter, so that its contents are not known yet."""
        return any(base.name in each.parameters for each in self.outwards() for base in each.component.bases)


def of_program(items: tuple[tree.Item, ...]) -> Component:
    """The whole program as a component."""
    return Component("", (), (), items, NOWHERE, NOWHERE)


@dataclass(frozen=True, slots=True)
class Argument:
    """What a parameter stands for: the name of a type, resolved where the instance is made, or a component."""

    type_name: str
    definition: Definition | None


Binding = Mapping[str, Argument]
Names = Callable[[str], str]
"""Gives what names mean, as full names."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The names that an instance declares, without its `prefix`. The outermost scope has those of the whole program,
    and an empty prefix."""

    prefix: str
    relations: frozenset[str]
    types: frozenset[str]
    instances: frozenset[str]
    outer: Scope | None

    def relation(self, name: str) -> str:
        """The full name of a relation; the name itself if it is unknown, for a later pass to report."""
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


def look_up(name: str, inside: Definition, binding: Binding) -> Definition | None:
    """The component with a name, which may be a parameter. If a parameter stands for a component that only the one at
    hand contains, that name is looked up here."""
    if name in binding:
        if binding[name].definition is not None:
            return binding[name].definition
        name = binding[name].type_name
    return inside.called(name)


_PLAIN: Final = frozenset((tree.Variable, tree.Wildcard, tree.Integer, tree.Float, tree.String)).__contains__
"""Whether a class of terms names no relation and no type."""


def renamed(item: _Item, instance: tree.Instance, relations: Names, types: Names, name: str | None) -> _Item:
    """An item as it is in an instance: with a name of its own if it declares one, and with the full names of the
    relations and types that it mentions. Nodes without such names are shared with the component."""

    def put(node: Any) -> Any:
        kind = type(node)
        if kind is tree.Atom:
            arguments = node.arguments
            if not all(map(_PLAIN, map(type, arguments))):
                arguments = with_parts(arguments, put)
            return tree.Atom(relations(node.relation), arguments, node.relation_span, node.span)
        if kind is tree.Cast or kind is tree.Attribute:
            named = types(node.type_name)
            return with_parts(node, put, **{} if named == node.type_name else {"type_name": named})
        return node if _PLAIN(kind) else with_parts(node, put)

    others: dict[str, Any] = {} if name is None else {"name": name}
    match item:
        case tree.Directive():
            others["relation"] = relations(item.relation)
        case tree.Lattice():
            others["type_name"] = types(item.type_name)
        case tree.TypeDeclaration():
            others["parents"] = tuple([(types(parent), span) for parent, span in item.parents])
    return with_parts(item, put, instance=instance, **others)


def with_branch_names(items: Sequence[tree.Item]) -> list[tree.Item]:
    """The items of a flat program, in which branches of different instances have different names."""
    renamed = [_renamed(item) if type(item) is tree.TypeDeclaration else item for item in items]
    names = [branch.name for item in renamed if type(item) is tree.TypeDeclaration for branch in item.branches]
    if not any("." in name for name in names):
        return list(items)
    meant: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        meant.setdefault(name.rpartition(".")[2], []).append(name)
    found: list[tree.Item] = []
    for item in renamed:
        if isinstance(item, tree.Clause | tree.Subsumption):
            instance = "" if item.instance is None else item.instance.name
            item = mapped(item, partial(_resolving, instance, frozenset(names), meant))
        found.append(item)
    return found


def _renamed(item: tree.TypeDeclaration) -> tree.TypeDeclaration:
    if item.instance is None:
        return item
    prefix = item.instance.name
    branches = tuple([replace(b, name=f"{prefix}.{b.name}") if b.name else b for b in item.branches])
    return replace(item, branches=branches)


def _resolving(instance: str, names: frozenset[str], meant: Mapping[str, list[str]], node: object) -> object:
    """The node, with a branch under the name that it has in the whole program."""
    if not isinstance(node, tree.Call) or node.functor[0] != "$":
        return node
    name = node.functor[1:]
    while instance and f"{instance}.{name}" not in names:
        instance = instance.rpartition(".")[0]
    if instance:
        return replace(node, functor=f"${instance}.{name}")
    alike = meant.get(name, [])
    return replace(node, functor=f"${alike[0]}") if name not in names and len(alike) == 1 else node
