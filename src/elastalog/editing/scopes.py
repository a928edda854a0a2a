"""What a program declares: scopes within scopes, one for the whole and one for each component, and what names mean in
them, from the inside out: own, inherited, enclosing. It asks less than the checker: half a program will do.

And where that is written: from the text that a program stands for to the places in files, and back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from elastalog.analysis.component_names import Definition, of_program
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax import tree
from elastalog.syntax.tree import Item, Tree


class Place(NamedTuple):
    """A span of a file, which is named by its whole path."""

    file: str
    span: Span


def file_of(source: Source) -> str:
    """The absolute path of a source, so that each file has one name."""
    return os.path.abspath(source.name)


def place_of(source: Source, span: Span) -> Place:
    """Where a span of the text that a program stands for was written."""
    origin = source.origin(span)
    return Place(file_of(origin.source), origin.span)


def verbatim_place(source: Source, span: Span) -> Place | None:
    """Where a span was written, if it was written literally; None if a macro stands for it, or if lines are
    renumbered."""
    origin = source.origin(span)
    if origin.source.first_line != 1 or origin.source.text[slice(*origin.span)] != source.text[slice(*span)]:
        return None
    return Place(file_of(origin.source), origin.span)


def offset_in(source: Source, file: str, offset: int) -> int | None:
    """The offset of a character of a file in the text of the program; None if it is not part of it: in a branch not
    taken, in a macro, or in a comment of another file."""
    if not source.pieces:
        return min(offset, len(source.text)) if file_of(source) == file else None
    for piece in source.pieces:
        is_inside = piece.is_verbatim and piece.span.start <= offset <= piece.span.end
        if is_inside and piece.source.first_line == 1 and file_of(piece.source) == file:
            return piece.start + offset - piece.span.start
    return None


# --- lines and columns, as editors count them ----------------------------------------------------------------------

_UNITS: Final[dict[str, Callable[[str], int]]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text) + sum(character > "\uffff" for character in text),
    "utf-32": len,
}


def position(source: Source, offset: int, encoding: str = "utf-16") -> tuple[int, int]:
    """Line and column of a character, both from 0, with columns in units of an encoding."""
    line, column = source.locate(min(offset, len(source.text)))
    return line - 1, _UNITS[encoding](source.line(line)[: column - 1])


def offset(source: Source, line: int, column: int, encoding: str = "utf-16") -> int:
    """The character at a line and column, both from 0, or the nearest one."""
    if line >= len(source.line_starts):
        return len(source.text)
    text = source.line(line + source.first_line)
    start = source.line_starts[line]
    if text.isascii() or encoding == "utf-32":
        return start + min(column, len(text))
    units = _UNITS[encoding]
    taken = 0
    for index, character in enumerate(text):
        if taken >= column:
            return start + index
        taken += units(character)
    return start + len(text)


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
    """Something with a name. Symbols are equal if they are declared at the same place of a file, so that programs that
    share files share symbols. `item` declares it; `span` is its name there."""

    kind: Kind
    name: str
    place: Place
    span: Span = field(compare=False, repr=False)
    item: Declaring = field(default=None, compare=False, repr=False)


@dataclass(slots=True, eq=False)
class Scope(Definition):
    """The names of a component, or of the whole program."""

    symbols: dict[tuple[Kind, str], Symbol] = field(default_factory=dict, init=False)

    def find(self, kind: Kind, name: str) -> Symbol | None:
        """What a name means here. A relation may be qualified by instances, `i.r`."""
        *instances, own = name.split(".")
        around: Iterable[Scope] = self.outwards()
        scope: Scope | None = self
        for instance in instances:
            found = next((symbol for each in around if (symbol := each._own(Kind.INSTANCE, instance))), None)
            scope = scope.scope_of(found) if scope is not None and found is not None else None
            around = () if scope is None else (scope,)
        return next((symbol for each in around if (symbol := each._own(kind, own))), None)

    def scope_of(self, instance: Symbol) -> Scope | None:
        """The component that an instance is made of."""
        return self.called(instance.item.component.name) if isinstance(instance.item, tree.Init) else None

    def _own(self, kind: Kind, name: str) -> Symbol | None:
        for scope in self.lineage():
            found = scope.symbols.get((kind, name)) or scope.symbols.get((Kind.PARAMETER, name))
            if found is not None and (found.kind is kind or kind in (Kind.TYPE, Kind.COMPONENT)):
                return found
        return None

    def visible(self, kind: Kind) -> dict[str, Symbol]:
        """Everything that can be named here without qualification."""
        found: dict[str, Symbol] = {}
        for each in (each for scope in self.outwards() for each in scope.lineage()):
            for (own, name), symbol in each.symbols.items():
                if own is kind:
                    found.setdefault(name, symbol)
        return found


Named: TypeAlias = (
    tree.RelationDeclaration | tree.TypeDeclaration | tree.FunctorDeclaration | tree.Init | tree.Component
)
DECLARED: Final[dict[type, Kind]] = {
    tree.RelationDeclaration: Kind.RELATION,
    tree.TypeDeclaration: Kind.TYPE,
    tree.FunctorDeclaration: Kind.FUNCTOR,
    tree.Init: Kind.INSTANCE,
    tree.Component: Kind.COMPONENT,
}
"""What the items declare that have a name."""


def detail_of(item: Named) -> str:
    """What is shown of a declaration besides its name."""
    match item:
        case tree.RelationDeclaration():
            return f"({', '.join(f'{each.name}: {tree.written_type(each)}' for each in item.attributes)})"
        case tree.TypeDeclaration():
            return item.kind
        case tree.FunctorDeclaration():
            return f"({', '.join(f'{each.name}: {each.type_name}' for each in item.parameters)}): {item.result[0]}"
        case tree.Init():
            return item.component.name
    return ""


def scopes_of(source: Source, program: Tree) -> Scope:
    """The scope of the whole program. If a name is declared twice, the first declaration counts."""
    top = Scope(of_program(program.items), None)
    _declare(source, top, top)
    return top


def _declare(source: Source, scope: Scope, top: Scope) -> None:
    def add(kind: Kind, name: str, span: Span, item: Declaring, where: Scope = scope) -> None:
        symbol = Symbol(kind, name, place_of(source, span), span, item)
        where.symbols.setdefault((kind, name), symbol)

    for item in scope.component.items:
        if isinstance(item, Named):
            kind = DECLARED[type(item)]
            add(kind, item.name, item.name_span, item, top if kind is Kind.FUNCTOR else scope)
        if isinstance(item, tree.TypeDeclaration):
            for branch in item.branches:
                if branch.name:
                    add(Kind.BRANCH, branch.name, branch.name_span, branch)
        elif isinstance(item, tree.Component):
            inner = scope.nested.setdefault(item.name, Scope(item, scope))
            for name, span in item.parameters:
                add(Kind.PARAMETER, name, span, item, inner)
            _declare(source, inner, top)
