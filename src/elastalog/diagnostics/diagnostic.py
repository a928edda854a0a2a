"""Errors as data: what is wrong, where, and what to do about it."""

from __future__ import annotations

from typing import Literal

from elastalog.diagnostics.source import Source, Span
from elastalog.late import dataclass

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Label:
    """A place that matters. The primary labels are underlined with `^`, the others with `-`."""

    span: Span
    text: str = ""
    primary: bool = True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. `code` is a stable key of the catalogue (`E0412`); `source` is None when the place is not a program
    text (a fact file names its place in `location`, as `edge.facts:17`)."""

    code: str
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
    severity: Severity = "error"
    source: Source | None = None
    location: str | None = None


class ElastalogError(Exception):
    """What the user can act on. Carries every diagnostic of the stage that failed, sorted by place."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...] | list[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{d.severity}[{d.code}]: {d.message}" for d in self.diagnostics))

    def __str__(self) -> str:
        from elastalog.diagnostics.render import render_text

        return "\n\n".join(render_text(d) for d in self.diagnostics)

    def __reduce__(self) -> tuple[type[ElastalogError], tuple[tuple[Diagnostic, ...]]]:
        """A worker process hands it on with its diagnostics, not with the text that exceptions are copied by."""
        return type(self), (self.diagnostics,)


class LimitReached(ElastalogError):
    """A limit the user set (memory, time, rows) was reached; the previous epoch stands."""


class InternalError(Exception):
    """A broken invariant of ours: says at which stage and asks for a report."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(
            f"internal error in {stage}: {message}; this is a defect of Elastalog, please report it with the program"
        )
