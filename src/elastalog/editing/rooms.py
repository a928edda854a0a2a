"""What a program declares: rooms within rooms, one for the whole and one for each component, and what names mean in
them, from the inside out: own, inherited, enclosing. It asks less than the checker: half a program will do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from elastalog.diagnostics.source import Source, Span
from elastalog.editing.places import Place, place_of
from elastalog.syntax import tree
from elastalog.syntax.tree import Item, Tree


class Kind(Enum):
    """What a name can stand for."""

    RELATION = "relation"
    TYPE = "type"
    COMPONENT = "component"
    INSTANCE = "instance"
    FUNCTOR = "functor"
    BRANCH = "branch"
    PARAMETER = "parameter"
    VARIABLE = "variable"


Declaring: TypeAlias = Item | tree.BranchDeclaration | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something with a name. It is the same wherever it is declared at the same place of a file, so that programs that
    share files share symbols. `item` declares it; `span` is its name there."""

    kind: Kind
    name: str
    place: Place
    span: Span = field(compare=False, repr=False)
    item: Declaring = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=False)
class Room:
    """The names of a component, or of the whole program."""

    component: tree.Component | None
    outer: Room | None
    symbols: dict[tuple[Kind, str], Symbol] = field(default_factory=dict)
    inner: dict[str, Room] = field(default_factory=dict)

    def find(self, kind: Kind, name: str) -> Symbol | None:
        """What a name means here. A relation may be qualified by instances, `i.r`."""
        first, dot, rest = name.partition(".")
        room: Room | None = self
        while room is not None:
            found = room._own(Kind.INSTANCE if dot else kind, first)
            if found is not None:
                return found if not dot else self._member(found, kind, rest)
            room = room.outer
        return None

    def _member(self, instance: Symbol, kind: Kind, name: str) -> Symbol | None:
        room = self.room_of(instance)
        if room is None:
            return None
        first, dot, rest = name.partition(".")
        found = room._own(Kind.INSTANCE if dot else kind, first)
        return found if found is None or not dot else room._member(found, kind, rest)

    def room_of(self, instance: Symbol) -> Room | None:
        """The component that an instance is made of."""
        return self.room(instance.item.component.name) if isinstance(instance.item, tree.Init) else None

    def room(self, component: str) -> Room | None:
        """The component of a name; a parameter stands for none."""
        room: Room | None = self
        while room is not None:
            for each in room.lineage():
                if component in each.inner:
                    return each.inner[component]
            room = room.outer
        return None

    def lineage(self) -> Iterator[Room]:
        """The component and those that it inherits from."""
        seen: set[int] = set()
        waiting = [self]
        while waiting:
            room = waiting.pop(0)
            if id(room) in seen:
                continue
            seen.add(id(room))
            yield room
            bases = room.component.bases if room.component is not None else ()
            for base in bases:
                found = room.outer._enclosing(base.name) if room.outer is not None else None
                if found is not None:
                    waiting.append(found)

    def _enclosing(self, component: str) -> Room | None:
        room: Room | None = self
        while room is not None:
            if component in room.inner:
                return room.inner[component]
            room = room.outer
        return None

    def _own(self, kind: Kind, name: str) -> Symbol | None:
        for room in self.lineage():
            found = room.symbols.get((kind, name)) or room.symbols.get((Kind.PARAMETER, name))
            if found is not None and (found.kind is kind or kind in (Kind.TYPE, Kind.COMPONENT)):
                return found
        return None

    def visible(self, kind: Kind) -> dict[str, Symbol]:
        """All that can be named here without qualification."""
        found: dict[str, Symbol] = {}
        room: Room | None = self
        while room is not None:
            for each in room.lineage():
                for (own, name), symbol in each.symbols.items():
                    if own is kind:
                        found.setdefault(name, symbol)
            room = room.outer
        return found


def rooms_of(source: Source, program: Tree) -> Room:
    """The room of the whole program. Of two declarations of a name the first counts."""
    top = Room(None, None)
    _declare(source, program.items, top, top)
    return top


def _declare(source: Source, items: tuple[Item, ...], room: Room, top: Room) -> None:
    def add(kind: Kind, name: str, span: Span, item: Declaring, where: Room = room) -> None:
        symbol = Symbol(kind, name, place_of(source, span), span, item)
        where.symbols.setdefault((kind, name), symbol)

    for item in items:
        match item:
            case tree.RelationDeclaration():
                add(Kind.RELATION, item.name, item.name_span, item)
            case tree.TypeDeclaration():
                add(Kind.TYPE, item.name, item.name_span, item)
                for branch in item.branches:
                    if branch.name:
                        add(Kind.BRANCH, branch.name, branch.name_span, branch)
            case tree.FunctorDeclaration():
                add(Kind.FUNCTOR, item.name, item.name_span, item, top)
            case tree.Init():
                add(Kind.INSTANCE, item.name, item.name_span, item)
            case tree.Component():
                add(Kind.COMPONENT, item.name, item.name_span, item)
                inner = room.inner.setdefault(item.name, Room(item, room))
                for name, span in item.parameters:
                    add(Kind.PARAMETER, name, span, item, inner)
                _declare(source, item.items, inner, top)
            case _:
                pass
