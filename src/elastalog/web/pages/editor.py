"""An editor for program text. Shortly after the last key press the server sends colours from our own lexer, findings at
their positions, and hints for lines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from nicegui import ui
from pygments.token import Comment, Keyword, Name, Number, String, Token, _TokenType

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.highlight import DatalogLexer

PAUSE = 0.2
"""Seconds after the last key press until the text is analysed."""

Look = Callable[[str], Awaitable[tuple[list[dict[str, Any]], dict[int, str]]]]
"""Analyses a text: the marks to show in it, and hints by line."""


class Editor:
    """`look` is called with the initial text, and after every pause in typing; if several are running, the last one
    counts."""

    def __init__(
        self, text: str, look: Look, *, is_open: bool = True, keys: Sequence[tuple[str, Callable[[], Any]]] = ()
    ) -> None:
        self._look = look
        self._turn = 0
        self.element = ui.codemirror(
            text, on_change=self._changed, theme="basicLight", line_wrapping=True, indent="    "
        ).classes("wb-editor")
        if not is_open:
            self.element.disable()
        for key, action in keys:
            self.element.map_key(key, lambda _, action=action: action())

    @property
    def text(self) -> str:
        return self.element.value or ""

    async def show(self, text: str) -> None:
        """Replaces the text."""
        self.element.value = text
        await self.look()

    async def _changed(self) -> None:
        self._turn += 1
        turn = self._turn
        await asyncio.sleep(PAUSE)
        if turn == self._turn:
            await self.look()

    async def look(self) -> None:
        """Analyses the present text."""
        text = self.text
        marks, hints = await self._look(text)
        if text == self.text:
            self.element.decorations = marks
            self.element.line_tooltips = hints


MOST_MARKS = 4_000
"""Longer texts are shown without colours, which would make the browser slow."""

_CLASSES: Final[tuple[tuple[_TokenType, str], ...]] = (
    (Comment, "hl-comment"),
    (Keyword.Type, "hl-type"),
    (Keyword, "hl-keyword"),
    (Name.Builtin, "hl-builtin"),
    (Name.Function, "hl-relation"),
    (String, "hl-string"),
    (Number, "hl-number"),
)


def marks_of(text: str, findings: Iterable[Diagnostic], line: int | None = None) -> list[dict[str, Any]]:
    """Decorations of the editor, findings last, so that they are on top. `line`: one to point at."""
    found = _colours(text)
    if len(found) > MOST_MARKS:
        found = []
    if line is not None and line <= text.count("\n") + 1:
        found.append({"kind": "line", "line": line, "class": "hl-line"})
    for finding in findings:
        look = "hl-fault" if finding.severity == "error" else "hl-warning"
        for label in finding.labels:
            span = _visible(label.span, text)
            if label.primary and span is not None:
                found.append({"kind": "mark", "from": span.start, "to": span.end, "class": look})
    return found


def hints_of(findings: Iterable[Diagnostic], notes: Mapping[int, str]) -> dict[int, str]:
    """What hovering over a line shows: its findings, otherwise what is known of the line."""
    hints: dict[int, list[str]] = {}
    for finding in findings:
        source: Source | None = finding.source
        if source is None or not finding.labels:
            continue
        line, _ = source.locate(finding.labels[0].span.start)
        advice = f"\n{finding.help}" if finding.help else ""
        hints.setdefault(line, []).append(f"{finding.severity} {finding.code}: {finding.message}{advice}")
    return {**notes, **{line: "\n\n".join(texts) for line, texts in hints.items()}}


def _colours(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for start, kind, part in DatalogLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(text):
        look = _look(kind)
        if look is not None and part:
            found.append({"kind": "mark", "from": start, "to": start + len(part), "class": look})
    return found


def _look(kind: _TokenType) -> str | None:
    if kind is Token.Text:
        return None
    return next((look for general, look in _CLASSES if kind in general), None)


def _visible(span: Span, text: str) -> Span | None:
    """The span within the text, at least one character wide; None in an empty text."""
    if not text:
        return None
    start = min(span.start, len(text) - 1)
    return Span(start, min(max(span.end, start + 1), len(text)))
