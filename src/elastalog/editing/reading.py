"""A program as it is in an editor, read as far as possible, and the meaning of every name in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.scopes import DECLARED, Kind, Named, Scope, Symbol, file_of, offset_in, place_of, scopes_of
from elastalog.program import Program
from elastalog.program.preprocessing import Preprocessing, preprocess
from elastalog.program.program import examine
from elastalog.syntax import tree
from elastalog.syntax.tree import Clause, Component, Subsumption, Tree, nodes_of, parts_of


@dataclass(frozen=True)
class Reading:
    """`file` and everything that it includes. `tree` has what can be read, and `program` is None while there are
    errors; `diagnostics` are all findings of the checker. The meaning of names is determined when it is first needed.
    """

    file: str
    source: Source
    tree: Tree
    program: Program | None
    diagnostics: tuple[Diagnostic, ...]
    files: frozenset[str]

    @cached_property
    def top(self) -> Scope:
        """The declarations, with components as scopes inside scopes."""
        return scopes_of(self.source, self.tree)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """Every name with what it means, in the order of their places."""
        return tuple(sorted(_names_in(self.source, self.tree.items, self.top), key=lambda found: found.span))

    def at(self, file: str, offset: int) -> Occurrence | None:
        """The name at a place in a file; the place just after it counts, too."""
        found = offset_in(self.source, file, offset)
        if found is None:
            return None
        around = [each for each in self.occurrences if each.span.start <= found <= each.span.end]
        return min(around, key=lambda each: (each.span.end == found, each.span.end - each.span.start), default=None)


def read(file: str, text_of: Callable[[str], str], options: Preprocessing | None = None) -> Reading:
    """Reads a program. `text_of` returns the text of a file, from the editor or from disk, and may raise
    ElastalogError. Nothing is raised here: if lines for the preprocessor have errors, the file is read as it is."""
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
    """Errors that are only found when aggregates are rewritten: groups that only recursion binds."""
    from elastalog.planning.lower import lower

    try:
        lower(program.checked)
    except ElastalogError as fault:
        return fault.diagnostics
    return ()


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a `span` of the program's text. `clause`: the one that it stands in."""

    span: Span
    symbol: Symbol
    clause: Clause | Subsumption | None = None


def _names_in(
    source: Source, part: object, scope: Scope, clause: Clause | Subsumption | None = None
) -> Iterator[Occurrence]:
    """Every name in a part of a program, or in a clause, including declarations, except names without a meaning. Each
    clause has its own variables; those of aggregates are included, since renaming all of them at once changes nothing.
    """
    variables: dict[str, Symbol] = {}
    for node in nodes_of(object, part, closed=(Clause, Subsumption, Component)):
        if isinstance(node, Clause | Subsumption):
            yield from _names_in(source, parts_of(node), scope, node)
        elif isinstance(node, tree.Variable) and clause is not None:
            if node.name not in variables:
                variables[node.name] = Symbol(Kind.VARIABLE, node.name, place_of(source, node.span), node.span)
            yield Occurrence(node.span, variables[node.name], clause)
        else:
            for kind, name, span in _named_by(node, scope):
                yield from _occurrences(source, kind, name, span, scope, clause)
        if isinstance(node, Component):
            inner = scope.nested[node.name]
            for name, span in node.parameters:
                yield from _occurrences(source, Kind.PARAMETER, name, span, inner)
            yield from _names_in(source, parts_of(node), inner)


def _named_by(node: object, scope: Scope) -> Iterator[tuple[Kind, str, Span]]:
    """The names that a node itself mentions."""
    match node:
        case tree.Atom() | tree.Directive() | tree.Override():
            yield Kind.RELATION, node.relation, node.relation_span
        case tree.Attribute() | tree.Cast() | tree.Lattice():
            yield Kind.TYPE, node.type_name, node.type_span
        case tree.BranchDeclaration():
            yield Kind.BRANCH, node.name, node.name_span
        case tree.ComponentType():
            yield Kind.COMPONENT, node.name, node.name_span
            for name, span in node.arguments:
                yield Kind.COMPONENT if scope.find(Kind.TYPE, name) is None else Kind.TYPE, name, span
        case tree.Call() if node.functor[0] in _SIGNS and len(node.functor) > 1:
            end = node.functor_span.end  # the name stands behind the sign
            yield _SIGNS[node.functor[0]], node.functor[1:], Span(end - len(node.functor) + 1, end)
        case tree.Aggregate(target=tree.Call(functor_span=span)) if node.operator[0] == "@":
            yield Kind.FUNCTOR, node.operator[1:], Span(span.start + 2, span.end)
        case _ if isinstance(node, Named):
            yield DECLARED[type(node)], node.name, node.name_span
            if isinstance(node, tree.FunctorDeclaration):
                yield Kind.TYPE, *node.result
            for name, span in node.parents if isinstance(node, tree.TypeDeclaration) else ():
                yield Kind.TYPE, name, span


_SIGNS: Final = {"$": Kind.BRANCH, "@": Kind.FUNCTOR}


def _occurrences(
    source: Source, kind: Kind, name: str, span: Span, scope: Scope, clause: Clause | Subsumption | None = None
) -> Iterator[Occurrence]:
    """A name and, if it is qualified, the instances before its dots."""
    start = span.start
    if "." in name and source.text[slice(*span)] == name:
        words = name.split(".")
        for index, word in enumerate(words[:-1], 1):
            instance = scope.find(Kind.INSTANCE, ".".join(words[:index]))
            if instance is not None:
                yield Occurrence(Span(start, start + len(word)), instance, clause)
            start += len(word) + 1
    symbol = scope.find(kind, name)
    if symbol is not None:
        yield Occurrence(Span(start, span.end), symbol, clause)
