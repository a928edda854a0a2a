"""The edits that the help line of a diagnostic spells out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Source, Span
from elastalog.editing.reading import Reading
from elastalog.editing.scopes import Place, verbatim_place
from elastalog.syntax import tree
from elastalog.syntax.tree import Item


@dataclass(frozen=True, slots=True)
class Repair:
    """`title` says what is done: `text` replaces what is at the place."""

    title: str
    place: Place
    text: str


_Edit = tuple[Span, str]
_NAME: Final = re.compile(r"[$@]?[A-Za-z_?][A-Za-z0-9_?.]*")


def repairs(reading: Reading, found: Diagnostic) -> tuple[Repair, ...]:
    """The repairs for one diagnostic, the likeliest first; none if its help is only advice, or if a macro is
    involved."""
    source = found.source
    span = next((label.span for label in found.labels if label.primary), None)
    if found.help is None or source is None or span is None:
        return ()
    made = []
    for pattern, edits in _FORMS:
        said = pattern.search(found.help)
        if said is None:
            continue
        for where, text in edits(reading, source, span, said):
            place = verbatim_place(source, where)
            if place is not None:
                made.append(Repair(_title(source, where, text), place, text))
        break
    return tuple(made)


def _title(source: Source, where: Span, text: str) -> str:
    old = source.text[where.start : where.end]
    if not old:
        return f"insert `{text.strip()}`"
    return f"replace `{old}` by `{text}`" if text else f"remove `{old}`"


def _meant(reading: Reading, source: Source, span: Span, said: re.Match[str]) -> Iterator[_Edit]:
    """`did you mean …?`: replaces a name, which may be the whole span or stand at its beginning."""
    written = _NAME.match(source.text, span.start, span.end)
    if written is not None:
        yield Span(*written.span()), said[1]


def _in_quotes(reading: Reading, source: Source, span: Span, said: re.Match[str]) -> Iterator[_Edit]:
    inside = source.text[span.start + 1 : span.end - 1]
    yield span, '"' + inside.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _before(reading: Reading, source: Source, span: Span, said: re.Match[str]) -> Iterator[_Edit]:
    """Inserts a declaration before the item that lacks it."""
    item = _item_at(reading.tree.items, span.start)
    if item is not None:
        start = source.text.rfind("\n", 0, item.span.start) + 1
        indent = source.text[start : item.span.start]
        yield Span(item.span.start, item.span.start), f"{said[1]}\n{indent if indent.isspace() else ''}"


def _after(reading: Reading, source: Source, span: Span, said: re.Match[str]) -> Iterator[_Edit]:
    """Inserts a directive after the declaration that it is about."""
    item = _item_at(reading.tree.items, span.start)
    if item is not None:
        yield Span(item.span.end, item.span.end), f"\n{said[1]}"


def _item_at(items: tuple[Item, ...], offset: int) -> Item | None:
    for item in items:
        if item.span.start <= offset < item.span.end:
            if isinstance(item, tree.Component):
                return _item_at(item.items, offset) or item
            return item
    return None


_Edits = Callable[[Reading, Source, Span, re.Match[str]], Iterable[_Edit]]
_FORMS: Final[tuple[tuple[re.Pattern[str], _Edits], ...]] = (
    (re.compile(r"^did you mean `([^`]+)`\?"), _meant),
    (re.compile(r"^write `([^`]+)` instead"), lambda _, __, span, said: [(span, said[1])]),
    (
        re.compile(r"^write `_`, or `(_[^`]+)` to keep the name"),
        lambda _, __, span, said: [(span, "_"), (span, said[1])],
    ),
    (re.compile(r"^write `\.` (?:before .*|at the end)$"), lambda _, __, span, said: [(Span(span.end, span.end), ".")]),
    (re.compile(r"^remove (?:it|the `\.`)$"), lambda _, __, span, said: [(span, "")]),
    (re.compile(r"^write it between `\"`"), _in_quotes),
    (re.compile(r"^declare it(?:, for example|:) `(\.(?:decl|type)[^`…]*)`"), _before),
    (re.compile(r"^add `(\.input [^`]+)`"), _after),
)
"""The forms of help lines that carry a replacement, and what each makes of the place that is wrong."""
