"""From what was written to a flat program: without components and without inline relations."""

from __future__ import annotations

from elastalog.analysis.check import check_types
from elastalog.analysis.inline import has_inline, inline
from elastalog.analysis.instantiate import instantiate
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.syntax.tree import Tree


def flatten(program: Tree, *, is_strict: bool = True) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The flat program, the same object when it was flat already; and what is wrong. Inline relations are checked
    before they disappear: names, numbers of arguments and types; whether variables are grounded is judged later."""
    flat, found = instantiate(program, is_strict=is_strict)
    if found or not has_inline(flat):
        return flat, found
    found = tuple(fault for fault in check_types(flat, is_strict) if fault.severity == "error")
    if found:
        return flat, found
    return inline(flat)
