"""Errors as data: what is wrong, where, and what to do about it; as text for people and as JSON for programs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from elastalog.diagnostics.source import Label as Label
from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass

if TYPE_CHECKING:
    from typing import Self

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `code` is a stable key of the catalogue (`E0412`). `source` is None if the place is not in a program
    text; `location` then names it, as `edge.facts:17`."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = "error"
    source: Source | None = None
    location: str | None = None


def finding(
    key: str,
    *places: Span | Label | None,
    code: str | None = None,
    severity: Severity = "error",
    source: Source | None = None,
    location: object = None,
    **values: object,
) -> Diagnostic:
    """The diagnostic for a message of `errors/`, with values for its fields, at some places. The places get the labels
    of the message in order, unless they are labels themselves; None leaves a label out. `code` replaces the code of the
    message."""
    from elastalog.diagnostics import messages

    message = messages.message(key)
    texts = iter(message.labels)
    labels: list[Label] = []
    for place in places:
        if isinstance(place, Label):
            labels.append(place)
            continue
        is_primary, text = next(texts, (True, ""))
        if place is not None:
            labels.append(Label(place, messages.filled(text, values), is_primary))
    notes, helps = (messages.filled_if_known(texts, values) for texts in (message.notes, message.helps))
    told = messages.filled(message.text, values)
    where = None if location is None else str(location)
    advice = helps[0] if helps else None
    return Diagnostic(code or key[:5], told, tuple(labels), tuple(notes), advice, severity, source, where)


class ElastalogError(Exception):
    """What the user can act on. Carries every diagnostic of the stage that failed, sorted by place.

    >>> print(ElastalogError([Diagnostic("E0102", "string not closed", location="rules.dl", help="write a quote")]))
    error[E0102]: string not closed
     --> rules.dl
      = help: write a quote
    """

    @classmethod
    def of(cls, key: str, *places: Span | Label | None, **values: Any) -> Self:
        """The error for a message (see `finding`)."""
        return cls([finding(key, *places, **values)])

    def __init__(self, diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{d.severity}[{d.code}]: {d.message}" for d in self.diagnostics))

    def __str__(self) -> str:
        return "\n\n".join(render_text(d) for d in self.diagnostics)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the lines of cells and of the user's modules that led here, then the diagnostics."""
        from traceback import StackSummary, walk_tb

        frames: list[Any] = []
        for frame, line in walk_tb(self.__traceback__):
            package = frame.f_globals.get("__name__", "").partition(".")[0]
            if package == "IPython":
                frames.clear()  # what called the cell, or its magic
            elif package != "elastalog":
                frames.append((frame, line))
        return [*map(str.rstrip, StackSummary.extract(iter(frames)).format()), str(self)]

    def __reduce__(self) -> tuple[type[ElastalogError], tuple[tuple[Diagnostic, ...]]]:
        """Lets worker processes pass it on with its diagnostics; by default, exceptions are copied by their text."""
        return type(self), (self.diagnostics,)


error = ElastalogError.of


class FindingWarning(UserWarning):
    """A Python warning for a diagnostic."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return str(ElastalogError([self.diagnostic]))


_COLLECTED: ContextVar[list[Diagnostic] | None] = ContextVar("warnings that are collected", default=None)


@contextmanager
def collecting_warnings() -> Iterator[list[Diagnostic]]:
    """Collects the warnings of a block, including those from threads with its context, instead of issuing them as
    Python warnings."""
    found: list[Diagnostic] = []
    before = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(before)


def warn_of(found: Diagnostic) -> None:
    """Issues a warning for a finding, at the line outside this package that led to it."""
    collected = _COLLECTED.get()
    if collected is not None:
        if found not in collected:
            collected.append(found)
        return
    frame, depth = sys._getframe(1).f_back, 3
    while frame is not None and frame.f_globals.get("__name__", "").startswith("elastalog."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(FindingWarning(found), stacklevel=depth)


class LimitReached(ElastalogError):
    """A limit the user set (memory, time, rows) was reached; the previous epoch stands."""


class InternalError(Exception):
    """A broken invariant of Elastalog itself: names the stage and asks for a report."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(
            f"internal error in {stage}: {message}; this is a defect of Elastalog, please report it with the program"
        )


@contextmanager
def noted(note: str) -> Iterator[None]:
    """Adds a note to errors that pass through the block, unless they name a file or have the note already."""
    try:
        yield
    except ElastalogError as error:
        found = [d if d.location or note in d.notes else replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
        raise type(error)(found) from None


def origin(found: Diagnostic) -> str | None:
    """The file that a diagnostic names, in its location or in a note."""
    return found.location or next((note[3:] for note in found.notes if note.startswith("in ")), None)


# --- rendering -------------------------------------------------------------------------------------------------------


def render_text(diagnostic: Diagnostic, *, color: bool = False) -> str:
    """The diagnostic with its source lines, every label underlined, without a final line break."""
    from elastalog.diagnostics.display import show_text
    from elastalog.diagnostics.excerpt import BOLD, SEVERITIES, Palette, arrow, excerpt, remark

    palette = Palette(color)
    style = SEVERITIES[diagnostic.severity]
    heading = palette.paint(f"{diagnostic.severity}[{diagnostic.code}]", style)
    lines = [f"{heading}{palette.paint(': ' + show_text(diagnostic.message), BOLD)}"]
    gutter = 1
    placed, ways = _origins(diagnostic)
    by_source: dict[int, tuple[Source, list[Label]]] = {}
    for label, source, span in placed:
        by_source.setdefault(id(source), (source, []))[1].append(Label(span, label.text, label.primary))
        last = max(span.start, span.end - 1)
        gutter = max(gutter, len(str(source.locate(last)[0])))
    for source, labels in by_source.values():
        line, column = source.locate(next((at for at in labels if at.primary), labels[0]).span.start)
        lines.append(arrow(palette, gutter, f"{source.name}:{line}:{column}"))
        lines.extend(excerpt(source, labels, gutter, palette, style))
    if not placed and (diagnostic.source is not None or diagnostic.location is not None):
        name = diagnostic.source.name if diagnostic.source else ""
        lines.append(arrow(palette, gutter, diagnostic.location or name))
    for word, text in [("note", note) for note in (*diagnostic.notes, *ways)] + [("help", diagnostic.help or "")]:
        if text:
            lines.extend(remark(palette, gutter, word, text))
    return "\n".join(lines)


def render_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A JSON list with one object for each diagnostic; lines and columns start at 1, the end is exclusive."""
    import json

    return json.dumps([_as_json(diagnostic) for diagnostic in diagnostics], indent=2)


def _origins(diagnostic: Diagnostic) -> tuple[list[tuple[Label, Source, Span]], tuple[str, ...]]:
    """The labels with the files that they point into and their places there, the main one first, and notes on how the
    marked text got into the program."""
    whole, labels = diagnostic.source, diagnostic.labels
    if whole is None or not labels:
        return [], ()
    main = next((label for label in labels if label.primary), labels[0])
    found = [(label, whole.origin(_clip(whole, label.span))) for label in (main, *labels)]
    placed = [(label, at.source, _clip(at.source, at.span)) for label, at in found]
    return [placed[0], *(each for each in placed[1:] if each[0] is not main)], found[0][1].notes


def _clip(source: Source, span: Span) -> Span:
    """The span, limited to the text; its end is never before its start."""
    start = min(max(span.start, 0), len(source.text))
    return Span(start, min(max(span.end, start), len(source.text)))


def _as_json(diagnostic: Diagnostic) -> dict[str, object]:
    placed, ways = _origins(diagnostic)
    order = {id(label): place for place, label in enumerate(diagnostic.labels)}
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "location": diagnostic.location,
        "labels": [_label_as_json(*each) for each in sorted(placed, key=lambda each: order[id(each[0])])],
        "notes": [*diagnostic.notes, *ways],
        "help": diagnostic.help,
    }


def _label_as_json(label: Label, source: Source, span: Span) -> dict[str, object]:
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
