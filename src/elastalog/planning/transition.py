"""From one program to another within an update: the program that holds meanwhile.

Rules that come or go are guarded (see `logical.guard_of`), so that they come and go as explicit facts do, and all else
is an ordinary update. That needs levels and counters to mean the same before, meanwhile and afterwards. They do
for a stratum whose relations form a strongly connected component in the old program, in the new one, and in the union
of both. The relations of all other components are evaluated anew, in the strata of the new program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from elastalog.analysis.graphs import reached
from elastalog.analysis.program import CheckedProgram
from elastalog.analysis.subsumptions import MARK
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalProgram, LogicalStratum, guard_of, renumbered
from elastalog.planning.lower import lower


@dataclass(frozen=True, slots=True)
class Transition:
    """`program`: the union of old and new rules, those that change guarded. `renamed`: what hidden relations of the old
    program are called in it, where that differs. `anew`: the relations that must be evaluated anew, since what is kept
    of them means something else."""

    program: LogicalProgram
    renamed: Mapping[str, str]
    anew: frozenset[str]


def transition(
    old: LogicalProgram,
    union: CheckedProgram,
    number_of: Mapping[int, int],
    guarded: frozenset[int],
    new: LogicalProgram | None = None,
) -> Transition:
    """`union` has the rules of the new program first, under their numbers; `number_of` says which number a rule of the
    old program has in it. Without a `new` program, all strata are those of the union."""
    equivalences = old.equivalences if new is None else new.equivalences
    lowered = lower(union, guarded, equivalences)
    before = _components(old.checked)
    after = before if new is None else _components(new.checked)
    declared = old.checked.relations.keys()
    # A relation that is declared just now was a component of its own, and empty.
    unstable = [
        set(stratum.relations)
        for stratum in union.strata
        if not (
            (frozenset(stratum.relations) in before or declared.isdisjoint(stratum.relations))
            and (frozenset(stratum.relations) in after or new is None)
        )
    ]
    if new is not None:
        # What is evaluated in the order of values is so by relations that there must be from the start.
        in_order = {s.relations for s in new.strata if s.ranked is not None}
        in_order -= {s.relations for s in lowered.strata if s.ranked is not None}
        unstable += [set(names) for names in in_order if not any(names[0] in others for others in unstable)]
    relations = dict(lowered.relations)
    strata = list(lowered.strata)
    if new is not None and unstable:
        relations.update(new.relations)
        strata = list(_with_components_of(new, lowered, unstable))
    shared = {name for name, stored in lowered.relations.items() if stored.is_hidden and stored.rule is None}
    changed = set().union(*unstable)
    anew = {
        name
        for name, stored in relations.items()
        if _owner(name, stored.rule, union) in changed and not _is_guard(name, stored.rule)
    }
    anew |= shared - old.relations.keys()
    anew |= _otherwise_dominated(old.checked, union)
    anew |= _written_out(old.equivalences - equivalences, lowered)
    program = LogicalProgram(union, relations, tuple(_numbered(strata)))
    return Transition(program, _renamed(old, program, number_of), frozenset(anew))


def _otherwise_dominated(old: CheckedProgram, union: CheckedProgram) -> set[str]:
    """The relations whose subsumptions have changed, and what is evaluated with them."""
    before, after = (Counter(rule.head.relation.removesuffix(MARK) for rule in p.subsumptions) for p in (old, union))
    changed = {name for name in {*before, *after} if before[name] != after[name]}
    return {name for stratum in union.strata if not changed.isdisjoint(stratum.relations) for name in stratum.relations}


def _written_out(equivalences: frozenset[str], union: LogicalProgram) -> set[str]:
    """Equivalences that were kept as classes and are kept by their rules from now on, and what reads them, also through
    a hidden relation: what that would have held before is not known."""

    def readers(name: str) -> list[str]:
        if name not in equivalences and not union.relations[name].is_hidden:
            return []
        return [own for s in union.strata if name in s.relations or name in s.reads for own in s.relations]

    return reached(equivalences, readers)


def _components(program: CheckedProgram) -> set[frozenset[str]]:
    return {frozenset(stratum.relations) for stratum in program.strata}


def _is_guard(name: str, rule: int | None) -> bool:
    return rule is not None and name == guard_of(rule)


def _owner(name: str, rule: int | None, program: CheckedProgram) -> str:
    """The declared relation that a relation serves: itself, or the head of the rule that it was made for."""
    return name if rule is None else program.rules[rule - 1].head.relation


def _with_components_of(
    new: LogicalProgram, union: LogicalProgram, unstable: list[set[str]]
) -> Iterator[LogicalStratum]:
    """The strata of the union; in the place of each unstable one, those that the new program has for its relations."""
    place = {name: number for number, relations in enumerate(unstable) for name in relations}
    for stratum in union.strata:
        name = stratum.relations[0]
        rule = union.relations[name].rule
        number = place.get(_owner(name, rule, union.checked))
        if number is None or _is_guard(name, rule):
            yield stratum
        elif rule is None:
            for other in new.strata:
                first = other.relations[0]
                if place.get(_owner(first, new.relations[first].rule, new.checked)) == number:
                    yield other


def _numbered(strata: Iterable[LogicalStratum]) -> Iterator[LogicalStratum]:
    """Strata of two programs as those of one."""
    clauses = 0
    for number, stratum in enumerate(strata):
        own = []
        for clause in stratum.clauses:
            clauses += 1
            own.append(replace(clause, number=clauses))
        yield replace(stratum, number=number, clauses=tuple(own))


def _renamed(old: LogicalProgram, program: LogicalProgram, number_of: Mapping[int, int]) -> dict[str, str]:
    """What the hidden relations of rules are called under their new numbers. Those that there are no longer, since
    which of them a rule has also depends on what is recursive, are kept for an update that is rolled back."""
    renamed = {}
    for name, stored in old.relations.items():
        if stored.rule is not None and not _is_guard(name, stored.rule):
            other = renumbered(name, stored.rule, number_of[stored.rule])
            if other != name or other not in program.relations:
                renamed[name] = other
    return renamed
