"""From what was written to a flat program: without components and without inline relations."""

from __future__ import annotations

from dataclasses import replace

from elastalog.analysis.check import check_types
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.syntax.tree import Clause, Component, Init, Override, RelationDeclaration, Tree


def flatten(program: Tree, *, is_strict: bool = True) -> tuple[Tree, tuple[Diagnostic, ...]]:
    """The flat program, the same object when it was flat already; and what is wrong. Inline relations are checked
    before they disappear: names, numbers of arguments and types; whether variables are grounded is judged later."""
    if any(type(item) in (Component, Init, Override) for item in program.items):
        from elastalog.analysis.instantiate import instantiate  # most programs have neither

        program, found = instantiate(program, is_strict=is_strict)
        if found:
            return program, found
    if not any(type(item) is RelationDeclaration and item.is_inline for item in program.items):
        return program, ()
    # A plan orders the atoms that there are once these are replaced.
    items = tuple([replace(item, plan=None) if type(item) is Clause else item for item in program.items])
    found = check_types(replace(program, items=items), is_strict)
    found = tuple(fault for fault in found if fault.severity == "error")
    if found:
        return program, found
    from elastalog.analysis.inline import inline

    return inline(program)
