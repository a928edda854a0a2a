"""Options with a fixed choice of values."""

from __future__ import annotations

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest


def require_one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises ElastalogError unless an option has one of the values that are allowed."""
    if value not in allowed:
        close = nearest(value, allowed)
        advice = f"did you mean `{close}`?" if close else "one of " + ", ".join(f"`{name}`" for name in allowed)
        raise ElastalogError([Diagnostic("E0612", f"`{value}` is not a known {option}", help=advice)])
