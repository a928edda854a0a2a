"""A program as it stands in an editor, read as far as it can be, and every name that it writes, with what it means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.scopes import Kind, Scope, Symbol, declared_by, file_of, offset_in, place_of, scopes_of
from elastalog.program import Program
from elastalog.program.preprocessing import Preprocessing, preprocess
from elastalog.program.program import examine
from elastalog.syntax import tree
from elastalog.syntax.tree import Clause, Item, Subsumption, Tree


@dataclass(frozen=True)
class Reading:
    """`file` and all that it includes. `tree` holds what can be read, `program` is None while there are errors;
    `diagnostics` are all that the checker has to say. What names mean is found out when it is first asked for."""

    file: str
    source: Source
    tree: Tree
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    files: frozenset[str]

    @cached_property
    def top(self) -> Scope:
        """What is declared, components as scopes within scopes."""
        return scopes_of(self.source, self.tree)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every name with what it means, in the order of their places."""
        return tuple(sorted(_Walk(self.source).items(self.tree.items, self.top), key=lambda found: found.span))

    def at(self, file: str, offset: int) -> Occurrence | None:
        """The name at a place of a file; just behind it counts too."""
        found = offset_in(self.source, file, offset)
        if found is None:
            return None
        around = [each for each in self.occurrences if each.span.start <= found <= each.span.end]
        return min(around, key=lambda each: (each.span.end == found, each.span.end - each.span.start), default=None)


def read(file: str, text_of: Callable[[str], str], options: Preprocessing | None = None) -> Reading:
    """Read a program. `text_of` gives the text of a file, as the editor has it or as it is on disk, and raises
    ElastalogError. Nothing is raised: where lines for the preprocessor are at fault, the file stands for itself."""
    file = os.path.abspath(file)
    found: tuple[Diagnostic, ...]
    try:
        root = Source(file, text_of(file))
    except ElastalogError as fault:
        empty = Source(file, "")
        return Reading(file, empty, Tree(empty, ()), None, fault.diagnostics, frozenset((file,)))
    try:
        source, faults = preprocess(root, options or Preprocessing(), text_of), None
    except ElastalogError as fault:
        source, faults = root, fault.diagnostics
    tree, program, found = examine(source)
    if faults is not None:
        program, found = None, faults
    if program is not None:
        found = (*found, *_findings_of_planning(program))
    files = frozenset({file, *(file_of(piece.source) for piece in source.pieces)})
    return Reading(file, source, tree, program, found, files)


def _findings_of_planning(program: Program) -> tuple[Diagnostic, ...]:
    """A group of an aggregate that only recursion binds comes to light when aggregates are rewritten."""
    from elastalog.planning.lower import lower

    try:
        lower(program.checked)
    except ElastalogError as fault:
        return fault.diagnostics
    return ()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a `span` of the program's text. `clause`: that it stands in."""

    span: Span
    symbol: Symbol
    clause: Clause | Subsumption | None = None


class _Walk:
    """Finds every name of a program, declarations included. Names that mean nothing are left out."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def items(self, items: tuple[Item, ...], scope: Scope) -> Iterator[Occurrence]:
        for item in items:
            yield from self.item(item, scope)

    def item(self, item: Item, scope: Scope) -> Iterator[Occurrence]:
        declared = declared_by(item)
        if declared is not None:
            yield from self.name(declared[0], declared[1].name, declared[1].name_span, scope)
        match item:
            case tree.RelationDeclaration():
                yield from self.attributes(item.attributes, scope)
            case tree.TypeDeclaration():
                for name, span in item.parents:
                    yield from self.name(Kind.TYPE, name, span, scope)
                for branch in item.branches:
                    yield from self.name(Kind.BRANCH, branch.name, branch.name_span, scope)
                    yield from self.attributes(branch.fields, scope)
            case tree.FunctorDeclaration():
                yield from self.attributes(item.parameters, scope)
                yield from self.name(Kind.TYPE, *item.result, scope)
            case tree.Directive() | tree.Override():
                yield from self.name(Kind.RELATION, item.relation, item.relation_span, scope)
            case tree.Init():
                yield from self.component_type(item.component, scope)
            case tree.Component():
                yield from self.component(item, scope)
            case tree.Clause() | tree.Subsumption():
                yield from _Rule(self, item, scope).occurrences()
            case tree.Lattice():
                yield from self.name(Kind.TYPE, item.type_name, item.type_span, scope)
                for _, term, _ in item.operators:
                    if isinstance(term, tree.Call) and term.functor[0] in _SIGNS:
                        yield from self.name(_SIGNS[term.functor[0]], term.functor[1:], _behind_sign(term), scope)
            case tree.Pragma():
                pass

    def component(self, item: tree.Component, scope: Scope) -> Iterator[Occurrence]:
        inner = scope.inner[item.name]
        for name, span in item.parameters:
            yield from self.name(Kind.PARAMETER, name, span, inner)
        for base in item.bases:
            yield from self.component_type(base, inner)
        yield from self.items(item.items, inner)

    def component_type(self, wanted: tree.ComponentType, scope: Scope) -> Iterator[Occurrence]:
        yield from self.name(Kind.COMPONENT, wanted.name, wanted.name_span, scope)
        for name, span in wanted.arguments:
            found = list(self.name(Kind.TYPE, name, span, scope))
            yield from found or self.name(Kind.COMPONENT, name, span, scope)

    def attributes(self, attributes: Iterable[tree.Attribute], scope: Scope) -> Iterator[Occurrence]:
        for attribute in attributes:
            yield from self.name(Kind.TYPE, attribute.type_name, attribute.type_span, scope)

    def name(
        self, kind: Kind, name: str, span: Span, scope: Scope, clause: Clause | Subsumption | None = None
    ) -> Iterator[Occurrence]:
        """The name, and of a qualified one the instances before its dots."""
        symbol = scope.find(kind, name)
        if "." not in name or self.source.text[span.start : span.end] != name:
            if symbol is not None:
                yield Occurrence(span, symbol, clause)
            return
        start = span.start
        words = name.split(".")
        for index, word in enumerate(words[:-1]):
            instance = scope.find(Kind.INSTANCE, ".".join(words[: index + 1]))
            if instance is not None:
                yield Occurrence(Span(start, start + len(word)), instance, clause)
            start += len(word) + 1
        if symbol is not None:
            yield Occurrence(Span(start, span.end), symbol, clause)


class _Rule:
    """The names of one clause. Its variables are its own; those of aggregates are taken together with them, since
    renaming all of them at once changes nothing."""

    def __init__(self, walk: _Walk, clause: Clause | Subsumption, scope: Scope) -> None:
        self.walk = walk
        self.clause = clause
        self.scope = scope
        self.variables: dict[str, Symbol] = {}

    def occurrences(self) -> Iterator[Occurrence]:
        for node in tree.nodes_of(object, self.clause):
            match node:
                case tree.Atom():
                    yield from self.name(Kind.RELATION, node.relation, node.relation_span)
                case tree.Variable():
                    yield Occurrence(node.span, self.variable(node), self.clause)
                case tree.Call():
                    yield from self.functor(node)
                case tree.Cast():
                    yield from self.name(Kind.TYPE, node.type_name, node.type_span)
                case tree.Aggregate() if node.operator[0] == "@" and isinstance(node.target, tree.Call):
                    span = Span(node.target.functor_span.start + 2, node.target.functor_span.end)
                    yield from self.name(Kind.FUNCTOR, node.operator[1:], span)
                case _:
                    pass

    def name(self, kind: Kind, name: str, span: Span) -> Iterator[Occurrence]:
        return self.walk.name(kind, name, span, self.scope, self.clause)

    def variable(self, term: tree.Variable) -> Symbol:
        known = self.variables.get(term.name)
        if known is None:
            place = place_of(self.walk.source, term.span)
            known = self.variables[term.name] = Symbol(Kind.VARIABLE, term.name, place, term.span)
        return known

    def functor(self, call: tree.Call) -> Iterator[Occurrence]:
        """A branch `$A` or a functor of the user `@f`: the name stands behind the sign."""
        kind = _SIGNS.get(call.functor[:1])
        if kind is not None and len(call.functor) > 1:
            yield from self.name(kind, call.functor[1:], _behind_sign(call))


_SIGNS: Final = {"$": Kind.BRANCH, "@": Kind.FUNCTOR}


def _behind_sign(call: tree.Call) -> Span:
    return Span(call.functor_span.end - len(call.functor) + 1, call.functor_span.end)
