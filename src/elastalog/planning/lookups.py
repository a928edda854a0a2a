"""Where facts are looked up that are known as a whole."""

from __future__ import annotations

from collections import Counter

from elastalog.analysis.program import Constant
from elastalog.planning.logical import Absent, Clause, LogicalProgram, Scan, Test
from elastalog.planning.variables import variables_in


def last_lookups(program: LogicalProgram) -> dict[int, list[str]]:
    """By number of stratum, relations: no later stratum looks facts of them up that are known as a whole. In each
    relation its own stratum does, to have every fact once."""
    last = {name: stratum.number for stratum in program.strata for name in stratum.relations}
    for stratum in program.strata:
        for clause in (*stratum.clauses, *stratum.dominance):
            last.update(dict.fromkeys(_looked_up(clause), stratum.number))
    found: dict[int, list[str]] = {}
    for name, number in last.items():
        found.setdefault(number, []).append(name)
    return found


def _looked_up(clause: Clause) -> list[str]:
    """The relations of the goals all of whose terms may be known when they are visited."""
    names = Counter(name for goal in clause.goals for name in _names(goal))
    return [
        goal.relation
        for goal in clause.goals
        if not isinstance(goal, Test)
        if isinstance(goal, Absent)
        or all(isinstance(term, Constant) or (term is not None and names[term] > 1) for term in goal.terms)
    ]


def _names(goal: Scan | Absent | Test) -> set[str]:
    if isinstance(goal, Test):
        return {variable.name for variable in variables_in(goal)}
    return {term for term in goal.terms if isinstance(term, str)}
