"""Counting: for programs without recursion, one counter a fact.

Invariant: after every epoch count(F) = [F is explicit] + number of derivations of F, for every fact; facts with count
0 are absent.

    subtract 1 for every derivation of inst[I, I : dead, born] and for every fact of E⁻,
    add 1 for every derivation of inst[new : born, dead] and for every fact of E⁺;
    facts whose counter became 0 go, those whose counter became positive come.

Exactly the affected derivations are considered. A derivation that fires in both epochs is touched by neither sum.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Mark, SetMaintenance, size, union
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label, finding
from elastalog.diagnostics.source import Source
from elastalog.evaluation.strategies.by_stratum import MaintainingStrategy
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.planning.logical import LogicalProgram, LogicalStratum


class Counting(MaintainingStrategy):
    name: ClassVar[str] = "counting"
    annotation: ClassVar[Annotation] = Annotation(Support.NONRECURSIVE)
    is_memoryless: ClassVar[bool] = True

    def check(self, program: LogicalProgram) -> None:
        recursive = [stratum for stratum in program.strata if stratum.is_recursive]
        if recursive:
            source = program.checked.source
            raise ElastalogError([_refusal(stratum, source) for stratum in recursive])

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        lost = union(stratum.explicit_losses(), stratum.heads_of_changes(Evaluation.OLD, Change.TAKE))
        won = union(stratum.explicit_gains(), stratum.heads_of_changes(Evaluation.NEW, Change.GIVE))
        gone = stratum.without_nonrecursive_support(stratum.having(lost, Mark.PRESENT))
        came = stratum.with_nonrecursive_support(stratum.having(won, NO_MARK, Mark.PRESENT))
        stratum.mark(gone, NO_MARK, removed=Mark.PRESENT)
        stratum.mark(came, Mark.PRESENT)
        counters.deletions += size(gone)
        counters.insertions += size(came)


def _refusal(stratum: LogicalStratum, source: Source) -> Diagnostic:
    """Names a cycle of relations, with the rules that make it."""
    edges = {
        (clause.head, goal): clause.rule
        for clause in stratum.clauses
        for goal in (scan.relation for scan in clause.scans)
        if goal in stratum.relations
    }
    cycle = _cycle({(head, goal) for head, goal in edges}, stratum.relations[0])
    steps = list(pairwise(cycle))
    labels = tuple(
        Label(rule.span, f"`{head}` uses `{goal}` here")
        for head, goal in steps
        if (rule := edges[head, goal]) is not None
    )
    path = " uses ".join(f"`{name}`" for name in cycle)
    return finding("E0901", *labels, source=source, path=path)


def _cycle(edges: set[tuple[str, str]], start: str) -> list[str]:
    """The shortest cycle through a relation of a recursive stratum, first and last element equal."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for name in sorted(goal for head, goal in edges if head == path[-1]):
            if name == start:
                return [*path, start]
            if name not in seen:
                seen.add(name)
                paths.append([*path, name])
    raise AssertionError("a recursive stratum is a cycle")
