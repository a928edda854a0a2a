"""Diagnostics as text for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable

from elastalog.diagnostics.colour import BOLD, GUTTER, SEVERITIES, Ansi, Palette, Plain
from elastalog.diagnostics.diagnostic import Diagnostic, Label
from elastalog.diagnostics.display import show_text
from elastalog.diagnostics.excerpt import excerpt
from elastalog.diagnostics.source import Source, Span


def render_text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """The diagnostic with its source lines, every label underlined; no line break at the end."""
    palette: Palette = Ansi() if color else Plain()
    style = SEVERITIES[diagnostic.severity]
    heading = palette.paint(f"{diagnostic.severity}[{diagnostic.code}]", style)
    lines = [f"{heading}{palette.paint(': ' + show_text(diagnostic.message), BOLD if color else '')}"]
    gutter = 1
    notes = list(diagnostic.notes)
    if diagnostic.source is not None and diagnostic.labels:
        by_source, ways = _by_source(diagnostic.source, diagnostic.labels)
        notes += ways
        ends = [(source, max(last_offset(label.span) for label in labels)) for source, labels in by_source]
        gutter = max(len(str(source.locate(end)[0])) for source, end in ends)
        for source, labels in by_source:
            line, column = source.locate(_main_label(labels).span.start)
            lines.append(_arrow(palette, gutter, f"{source.name}:{line}:{column}"))
            lines.extend(excerpt(source, labels, gutter, palette, style))
    elif diagnostic.source is not None or diagnostic.location is not None:
        name = diagnostic.source.name if diagnostic.source else ""
        lines.append(_arrow(palette, gutter, diagnostic.location or name))
    for word, text in [("note", note) for note in notes] + [("help", diagnostic.help or "")]:
        if text:
            lines.extend(_remark(palette, gutter, word, text))
    return "\n".join(lines)


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list with one object for each diagnostic; lines and columns start at 1, the end is exclusive."""
    return json.dumps([_as_json(diagnostic) for diagnostic in diagnostics], indent=2)


def _by_source(whole: Source, labels: tuple[Label, ...]) -> tuple[list[tuple[Source, list[Label]]], list[str]]:
    """The labels by the file they point into, that of the main label first; and how the text of that got there."""
    found: dict[int, tuple[Source, list[Label]]] = {}
    main = _main_label(list(labels))
    ways: tuple[str, ...] = ()
    for label in (main, *(label for label in labels if label is not main)):
        source, span, notes = whole.origin(clip(whole, label.span))
        if label is main:
            ways = notes
        own = found.setdefault(id(source), (source, []))[1]
        own.append(Label(clip(source, span), label.text, label.primary))
    return list(found.values()), list(ways)


def clip(source: Source, span: Span) -> Span:
    """The span within the text; the end is never before the start."""
    start = min(max(span.start, 0), len(source.text))
    return Span(start, min(max(span.end, start), len(source.text)))


def last_offset(span: Span) -> int:
    """The offset of the last character of a span."""
    return max(span.start, span.end - 1)


def _main_label(labels: list[Label]) -> Label:
    return next((label for label in labels if label.primary), labels[0])


def _arrow(palette: Palette, gutter: int, place: str) -> str:
    return f"{' ' * gutter}{palette.paint('-->', GUTTER)} {show_text(place)}"


def _remark(palette: Palette, gutter: int, word: str, text: str) -> list[str]:
    first, *rest = (show_text(line) for line in text.split("\n"))
    margin = " " * (gutter + 1)
    lines = [f"{margin}{palette.paint('=', GUTTER)} {palette.paint(word, BOLD)}: {first}"]
    return lines + [f"{margin}  {' ' * (len(word) + 2)}{line}" for line in rest]


def _as_json(diagnostic: Diagnostic) -> dict[str, object]:
    source = diagnostic.source
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "location": diagnostic.location,
        "labels": [_label_as_json(source, label) for label in diagnostic.labels] if source is not None else [],
        "notes": [*diagnostic.notes, *_ways(diagnostic)],
        "help": diagnostic.help,
    }


def _ways(diagnostic: Diagnostic) -> tuple[str, ...]:
    if diagnostic.source is None or not diagnostic.labels:
        return ()
    main = _main_label(list(diagnostic.labels))
    return diagnostic.source.origin(clip(diagnostic.source, main.span)).notes


def _label_as_json(source: Source, label: Label) -> dict[str, object]:
    source, span, _ = source.origin(clip(source, label.span))
    line, column = source.locate(span.start)
    end_line, end_column = source.locate(span.end)
    return {
        "file": source.name,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "text": label.text,
        "primary": label.primary,
    }
