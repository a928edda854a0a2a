"""What names mean inside an instance of a component: from the inside out, its own, inherited, and enclosing ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from elastalog.late import dataclass
from elastalog.syntax.tree import Component


@dataclass(slots=True, eq=False)
class Definition:
    """A component where it is written: `outer` is the component around it, `nested` are those inside."""

    component: Component
    outer: Definition | None
    nested: dict[str, Definition] = field(default_factory=dict)


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
    while inside is not None:
        found = _inherited(name, inside, top, seen)
        if found is not None:
            return found
        inside = inside.outer
    return top.get(name)


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
    pending, seen = [definition], set[int]()
    while pending:
        current = pending.pop()
        for base in current.component.bases:
            found = look_up(base.name, current.outer, {}, top)
            if found is definition:
                return True
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                pending.append(found)
    return False


def parameters_around(definition: Definition) -> frozenset[str]:
    """The parameters of a component and of those around it."""
    names: set[str] = set()
    current: Definition | None = definition
    while current is not None:
        names |= {name for name, _ in current.component.parameters}
        current = current.outer
    return frozenset(names)


def is_open(definition: Definition | None) -> bool:
    """Whether a component or one around it inherits from a parameter, so that it may hold what nobody knows yet."""
    while definition is not None:
        names = parameters_around(definition)
        if any(base.name in names for base in definition.component.bases):
            return True
        definition = definition.outer
    return False
