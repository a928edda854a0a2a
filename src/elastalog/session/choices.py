"""Options with a fixed choice of values."""

from __future__ import annotations

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest


def require_number(option: str, value: object, least: float, *, is_whole: bool = False) -> None:
    """Raises ElastalogError unless an option is None or a number that is not below the least."""
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    if value is None or (is_number and value >= least):  # type: ignore[operator]
        return
    kind = "whole number" if is_whole else "number"
    raise ElastalogError(
        [Diagnostic("E0612", f"`{option}` cannot be {value!r}", help=f"give a {kind} from {least:g} on, or None")]
    )


def require_one_of(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raises ElastalogError unless an option has one of the values that are allowed."""
    if value not in allowed:
        close = nearest(value, allowed)
        advice = f"did you mean `{close}`?" if close else "one of " + ", ".join(f"`{name}`" for name in allowed)
        raise ElastalogError([Diagnostic("E0612", f"`{value}` is not a known {option}", help=advice)])
