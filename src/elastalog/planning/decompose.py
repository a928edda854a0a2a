"""Sharing the work of a stratum among tasks: which strata fall apart, and what the others have to exchange.

Every derivation of a clause binds its variables to values. If one variable, the *pivot*, is chosen for each clause, a
task that is responsible for a share of all values finds exactly the derivations whose pivot lies in its share. It
needs, of an atom that holds the pivot, only the facts of its share (a copy of the relation *by* that column), and of
the others a whole copy.

A stratum *decomposes* when there is an argument of each of its relations that is the pivot of every clause, in the head
and in every recursive atom: then what a task derives stays in its share, and it reaches the fixpoint alone, with the
very levels and counts of the whole. Otherwise heads are sent to the copies that need them after every iteration.

What has to be compared or counted wherever it is (subsumption, `.limitsize`, numbers of facts) is *for one* task, which
has all of the stratum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from elastalog.analysis.program import CheckedProgram, Constant
from elastalog.planning.logical import (
    AggregateRule,
    Clause,
    Goal,
    LogicalProgram,
    LogicalStratum,
    Scan,
    StoredRelation,
    Test,
)
from elastalog.planning.lower import lower

_MOST_TRIALS = 20_000


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of a relation that tasks hold: the facts whose word in `column` belongs to the task's share, or all facts
    (None)."""

    name: str
    relation: str
    column: int | None


@dataclass(frozen=True, slots=True)
class SharedClause:
    """A clause over copies. `pivot` is the variable by which it is shared. With a constant, the task whose share has
    that value evaluates the clause alone; with None, the first task does."""

    clause: Clause
    pivot: str | Constant | None


@dataclass(frozen=True, slots=True)
class SharePlan:
    """How tasks evaluate a stratum. `arguments`: for each relation, the column by which it decomposes; empty if one
    task has the whole stratum, None if tasks exchange facts. `obstacle` says why the stratum is not shared, or does not
    decompose. `copies`: those of all relations, its own and lower ones. `beside`: other strata that a task looks at."""

    stratum: LogicalStratum
    arguments: Mapping[str, int] | None
    obstacle: str | None
    clauses: tuple[SharedClause, ...]
    copies: tuple[Copy, ...]
    beside: tuple[LogicalStratum, ...] = ()

    @property
    def decomposes(self) -> bool:
        return self.arguments is not None

    @property
    def is_for_one(self) -> bool:
        """Whether one task evaluates the whole stratum."""
        return self.arguments is not None and not self.arguments

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that tasks hold copies of."""
        return tuple(dict.fromkeys(copy.relation for copy in self.copies))

    def own_copies(self, relation: str) -> tuple[Copy, ...]:
        return tuple(copy for copy in self.copies if copy.relation == relation)

    def owner(self, relation: str) -> Copy:
        """The copy of one of the stratum's relations that holds its facts: a shared copy, if there is one."""
        copies = self.own_copies(relation)
        return next((copy for copy in copies if copy.column is not None), copies[0])


def share_plan(stratum: LogicalStratum, program: LogicalProgram) -> SharePlan:
    """The plan by which tasks evaluate a stratum of a program."""
    if stratum.aggregate is not None:
        return _folded(stratum, stratum.aggregate, program)
    if stratum.dominance:
        return whole_plan(stratum, "subsumption compares facts wherever they are")
    if program.is_limited(stratum):
        return whole_plan(stratum, "a `.limitsize` counts the facts of a relation wherever they are")
    arguments = _preserved_arguments(stratum, program)
    if arguments is not None:
        return _decomposed(stratum, arguments)
    if any(program.relations[name].choices for name in stratum.relations):
        return whole_plan(stratum, "a choice domain compares facts wherever they are")
    return exchanging_plan(stratum, _obstacle(stratum))


# --- decomposable strata -------------------------------------------------------------------------------------------


def _preserved_arguments(stratum: LogicalStratum, program: LogicalProgram) -> Mapping[str, int] | None:
    """The best choice of one column per relation that every clause preserves: the choice that shares the most lower
    atoms. The column must belong to every key of a choice domain, so that facts with a common key are in one share."""
    best: tuple[int, dict[str, int]] | None = None
    trials = 0
    pending: list[dict[str, int]] = [{}]
    while pending and trials < _MOST_TRIALS:
        trials += 1
        chosen = pending.pop()
        if not all(_is_preserved(clause, chosen) for clause in stratum.clauses):
            continue
        missing = next((name for name in stratum.relations if name not in chosen), None)
        if missing is None:
            score = sum(
                clause.head_terms[chosen[clause.head]] in goal.terms
                for clause in stratum.clauses
                for goal in clause.goals
                if not isinstance(goal, Test)
            )
            if best is None or score > best[0]:
                best = score, chosen
            continue
        relation = program.relations[missing]
        columns = [c for c in range(relation.width) if all(c in key for key in relation.choices)]
        pending += [{**chosen, missing: column} for column in reversed(columns)]
    return None if best is None else best[1]


def _is_preserved(clause: Clause, chosen: Mapping[str, int]) -> bool:
    """Whether a clause preserves the columns chosen so far."""
    if clause.head not in chosen:
        return True
    pivot = clause.head_terms[chosen[clause.head]]
    if isinstance(pivot, Constant):
        return not clause.is_recursive
    recursive = [goal for i, goal in enumerate(clause.goals) if i in clause.recursive_goals]
    for goal in recursive:
        assert isinstance(goal, Scan)
        if goal.relation in chosen and goal.terms[chosen[goal.relation]] != pivot:
            return False
    return bool(recursive) or any(pivot in scan.terms for scan in clause.scans)


def _decomposed(stratum: LogicalStratum, arguments: Mapping[str, int]) -> SharePlan:
    shared: list[SharedClause] = []
    copies = {name: Copy(name, name, arguments[name]) for name in stratum.relations}
    for clause in stratum.clauses:
        pivot = clause.head_terms[arguments[clause.head]]
        goals = tuple(_over_copy(goal, pivot, frozenset(stratum.relations), copies) for goal in clause.goals)
        shared.append(SharedClause(replace(clause, goals=goals), pivot))
    return SharePlan(stratum, arguments, None, tuple(shared), tuple(copies.values()))


def _folded(stratum: LogicalStratum, rule: AggregateRule, program: LogicalProgram) -> SharePlan:
    """Shares an aggregate by the first column of its groups. One task does the work if there are no groups, and if
    facts are numbered, since numbers are given in one order, after all those given by other rules."""
    column, why = (0, None) if rule.groups else (None, "an aggregate without groups")
    names, beside = (rule.relation, *rule.reads), tuple[LogicalStratum, ...]()
    if rule.is_numbering:
        column, why = None, "facts are numbered one after the other"
        # Of these only the facts matter: as strata, they read no other.
        beside = tuple(
            replace(other, aggregate=replace(found, members=found.relation, domain=None))
            for other in program.strata
            if other is not stratum and (found := other.numbering) is not None
        )
        names += tuple(name for other in beside for name in other.relations)
    copies = tuple(Copy(name, name, column) for name in dict.fromkeys(names))
    return SharePlan(stratum, {} if column is None else {rule.relation: column}, why, (), copies, beside)


def whole_plan(stratum: LogicalStratum, why: str) -> SharePlan:
    """The plan by which one task evaluates a stratum with rules, as a whole."""
    names = dict.fromkeys((*stratum.relations, *sorted(stratum.reads)))
    clauses = tuple(SharedClause(clause, None) for clause in stratum.clauses)
    return SharePlan(stratum, {}, why, clauses, tuple(Copy(name, name, None) for name in names))


def _over_copy(goal: Goal, pivot: str | Constant | None, kept: frozenset[str], copies: dict[str, Copy]) -> Goal:
    """The goal over the copy that is sufficient with this pivot. Relations in `kept` are not replaced."""
    if isinstance(goal, Test) or goal.relation in kept:
        return goal
    column = goal.terms.index(pivot) if isinstance(pivot, str) and pivot in goal.terms else None
    name = copy_name(goal.relation, column)
    copies.setdefault(name, Copy(name, goal.relation, column))
    return replace(goal, relation=name)


def copy_name(relation: str, column: int | None) -> str:
    """The name of a copy, which no program can write unless the copy is the whole relation."""
    return relation if column is None else f"{relation}@{column}"


def _obstacle(stratum: LogicalStratum) -> str:
    """Why a stratum does not decompose, in words."""
    kept: dict[str, set[str]] = {}
    for clause in stratum.clauses:
        recursive = [goal for i, goal in enumerate(clause.goals) if i in clause.recursive_goals]
        own = {term for term in clause.head_terms if isinstance(term, str)}
        for goal in recursive:
            assert isinstance(goal, Scan)
            own &= {term for term in goal.terms if isinstance(term, str)}
        if recursive and not own:
            return f"{rule_name(clause)} keeps no argument: no variable of its head stands in all its recursive atoms"
        if not recursive and not any(_is_preserved(clause, {clause.head: i}) for i in range(len(clause.head_terms))):
            return f"{rule_name(clause)} computes every argument of its head"
        if recursive:
            kept[rule_name(clause)] = own
    told = "; ".join(f"{name} keeps {', '.join(f'`{v}`' for v in sorted(own))}" for name, own in kept.items())
    return f"no argument is kept by all rules at the same place: {told}"


def rule_name(clause: Clause) -> str:
    """The name of a clause in reports."""
    return f"rule {clause.rule.number}" if clause.rule is not None else f"the rule of `{clause.head}`"


# --- strata that exchange ------------------------------------------------------------------------------------------


def exchanging_plan(stratum: LogicalStratum, obstacle: str) -> SharePlan:
    """The plan by which tasks evaluate a stratum that does not decompose, or should not."""
    shared: list[SharedClause] = []
    copies: dict[str, Copy] = {}
    for clause in stratum.clauses:
        pivot = _pivot(clause, copies)
        goals = tuple(_over_copy(goal, pivot, frozenset(), copies) for goal in clause.goals)
        shared.append(SharedClause(replace(clause, goals=goals), pivot))
    read = {copy.relation for copy in copies.values()}
    for name in stratum.relations:
        if name not in read:
            # No rule joins with it: its facts are only collected, shared by their first column.
            own = copy_name(name, 0)
            copies[own] = Copy(own, name, 0)
    return SharePlan(stratum, None, obstacle, tuple(shared), tuple(copies.values()))


def _pivot(clause: Clause, copies: Mapping[str, Copy]) -> str | None:
    """The variable that shares the most recursive atoms, then the most atoms, and then needs the fewest new copies."""
    recursive: Counter[str] = Counter()
    every: Counter[str] = Counter()
    present: Counter[str] = Counter()
    for i, goal in enumerate(clause.goals):
        if isinstance(goal, Test):
            continue
        for term in {term for term in goal.terms if isinstance(term, str)}:
            # A negated atom cannot supply the values of a pivot, but profits from one.
            every[term] += 1
            recursive[term] += i in clause.recursive_goals
            present[term] += copy_name(goal.relation, goal.terms.index(term)) in copies
    supplied = {term for scan in clause.scans for term in scan.terms if isinstance(term, str)}
    ranked = sorted(supplied, key=lambda v: (-recursive[v], -every[v], -present[v], v))
    return ranked[0] if ranked else None


# --- the program that a task evaluates -----------------------------------------------------------------------------


def with_copies(program: LogicalProgram, plan: SharePlan, clauses: tuple[Clause, ...]) -> LogicalProgram:
    """The program of a task: one stratum, its clauses over copies, and those that it looks at."""
    relations: dict[str, StoredRelation] = {
        copy.name: replace(program.relations[copy.relation], name=copy.name) for copy in plan.copies
    }
    own = tuple(copy.name for copy in plan.copies if copy.relation in plan.stratum.relations)
    stratum = replace(plan.stratum, relations=own, clauses=clauses)
    return replace(program, relations=relations, strata=(stratum, *plan.beside))


# --- the report ----------------------------------------------------------------------------------------------------


def decomposition_report(program: CheckedProgram) -> Iterator[str]:
    """For every stratum with rules: whether it decomposes, by which arguments, and if not, why."""
    logical = lower(program, equivalences=())
    for stratum in logical.strata:
        if stratum.aggregate is None and not stratum.clauses:
            continue
        kind = "recursive" if stratum.is_recursive else "not recursive"
        yield f"stratum {stratum.number}: {', '.join(stratum.relations)} ({kind})"
        plan = share_plan(stratum, logical)
        if plan.is_for_one:
            yield f"    one task does it: {plan.obstacle}"
            continue
        if plan.arguments is not None:
            told = ", ".join(f"argument {column + 1} of {name}" for name, column in plan.arguments.items())
            done = "reaches the fixpoint of its share alone" if stratum.aggregate is None else "folds its groups"
            yield f"    decomposes by {told}: each task {done}"
        else:
            yield f"    does not decompose: {plan.obstacle}"
            yield "    tasks exchange what they derive after every iteration:"
            for shared in plan.clauses:
                by = f"shared by `{shared.pivot}`" if isinstance(shared.pivot, str) else "evaluated by one task"
                yield f"        {rule_name(shared.clause)} {by}"
        for copy in plan.copies:
            if copy.column is None:
                yield f"    every task holds all of {copy.relation}"
            elif copy.name != copy.relation or not plan.decomposes:
                yield f"    {copy.relation} is shared by its argument {copy.column + 1}"
