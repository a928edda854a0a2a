"""From what was written to what it means: the passes, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from elastalog.analysis.check_grounded import check_grounded
from elastalog.analysis.declare_functors import declare_functors
from elastalog.analysis.declare_relations import declare_relations
from elastalog.analysis.declare_types import declare_types
from elastalog.analysis.draft import Draft, Outcome
from elastalog.analysis.infer_types import infer_types
from elastalog.analysis.lattices import with_lattices
from elastalog.analysis.number_rules import number_rules
from elastalog.analysis.program import CheckedProgram
from elastalog.analysis.resolve_names import resolve_names
from elastalog.analysis.stratify import stratify
from elastalog.analysis.subsumptions import with_pairs
from elastalog.analysis.take_apart import limit_rules, take_apart
from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.quota import look
from elastalog.syntax.collection import without_collection
from elastalog.syntax.tree import Tree

Pass: TypeAlias = Callable[[Draft], Outcome]

PASSES: Final[tuple[tuple[Pass, frozenset[Pass]], ...]] = (
    (with_lattices, frozenset()),
    (with_pairs, frozenset()),
    (declare_types, frozenset()),
    (declare_functors, frozenset((declare_types,))),
    (declare_relations, frozenset()),
    (resolve_names, frozenset()),
    (take_apart, frozenset()),
    (limit_rules, frozenset()),
    (infer_types, frozenset((declare_types, declare_relations))),
    (check_grounded, frozenset((declare_types, declare_relations))),
    (stratify, frozenset((declare_types, declare_relations))),
    (
        number_rules,
        frozenset(
            (
                with_lattices,
                with_pairs,
                declare_types,
                declare_functors,
                declare_relations,
                resolve_names,
                take_apart,
                limit_rules,
                infer_types,
                check_grounded,
                stratify,
            )
        ),
    ),
)
"""Every pass with those that must have found no error before it runs. The others leave clauses at fault out, so that
the passes after them speak about the sound ones."""


def check(tree: Tree, *, is_strict: bool = True) -> tuple[CheckedProgram | None, tuple[Diagnostic, ...]]:
    """The checked program, or None when there are errors; and all diagnostics, sorted by place. The program is flat:
    without components and inline relations."""
    draft, failed, diagnostics = _run(Draft(tree, is_strict), len(PASSES))
    return (None if failed else draft.program), tuple(diagnostics)


def check_types(tree: Tree, is_strict: bool) -> tuple[Diagnostic, ...]:
    """What is wrong with the names and types of a program, in which variables need not be grounded."""
    last = [run for run, _ in PASSES].index(infer_types)
    return tuple(_run(Draft(tree, is_strict), last + 1)[2])


def _run(draft: Draft, passes: int) -> tuple[Draft, set[Pass], list[Diagnostic]]:
    """The first passes."""
    diagnostics: list[Diagnostic] = []
    failed: set[Pass] = set()
    with without_collection():
        for run, needed in PASSES[:passes]:
            look()
            if failed.isdisjoint(needed):
                draft, found = run(draft)
                diagnostics.extend(found)
                if any(diagnostic.severity == "error" for diagnostic in found):
                    failed.add(run)
    diagnostics.sort(key=place)
    return draft, failed, diagnostics


def place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    """Sorts diagnostics by where they point."""
    first = next((label.span for label in diagnostic.labels if label.primary), None)
    return (first.start, first.end, diagnostic.code) if first is not None else (0, 0, diagnostic.code)
