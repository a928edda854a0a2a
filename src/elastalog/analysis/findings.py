"""Collecting the diagnostics of a pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from elastalog.diagnostics.diagnostic import Diagnostic, Label, Severity, finding
from elastalog.diagnostics.messages import quoted
from elastalog.diagnostics.nearest import Effort, nearest
from elastalog.diagnostics.quota import look
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tree import Instance

# Looking for a near name costs a scan of all names; a program with thousands of unknown names has another problem.
_MOST_WORK: Final = 500_000
_MOST_CANDIDATES: Final = 1_000_000

Place: TypeAlias = Span | Label | None

NO_NULL: Final = "there is no null: write `!relation(x, _)` for a fact that is not there (of records: `nil`)"


class Findings:
    """The diagnostics of one pass over one source, in the order found.

    `instance` is set by a pass to the instance of the item at hand. A finding in the text of a component then says how
    it was reached, and is reported for one instance only.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []
        self.count = 0  # how many there were, those that others stand for included
        self.instance: Instance | None = None
        self._reported: set[tuple[str, tuple[Label, ...]]] = set()
        self._suggestions: dict[str, str | None] = {}
        self._effort = Effort(_MOST_WORK)
        self._candidates_left = _MOST_CANDIDATES

    def error(self, key: str, *places: Place, **values: object) -> None:
        """What makes the program wrong: a message by its code and key, at some places (see `finding`)."""
        self._add("error", key, places, values)

    def warning(self, key: str, *places: Place, **values: object) -> None:
        """Something that is probably not intended."""
        self._add("warning", key, places, values)

    def note(self, key: str, *places: Place, **values: object) -> None:
        """Something worth knowing that is only shown on request."""
        self._add("note", key, places, values)

    def declared_twice(self, code: str, what: str, again: Span, first: Span) -> None:
        """Reports a second declaration of what may have only one."""
        self.error("E0201", again, first, code=code, what=what)

    def nearest(self, name: str, candidates: Collection[str]) -> str | None:
        """The candidate that was probably meant, if any."""
        if name not in self._suggestions:
            if len(candidates) > self._candidates_left:
                return None
            look()
            self._candidates_left -= len(candidates)
            self._suggestions[name] = nearest(name, candidates, self._effort)
        return self._suggestions[name]

    def _add(self, severity: Severity, key: str, places: Sequence[Place], values: dict[str, Any]) -> None:
        self.count += 1
        found = finding(key, *places, severity=severity, source=self.source, **values)
        if self.instance is not None:
            if (found.code, found.labels) in self._reported:
                return
            self._reported.add((found.code, found.labels))
            place = self.source.place(self.instance.span.start)
            way = f"in {quoted(self.instance.name)}, an instance of {quoted(self.instance.component)} made at {place}"
            found = replace(found, notes=(*found.notes, way))
        self.diagnostics.append(found)


def secondary(span: Span, text: str) -> Label:
    """A label at a place that explains what is wrong."""
    return Label(span, text, primary=False)
