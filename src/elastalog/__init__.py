"""Elastalog: Datalog that keeps its answers up to date and can say why they are so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elastalog.analysis.values import Branch as Branch
    from elastalog.diagnostics.diagnostic import ElastalogError as ElastalogError
    from elastalog.diagnostics.diagnostic import InternalError as InternalError
    from elastalog.program import Program as Program
    from elastalog.relations.functions import vectorised as vectorised
    from elastalog.session import Session as Session
    from elastalog.session import open as open  # noqa: A004  # its public name

__version__ = "0.1.0"

__all__ = ["Branch", "ElastalogError", "InternalError", "Program", "Session", "__version__", "open", "vectorised"]

# Imported when first used, so that `import elastalog` stays quick.
_HOMES = {
    "Branch": "elastalog.analysis.values",
    "ElastalogError": "elastalog.diagnostics.diagnostic",
    "InternalError": "elastalog.diagnostics.diagnostic",
    "Program": "elastalog.program",
    "Session": "elastalog.session",
    "open": "elastalog.session",
    "vectorised": "elastalog.relations.functions",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
