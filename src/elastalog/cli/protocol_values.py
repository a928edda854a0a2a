"""From what `editing` says to what the language server protocol says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from lsprotocol import types
from pygls import uris

from elastalog.diagnostics.diagnostic import Diagnostic, Severity
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.complete import Proposal, Sort
from elastalog.editing.outline import Entry
from elastalog.editing.places import Place, file_of, position
from elastalog.editing.rooms import Kind

SEVERITIES: Final[dict[Severity, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
SYMBOLS: Final[dict[Kind, types.SymbolKind]] = {
    Kind.RELATION: types.SymbolKind.Function,
    Kind.TYPE: types.SymbolKind.Struct,
    Kind.COMPONENT: types.SymbolKind.Class,
    Kind.INSTANCE: types.SymbolKind.Object,
    Kind.FUNCTOR: types.SymbolKind.Method,
    Kind.BRANCH: types.SymbolKind.EnumMember,
    Kind.PARAMETER: types.SymbolKind.TypeParameter,
    Kind.VARIABLE: types.SymbolKind.Variable,
}
PROPOSALS: Final[dict[Sort, types.CompletionItemKind]] = {
    Kind.RELATION: types.CompletionItemKind.Function,
    Kind.TYPE: types.CompletionItemKind.Struct,
    Kind.COMPONENT: types.CompletionItemKind.Class,
    Kind.INSTANCE: types.CompletionItemKind.Module,
    Kind.FUNCTOR: types.CompletionItemKind.Method,
    Kind.BRANCH: types.CompletionItemKind.EnumMember,
    Kind.PARAMETER: types.CompletionItemKind.TypeParameter,
    Kind.VARIABLE: types.CompletionItemKind.Variable,
    "attribute": types.CompletionItemKind.Field,
    "keyword": types.CompletionItemKind.Keyword,
    "directive": types.CompletionItemKind.Keyword,
    "type": types.CompletionItemKind.Struct,
}
COLOURS: Final[dict[Kind, types.SemanticTokenTypes]] = {
    Kind.RELATION: types.SemanticTokenTypes.Function,
    Kind.TYPE: types.SemanticTokenTypes.Type,
    Kind.COMPONENT: types.SemanticTokenTypes.Class,
    Kind.INSTANCE: types.SemanticTokenTypes.Namespace,
    Kind.FUNCTOR: types.SemanticTokenTypes.Method,
    Kind.BRANCH: types.SemanticTokenTypes.EnumMember,
    Kind.PARAMETER: types.SemanticTokenTypes.TypeParameter,
    Kind.VARIABLE: types.SemanticTokenTypes.Variable,
}
LEGEND: Final = types.SemanticTokensLegend([kind.value for kind in COLOURS.values()], [])


def uri_of(file: str) -> str:
    return uris.from_fs_path(file) or Path(file).as_uri()


def range_of(source: Source, span: Span, encoding: str) -> types.Range:
    """The lines and columns of a span, as an editor counts them."""
    start, end = position(source, span.start, encoding), position(source, span.end, encoding)
    return types.Range(types.Position(*start), types.Position(*end))


def location_of(place: Place, source_of: Callable[[str], Source], encoding: str) -> types.Location:
    return types.Location(uri_of(place.file), range_of(source_of(place.file), place.span, encoding))


def diagnostic_of(found: Diagnostic, encoding: str) -> types.Diagnostic:
    """Every label that says something stands with its place, files that are included too."""
    ranges = types.Range(types.Position(0, 0), types.Position(0, 0))
    related = []
    is_first = True
    for label in sorted(found.labels, key=lambda label: not label.primary) if found.source is not None else ():
        assert found.source is not None
        origin = found.source.origin(label.span)
        where = range_of(origin.source, origin.span, encoding)
        if is_first and label.primary:
            ranges, is_first = where, False
        else:
            location = types.Location(uri_of(file_of(origin.source)), where)
            related.append(types.DiagnosticRelatedInformation(location, label.text or "see here"))
    lines = [
        found.message,
        *(f"note: {note}" for note in found.notes),
        *([f"help: {found.help}"] if found.help else []),
    ]
    return types.Diagnostic(
        ranges,
        "\n".join(lines),
        SEVERITIES[found.severity],
        found.code,
        source="elastalog",
        related_information=related,
    )


def item_of(proposal: Proposal, rank: int, takes_snippets: bool) -> types.CompletionItem:
    is_snippet = proposal.snippet is not None and takes_snippets
    return types.CompletionItem(
        proposal.text,
        kind=PROPOSALS[proposal.sort],
        detail=proposal.detail or None,
        sort_text=f"{rank:05}",
        insert_text=proposal.snippet if is_snippet else None,
        insert_text_format=types.InsertTextFormat.Snippet if is_snippet else None,
    )


def symbol_of(entry: Entry, source: Source, encoding: str) -> types.DocumentSymbol:
    return types.DocumentSymbol(
        entry.name,
        SYMBOLS[entry.kind],
        range_of(source, entry.span, encoding),
        range_of(source, entry.name_span, encoding),
        detail=entry.detail,
        children=[symbol_of(inner, source, encoding) for inner in entry.inner],
    )


def colours_of(names: Iterable[tuple[Place, Kind]], source: Source, encoding: str) -> types.SemanticTokens:
    """Five numbers a name: lines and columns since the one before it, length, kind, no modifiers."""
    kinds = list(COLOURS)
    data: list[int] = []
    last_line = last_column = 0
    for place, kind in names:
        line, column = position(source, place.span.start, encoding)
        end_line, end = position(source, place.span.end, encoding)
        if end_line != line:
            continue
        data += (line - last_line, column - last_column if line == last_line else column, end - column)
        data += (kinds.index(kind), 0)
        last_line, last_column = line, column
    return types.SemanticTokens(data)
