"""How relations depend on each other: only through an even number of negations, only through an odd one, or both; and
the strata that matter for a question (`Parts`).

A relation that depends on another only positively can only gain facts when the other does; one that does so only
negatively can only lose them. Aggregates, subsumption and choices may go either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from elastalog.analysis.program import Apply, Constant, Variable
from elastalog.debugging.sandbox import Switch
from elastalog.planning.logical import Absent, LogicalProgram, LogicalStratum, Scan, Test
from elastalog.syntax.keywords import COMPARISONS
from elastalog.syntax.tree import nodes_of

POSITIVE = 1
NEGATIVE = 2
BOTH = POSITIVE | NEGATIVE

Dependencies = Mapping[str, Mapping[str, int]]
"""By relation: how it depends on others; those it does not depend on are left out."""


def dependencies(program: LogicalProgram, bases: Iterable[str]) -> Dependencies:
    """How every relation depends on those in `bases`, itself included."""
    found: dict[str, dict[str, int]] = {name: {} for name in program.relations}
    for name in bases:
        found[name][name] = POSITIVE
    for stratum in program.strata:
        is_recursive = any(clause.is_recursive for clause in stratum.clauses)
        while _extend(found, stratum) and is_recursive:
            pass
        if stratum.dominance or any(program.relations[name].choices for name in stratum.relations):
            # Where facts supersede each other, more facts may also mean fewer.
            read = {base for name in (*stratum.reads, *stratum.relations) for base in found[name]}
            found.update((name, dict.fromkeys(read, BOTH)) for name in stratum.relations)
    return found


def _extend(found: dict[str, dict[str, int]], stratum: LogicalStratum) -> bool:
    grows = False
    rule = stratum.aggregate
    if rule is not None:
        grows |= _merge(found[rule.relation], dict.fromkeys(found[rule.members], BOTH))
        if rule.domain is not None:
            grows |= _merge(found[rule.relation], found[rule.domain])
    for clause in stratum.clauses:
        for goal in clause.goals:
            if isinstance(goal, Scan):
                grows |= _merge(found[clause.head], found[goal.relation])
            elif isinstance(goal, Absent):
                grows |= _merge(
                    found[clause.head], {n: turned(sign, has_come=False) for n, sign in found[goal.relation].items()}
                )
    return grows


def _merge(target: dict[str, int], more: Mapping[str, int]) -> bool:
    grows = False
    for name, sign in list(more.items()):
        new = target.get(name, 0) | sign
        grows |= new != target.get(name)
        target[name] = new
    return grows


def turned(sign: int, *, has_come: bool) -> int:
    """How facts turn that depend on a relation by a sign, when a fact of it comes or goes."""
    return sign if has_come else (sign & POSITIVE) << 1 | sign >> 1


def useful(switches: Sequence[Switch], signs: Dependencies, absent: Iterable[str], present: Iterable[str]) -> list[int]:
    """The switches whose flipping can help to make facts of some relations absent and of others present. Any other has
    no effect on them or works against them, so it is in no smallest solution."""
    sought = [*((name, NEGATIVE) for name in {*absent}), *((name, POSITIVE) for name in {*present})]
    return [
        number
        for number, switch in enumerate(switches)
        if any(turned(signs[name].get(switch.fact[0], 0), has_come=switch.adds) & way for name, way in sought)
    ]


def indifferent(strata: Sequence[LogicalStratum], exact: Collection[str]) -> frozenset[str]:
    """The relations that keep the best value of each key, evaluated in the order of values, of which no other stratum
    looks at the value, nor asks anyone for the `exact` facts. Whatever is derived for a key, the key has a value."""
    found = set[str]()
    for stratum in strata:
        columns = {} if stratum.ranked is None else stratum.ranked.columns
        if columns.keys().isdisjoint(exact) and not any(
            _reads_values(other, columns) for other in strata if other is not stratum
        ):
            found |= columns.keys()
    return frozenset(found)


def _reads_values(stratum: LogicalStratum, columns: Mapping[str, int]) -> bool:
    """Whether a stratum looks at values of relations, given by their columns."""
    if stratum.aggregate is not None and not columns.keys().isdisjoint(stratum.aggregate.reads):
        return True
    for clause in (*stratum.clauses, *stratum.dominance):
        terms = Counter[object](clause.head_terms)
        for goal in clause.goals:
            if isinstance(goal, Test):
                terms.update(variable.name for variable in nodes_of(Variable, goal))
            else:
                terms.update(goal.terms)
                if isinstance(goal, Absent) and goal.relation in columns:
                    return True
        values = (scan.terms[columns[scan.relation]] for scan in clause.scans if scan.relation in columns)
        if any(isinstance(value, Constant) or (value is not None and terms[value] > 1) for value in values):
            return True
    return False


class Parts:
    """Remembers what it has found out about a program."""

    def __init__(self, program: LogicalProgram) -> None:
        self.program = program
        self._below: dict[frozenset[str], frozenset[int]] = {}

    @cached_property
    def _reads(self) -> list[tuple[LogicalStratum, frozenset[str]]]:
        """The strata from above, each with what it reads."""
        return [(stratum, stratum.reads) for stratum in reversed(self.program.strata)]

    def below(self, relations: Iterable[str]) -> frozenset[int]:
        """The strata that relations depend on, their own included."""
        asked = frozenset(relations)
        known = self._below.get(asked)
        if known is None:
            needed = set(asked)
            found: set[int] = set()
            for stratum, reads in self._reads:
                if not needed.isdisjoint(stratum.relations):
                    found.add(stratum.number)
                    needed |= reads
            known = self._below[asked] = frozenset(found)
        return known

    def are_numbered(self, relations: Iterable[str]) -> bool:
        """Whether relations depend on numbers that derivations have been given."""
        below = self.below(relations)
        return any(stratum.numbering is not None for stratum in self.program.strata if stratum.number in below)

    @cached_property
    def _fragile(self) -> frozenset[str]:
        """Relations of strata that may have no result in some state, because a value cannot be computed there."""
        return frozenset(name for stratum, _ in self._reads if _may_fail(stratum) for name in stratum.relations)

    def decisive(self, relations: Iterable[str]) -> frozenset[int] | None:
        """The strata that decide whether facts of some relations hold in a state, and whether all rules have a result
        there; None if it takes the whole program."""
        return None if self.program.limits else self.below(self._fragile.union(relations))


def _may_fail(stratum: LogicalStratum) -> bool:
    """Whether anything is computed. That may end in an error (see `planning.goals`), or never: rules that make values,
    of texts and floats too, need not come to an end in every state."""
    return stratum.aggregate is not None or any(
        goal.operator not in COMPARISONS or isinstance(goal.left, Apply) or isinstance(goal.right, Apply)
        for clause in stratum.clauses
        for goal in clause.goals
        if isinstance(goal, Test)
    )
