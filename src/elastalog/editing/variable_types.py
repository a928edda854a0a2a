"""The types of variables, as far as a clause says: what the columns that they stand in are declared with."""

from __future__ import annotations

from collections.abc import Iterator

from elastalog.analysis.program import variables_in
from elastalog.editing.occurrences import Occurrence
from elastalog.editing.reading import Reading
from elastalog.editing.rooms import Kind, Room
from elastalog.syntax import tree
from elastalog.syntax.tree import Clause, Subsumption


def variable_type(reading: Reading, found: Occurrence) -> str | None:
    """The declared type of the first column of a body, else of a head, that the variable stands in; else what the
    checker made of it."""
    if found.clause is None:
        return None
    room = room_at(reading.top, found.clause.span.start)
    for atom in _atoms(found.clause):
        symbol = room.find(Kind.RELATION, atom.relation)
        if symbol is None or not isinstance(symbol.item, tree.RelationDeclaration):
            continue
        for term, attribute in zip(atom.arguments, symbol.item.attributes, strict=False):
            if isinstance(term, tree.Variable) and term.name == found.symbol.name:
                return attribute.type_name
    return _checked_type(reading, found)


def room_at(room: Room, offset: int) -> Room:
    """The innermost component around a place of the program's text."""
    for inner in room.inner.values():
        if inner.component is not None and inner.component.span.start <= offset < inner.component.span.end:
            return room_at(inner, offset)
    return room


def _atoms(clause: Clause | Subsumption) -> Iterator[tree.Atom]:
    yield from _body_atoms(clause.body)
    yield from clause.heads if isinstance(clause, Clause) else (clause.dominated, clause.dominating)


def _body_atoms(body: tree.Body) -> Iterator[tree.Atom]:
    for literal in body:
        match literal:
            case tree.Atom():
                yield literal
            case tree.Negation():
                yield literal.atom
            case tree.NegatedGroup():
                yield from _body_atoms(literal.body)
            case tree.Disjunction():
                for alternative in literal.alternatives:
                    yield from _body_atoms(alternative)
            case tree.Comparison():
                for side in (literal.left, literal.right):
                    if isinstance(side, tree.Aggregate):
                        yield from _body_atoms(side.body)
            case tree.Truth():
                pass


def _checked_type(reading: Reading, found: Occurrence) -> str | None:
    if reading.program is None or found.clause is None:
        return None
    for rule in reading.program.checked.rules:
        if found.clause.span.start <= rule.span.start and rule.span.end <= found.clause.span.end:
            for variable in variables_in((rule.head, *rule.body), is_deep=True):
                if variable.name.partition("@")[0] == found.symbol.name:
                    return variable.base.value
    return None
