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

from elastalog.analysis.graphs import reached, shortest_path
from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Mark, SetMaintenance, size, union
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label, finding
from elastalog.diagnostics.source import Source
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.planning.logical import LogicalProgram, LogicalStratum


class Counting(Strategy):
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
    uses = {name: sorted(goal for head, goal in edges if head == name) for name in stratum.relations}
    start = stratum.relations[0]
    first = [used for used in uses[start] if start in reached([used], uses.__getitem__)]
    cycle = min(([start, *shortest_path(used, start, uses)] for used in first), key=len)
    steps = list(pairwise(cycle))
    labels = tuple(
        Label(rule.span, f"`{head}` uses `{goal}` here")
        for head, goal in steps
        if (rule := edges[head, goal]) is not None
    )
    path = " uses ".join(f"`{name}`" for name in cycle)
    return finding("E0901", *labels, source=source, path=path)
