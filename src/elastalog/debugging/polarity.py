"""How relations depend on each other: only through an even number of negations, only through an odd one, or both.

A fact of a relation that depends on another only positively can only be gained when facts of the other are added; if
only negatively, only be lost. What is folded by an aggregate may go either way, and what subsumption or a choice
decides about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from elastalog.debugging.laboratory import Switch
from elastalog.planning.logical import Absent, LogicalProgram, LogicalStratum, Scan

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
        _mix(found, stratum, program)
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
                grows |= _merge(found[clause.head], {n: _negated(sign) for n, sign in found[goal.relation].items()})
    return grows


def _mix(found: dict[str, dict[str, int]], stratum: LogicalStratum, program: LogicalProgram) -> None:
    """Where facts supersede each other, more facts may also mean fewer."""
    if stratum.dominance or any(program.relations[name].choices for name in stratum.relations):
        read = {base for name in (*stratum.reads, *stratum.relations) for base in found[name]}
        for name in stratum.relations:
            found[name] = dict.fromkeys(read, BOTH)


def _merge(target: dict[str, int], more: Mapping[str, int]) -> bool:
    grows = False
    for name, sign in list(more.items()):
        new = target.get(name, 0) | sign
        grows |= new != target.get(name)
        target[name] = new
    return grows


def _negated(sign: int) -> int:
    return BOTH if sign == BOTH else BOTH - sign


def useful(switches: Sequence[Switch], signs: Dependencies, absent: Iterable[str], present: Iterable[str]) -> list[int]:
    """The switches whose flipping can help at all to make facts of some relations absent and of others present.
    Flipping another one is without effect on them or works against them, so it is in no smallest solution."""
    lowering = dict.fromkeys(absent)
    raising = dict.fromkeys(present)
    found = []
    for number, switch in enumerate(switches):
        base = switch.fact[0]
        lowers = NEGATIVE if switch.adds else POSITIVE
        if any(signs[name].get(base, 0) & lowers for name in lowering) or any(
            signs[name].get(base, 0) & (BOTH - lowers) for name in raising
        ):
            found.append(number)
    return found
