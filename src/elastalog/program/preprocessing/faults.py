"""What can be wrong with the lines that a preprocessor obeys."""

from __future__ import annotations

from elastalog.diagnostics.diagnostic import Diagnostic, Label
from elastalog.diagnostics.source import Source, Span


def not_found(source: Source, span: Span, name: str, searched: list[str]) -> Diagnostic:
    """E0125."""
    places = ", ".join(f"`{folder}`" for folder in searched[:8])
    return Diagnostic(
        "E0125",
        f"there is no file `{name}` to include",
        (Label(span, "not found"),),
        (f"searched in {places}",) if places else (),
        "check the name, or give the folder that holds it with `-I DIR` (`include=[…]` in Python)",
        source=source,
    )


def unreadable(source: Source, span: Span, name: str, reason: str) -> Diagnostic:
    """E0125."""
    message = f"`{name}` cannot be included: {reason}"
    return Diagnostic("E0125", message, (Label(span, "included here"),), source=source)


def too_deep(source: Source, span: Span, name: str, depth: int) -> Diagnostic:
    """E0127."""
    return Diagnostic(
        "E0127",
        f"files include each other more than {depth} deep",
        (Label(span, f"`{name}` once more"),),
        help="write `.once` or `#pragma once` into a file that should be included only once",
        source=source,
    )


def wrong_line(source: Source, span: Span, message: str, advice: str | None = None) -> Diagnostic:
    """E0126."""
    return Diagnostic("E0126", message, (Label(span),), help=advice, source=source)


def not_closed(source: Source, span: Span, word: str) -> Diagnostic:
    """E0126."""
    label = Label(span, "opened here")
    return Diagnostic("E0126", f"`#{word}` is not closed", (label,), help="close it with `#endif`", source=source)


def wrong_use(source: Source, span: Span, macro: str, reason: str, place: str | None) -> Diagnostic:
    """E0128."""
    notes = (f"`{macro}` is defined at {place}",) if place else ()
    message = f"macro `{macro}` cannot be expanded: {reason}"
    return Diagnostic("E0128", message, (Label(span, "used here"),), notes, source=source)


def too_large(source: Source, span: Span, size: int) -> Diagnostic:
    """E0128."""
    return Diagnostic(
        "E0128",
        f"macros make the program larger than {size // 2**20} MiB",
        (Label(span, "reached here"),),
        help="use macros that are replaced by less text",
        source=source,
    )
