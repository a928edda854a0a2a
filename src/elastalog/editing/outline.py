"""What a file declares, as a tree; and its names with their kinds, for colours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from elastalog.diagnostics.source import Span
from elastalog.editing.places import Place, file_of, place_of, verbatim_place
from elastalog.editing.reading import Reading
from elastalog.editing.rooms import Kind
from elastalog.syntax import tree
from elastalog.syntax.tree import Item


@dataclass(frozen=True, slots=True)
class Entry:
    """Something declared in a file: `span` is all of it, `name_span` its name. `detail`: columns, a base."""

    kind: Kind
    name: str
    detail: str
    span: Span
    name_span: Span
    inner: tuple[Entry, ...] = ()


def outline(reading: Reading, file: str) -> tuple[Entry, ...]:
    """The declarations of a file in order, those of components inside them."""
    return tuple(_entries(reading, file, reading.tree.items))


def _entries(reading: Reading, file: str, items: tuple[Item, ...]) -> Iterator[Entry]:
    for item in items:
        match item:
            case tree.RelationDeclaration():
                columns = ", ".join(f"{each.name}: {each.written_type}" for each in item.attributes)
                entry = Entry(Kind.RELATION, item.name, f"({columns})", item.span, item.name_span)
            case tree.TypeDeclaration():
                entry = Entry(Kind.TYPE, item.name, item.kind, item.span, item.name_span)
            case tree.FunctorDeclaration():
                entry = Entry(Kind.FUNCTOR, item.name, item.result[0], item.span, item.name_span)
            case tree.Init():
                entry = Entry(Kind.INSTANCE, item.name, item.component.name, item.span, item.name_span)
            case tree.Component():
                inner = tuple(_entries(reading, file, item.items))
                entry = Entry(Kind.COMPONENT, item.name, "", item.span, item.name_span, inner)
            case _:
                continue
        whole, name = place_of(reading.source, entry.span), place_of(reading.source, entry.name_span)
        if whole.file == file == name.file:
            # An editor insists on a name that lies within the whole, which a macro may break.
            covering = Span(min(whole.span.start, name.span.start), max(whole.span.end, name.span.end))
            yield Entry(entry.kind, entry.name, entry.detail, covering, name.span, entry.inner)


def coloured(reading: Reading, file: str) -> tuple[tuple[Place, Kind], ...]:
    """Every name of a file with its kind, in order, as far as they are written there and not by a macro."""
    if not reading.source.pieces and file_of(reading.source) != file:
        return ()
    found = {
        place: each.symbol.kind
        for each in reading.occurrences
        if (place := verbatim_place(reading.source, each.span)) is not None and place.file == file
    }
    return tuple(sorted(found.items(), key=lambda entry: entry[0].span))
