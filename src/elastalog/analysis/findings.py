"""Collecting the diagnostics of a pass."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from elastalog.analysis.draft import Kind, Structure
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, Label, Severity
from elastalog.diagnostics.nearest import Effort, nearest
from elastalog.diagnostics.quota import look
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tree import Instance

# Looking for a near name costs a scan of all names; a program with thousands of unknown names has another problem.
_MOST_WORK: Final = 500_000
_MOST_CANDIDATES: Final = 1_000_000


class Findings:
    """The diagnostics of one pass over one source, in the order found.

    `instance` is set by a pass to that of the item at hand: a finding in the text of a component says how it was
    reached, and stands for the same one in further instances."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.count = 0  # how many there were, those that others stand for included
        self.instance: Instance | None = None
        self._reported: set[tuple[str, tuple[Label, ...]]] = set()
        self._suggestions: dict[str, str | None] = {}
        self._effort = Effort(_MOST_WORK)
        self._candidates_left = _MOST_CANDIDATES

    def error(
        self, code: str, message: str, *labels: Label, note: str | None = None, advice: str | None = None
    ) -> None:
        """What makes the program wrong."""
        self._add("error", code, message, labels, note, advice)

    def warning(
        self, code: str, message: str, *labels: Label, note: str | None = None, advice: str | None = None
    ) -> None:
        """What is probably not meant."""
        self._add("warning", code, message, labels, note, advice)

    def note(self, code: str, message: str, *labels: Label, note: str | None = None) -> None:
        """What is good to know and shown only on request."""
        self._add("note", code, message, labels, note, None)

    def declared_twice(self, code: str, what: str, again: Span, first: Span) -> None:
        """That there are two declarations of what may have one."""
        self.error(
            code,
            f"{what} is declared twice",
            primary(again, "declared again here"),
            secondary(first, "first declared here"),
            advice="remove one of the declarations, or rename it",
        )

    def nearest(self, name: str, candidates: Collection[str]) -> str | None:
        """The candidate that was probably meant, if any."""
        if name not in self._suggestions:
            if len(candidates) > self._candidates_left:
                return None
            look()
            self._candidates_left -= len(candidates)
            self._suggestions[name] = nearest(name, candidates, self._effort)
        return self._suggestions[name]

    def did_you_mean(self, name: str, candidates: Collection[str]) -> str | None:
        """The help line that names what was probably meant, if anything was."""
        near = self.nearest(name, candidates)
        return None if near is None else f"did you mean {quoted(near)}?"

    def _add(
        self,
        severity: Severity,
        code: str,
        message: str,
        labels: tuple[Label, ...],
        note: str | None,
        advice: str | None,
    ) -> None:
        notes = () if note is None else (note,)
        self.count += 1
        if self.instance is not None:
            if (code, labels) in self._reported:
                return
            self._reported.add((code, labels))
            place = self.source.place(self.instance.span.start)
            way = f"in {quoted(self.instance.name)}, an instance of {quoted(self.instance.component)} made at {place}"
            notes = (*notes, way)
        self.diagnostics.append(Diagnostic(code, message, labels, notes, advice, severity, self.source))


def primary(span: Span, text: str = "") -> Label:
    """A label at the place that is wrong."""
    return Label(span, text, primary=True)


def secondary(span: Span, text: str = "") -> Label:
    """A label at a place that explains it."""
    return Label(span, text, primary=False)


def quoted(name: str) -> str:
    """A name as messages show it; very long ones are cut."""
    return f"`{name}`" if len(name) <= 60 else f"`{name[:57]}…`"


def with_article(base: Kind) -> str:
    """`a number`, `an unsigned`, "a value of type `P`"."""
    if isinstance(base, Structure):
        return f"a value of type {quoted(base.name)}"
    return f"an {base.value}" if base is Base.UNSIGNED else f"a {base.value}"


def counted(number: int, noun: str) -> str:
    """`1 argument`, `2 arguments`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
