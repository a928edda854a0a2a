"""Variants of clauses: which ones there are, and from where each is planned.

A variant starts at one goal (a delta, in semi-naive or incremental evaluation), at the whole of some relation, or at
the head (backward evaluation).

Its steps keep variables only while something later needs them. So steps are drafted in terms of names, from the first
to the last; what is needed after each is known from the last to the first; then names get their slots.

Plans go by what facts meet on average, but single facts may meet far more on one way than on another. Where compiled
code can tell at every fact, it takes the shorter of several alternative plans (`other_ways`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from elastalog.analysis.program import Apply, Constant, Expression, Variable
from elastalog.late import dataclass
from elastalog.planning import steps
from elastalog.planning.goals import can_fail, names_in
from elastalog.planning.logical import Absent, Clause, Scan, Term, Test
from elastalog.planning.order import Ready, Statistics, Visit, first_scan, order_goals
from elastalog.settings import SETTINGS


def plan_from_goal(clause: Clause, goal: int, statistics: Statistics, *, with_rows: bool = False) -> steps.Variant:
    """The variant that starts at the facts of one goal, a scan or a negated atom."""
    results = (*clause.head_terms, *_rows(clause, with_rows))
    return _plan(clause, goal, statistics, results, hint=_hint(clause, goal))


def plan_again(variant: steps.Variant, statistics: Statistics) -> steps.Variant:
    """The variant that starts at the facts of the same goal and gives the same results, now that sizes have changed; it
    is the same one if nothing comes of that."""
    clause, goal = variant.clause, variant.gather.goal
    assert goal is not None
    visits = order_goals(clause, goal, set(), statistics, _hint(clause, goal))
    # All else follows from the order of the goals.
    if [visit.goal for visit in visits[1:]] == [probe.goal for probe in variant.probes]:
        return variant
    return lay_out(clause, visits, variant.results)


def plan_by_way_of(variant: steps.Variant, goal: int, statistics: Statistics) -> steps.Variant:
    """The variant with the same start and results that joins a certain scan before all others."""
    clause, start = variant.clause, variant.gather.goal
    scans = [i for i, literal in enumerate(clause.goals) if isinstance(literal, Scan)]
    return _plan(clause, start, statistics, variant.results, hint=(scans.index(goal),))


def plan_heads(clauses: Sequence[Clause], goal: int, statistics: Statistics) -> steps.Variant:
    """The variant that starts at the facts of one goal, for clauses that differ in their heads only: its results are
    the terms of all heads, each once."""
    results = tuple(dict.fromkeys(term for clause in clauses for term in clause.head_terms))
    return _plan(clauses[0], goal, statistics, results)


def plan_full(clause: Clause, statistics: Statistics) -> steps.Variant:
    """The variant that enumerates all derivations."""
    hint = _hint(clause, None)
    start = first_scan(clause, statistics, hint)
    return _plan(clause, start, statistics, clause.head_terms, hint=hint)


def plan_backward(clause: Clause, statistics: Statistics, *, with_rows: bool = False) -> steps.Variant:
    """The variant that starts at facts of the head; its results begin with the head's row number."""
    return _plan(clause, None, statistics, (HEAD_ROW, *_rows(clause, with_rows)), from_head=True)


def plan_wanted(clause: Clause, wanted: Scan, statistics: Statistics) -> steps.Variant:
    """The variant that starts at the facts of another goal, which tells what is wanted of heads: it finds what is
    derived of that. As backwards, what overflows leads to nothing: it may do so before it is known to be derived."""
    asking = replace(
        clause, goals=(wanted, *clause.goals), recursive_goals=tuple(goal + 1 for goal in clause.recursive_goals)
    )
    return _plan(asking, 0, statistics, asking.head_terms, is_sought=True)


def _rows(clause: Clause, with_rows: bool) -> tuple[str, ...]:
    return tuple([body_row(i) for i in range(len(clause.scans))]) if with_rows else ()


def _hint(clause: Clause, goal: int | None) -> tuple[int, ...]:
    """The user's order of scans for this variant, from 0. Variants are numbered by the recursive atom that is the
    delta; rules without any, and evaluation from the start, have variant 0."""
    if clause.rule is None or not clause.rule.plan:
        return ()
    variant = clause.recursive_goals.index(goal) if goal in clause.recursive_goals else 0
    order = tuple(position - 1 for position in clause.rule.plan.get(variant, ()))
    # Aggregates add scans that a plan does not know; then it cannot be obeyed.
    return order if len(order) == len(clause.scans) else ()


def _plan(
    clause: Clause,
    start: int | None,
    statistics: Statistics,
    results: tuple[str | Constant, ...],
    hint: tuple[int, ...] = (),
    from_head: bool = False,
    is_sought: bool = False,
) -> steps.Variant:
    is_sought = is_sought or from_head
    bound = {term for term in clause.head_terms if isinstance(term, str)} if from_head else set[str]()
    visits = order_goals(clause, start, bound, statistics, hint, solves=is_sought)
    return lay_out(clause, visits, results, from_head=from_head, is_sought=is_sought)


# --- slots -----------------------------------------------------------------------------------------------------------

HEAD_ROW = "@head"
"""The name under which backward evaluation carries the row number of the head."""

_BODY_ROW = "@body"


def body_row(scan: int) -> str:
    """The name under which the row number of a scan's fact is carried, when derivations are wanted."""
    return f"{_BODY_ROW}{scan}"


@dataclass(slots=True)
class _Draft:
    """A step before its layout is known: what it binds, and its actions in terms of names."""

    goal: int | None
    tests: tuple[tuple[Ready, Test], ...]
    given: list[str]  # names that tests give a value
    reads: set[str]  # names that its own actions read
    taken: dict[str, int] = field(default_factory=dict)  # name -> column of the relation
    key: list[tuple[int, str]] = field(default_factory=list)  # column of the relation, name
    fills: dict[str, Constant] = field(default_factory=dict)  # for the *next* step's key
    same: list[tuple[str, str]] = field(default_factory=list)  # names that must hold the same word
    fixed: list[tuple[str, Constant]] = field(default_factory=list)  # names that must hold a constant


@dataclass(slots=True)
class _Layout:
    """Where names are after a step, and how they get there: columns of the rows before, and of the fact, with the slots
    they go to, constants, and results that stand twice."""

    width: int
    slots: dict[str, int] = field(default_factory=dict)
    keep: list[tuple[int, int]] = field(default_factory=list)
    take: list[tuple[int, int]] = field(default_factory=list)
    fills: list[steps.Action] = field(default_factory=list)
    copies: list[steps.Action] = field(default_factory=list)


def lay_out(
    clause: Clause,
    visits: list[Visit],
    results: tuple[str | Constant, ...],
    *,
    from_head: bool = False,
    is_sought: bool = False,
) -> steps.Variant:
    """The variant that visits goals in this order. `is_sought`: what overflows leads to nothing."""
    drafts = _draft_all(clause, visits, results, from_head)
    needs = _needed_after(drafts, results)
    last = len(drafts) - 1
    start = visits[0].goal
    layout = _place(drafts[0], {}, needs[0], () if last else results)
    actions = _actions(drafts[0], layout, is_sought)
    relation = clause.head if from_head else None if start is None else _atom(clause, start).relation
    slots = layout.slots
    gather = steps.Gather(relation, start, tuple(layout.take), slots, layout.width, actions)
    probes = []
    for i, draft in enumerate(drafts[1:], 1):
        layout = _place(draft, slots, needs[i], results if i == last else ())
        assert draft.goal is not None
        atom = _atom(clause, draft.goal)
        probes.append(
            steps.Probe(
                relation=atom.relation,
                goal=draft.goal,
                is_negated=isinstance(atom, Absent),
                is_before=start is not None and draft.goal < start,
                key_columns=tuple([column for column, _ in draft.key]),
                key_slots=tuple([slots[name] for _, name in draft.key]),
                is_member=len(draft.key) == len(atom.terms),
                keep=tuple(layout.keep),
                take=tuple(layout.take),
                slots=layout.slots,
                width=layout.width,
                actions=_actions(draft, layout, is_sought),
            )
        )
        slots = layout.slots
    return steps.Variant(clause, gather, tuple(probes), results)


def _atom(clause: Clause, goal: int) -> Scan | Absent:
    atom = clause.goals[goal]
    assert not isinstance(atom, Test)
    return atom


# --- drafts, from the first step to the last -----------------------------------------------------------------------


def _draft_all(
    clause: Clause, visits: list[Visit], results: tuple[str | Constant, ...], from_head: bool
) -> list[_Draft]:
    rows = _wanted_rows(clause, results)
    known: set[str] = set()
    drafts: list[_Draft] = []
    for visit in visits:
        draft = _draft_tests(clause, visit)
        if drafts:
            assert visit.goal is not None
            _look_for(draft, visit.goal, _atom(clause, visit.goal).terms, known, drafts[-1])
        elif from_head:
            draft.taken[HEAD_ROW] = steps.ROW
            _take_columns(draft, clause.head_terms)
        if visit.goal is not None and (not drafts or isinstance(clause.goals[visit.goal], Scan)):
            _take_columns(draft, _atom(clause, visit.goal).terms)
            if visit.goal in rows:
                draft.taken[rows[visit.goal]] = steps.ROW
        known.update(draft.taken, draft.given)
        drafts.append(draft)
    return drafts


def _wanted_rows(clause: Clause, results: tuple[str | Constant, ...]) -> dict[int, str]:
    """The scans, by goal, whose rows are among the results, with the names of these."""
    wanted = {term for term in results if isinstance(term, str) and term.startswith(_BODY_ROW)}
    if not wanted:
        return {}
    scans = (i for i, goal in enumerate(clause.goals) if isinstance(goal, Scan))
    return {i: name for position, i in enumerate(scans) if (name := body_row(position)) in wanted}


def _draft_tests(clause: Clause, visit: Visit) -> _Draft:
    tests: list[tuple[Ready, Test]] = []
    given: list[str] = []
    reads: set[str] = set()
    for ready in visit.tests:
        test = clause.goals[ready.goal]
        assert isinstance(test, Test)
        tests.append((ready, test))
        given += [variable.name for variable in ready.gives]
        reads.update(names_in(test))
    return _Draft(visit.goal, tuple(tests), given, reads)


def _look_for(draft: _Draft, goal: int, terms: tuple[Term, ...], known: set[str], before: _Draft) -> None:
    """The key of a probe are its constants, which the step before puts down, and what is known."""
    for column, term in enumerate(terms):
        if isinstance(term, Constant):
            name = f"#{goal}.{column}"
            before.fills[name] = term
            draft.key.append((column, name))
        elif term in known and term is not None:
            draft.key.append((column, term))


def _take_columns(draft: _Draft, terms: tuple[Term, ...]) -> None:
    keyed = [column for column, _ in draft.key]
    for column, term in enumerate(terms):
        if term is None or column in keyed:
            continue
        if isinstance(term, Constant):
            name = f"#fixed{column}"
            draft.fixed.append((name, term))
            draft.reads.add(name)
        elif term in draft.taken:
            name = f"#again{column}"
            draft.same.append((term, name))
            draft.reads.update((term, name))
        else:
            name = term
        draft.taken[name] = column


# --- needs, from the last to the first -----------------------------------------------------------------------------


def _needed_after(drafts: list[_Draft], results: tuple[str | Constant, ...]) -> list[set[str]]:
    """What is still needed after each step."""
    later = {term for term in results if isinstance(term, str)}
    needs = [later]
    for draft in drafts[:0:-1]:
        later = later.union(draft.reads).difference(draft.taken, draft.given, draft.fills)
        later.update([name for _, name in draft.key])
        needs.append(later)
    needs.reverse()
    return needs


# --- slots, from the first to the last -----------------------------------------------------------------------------


def _place(draft: _Draft, before: Mapping[str, int], needed: set[str], results: tuple[str | Constant, ...]) -> _Layout:
    """Gives slots to the results, if they are those of this step, and to what it or a later one reads."""
    names: list[str] = [*before, *draft.taken]
    if draft.given or draft.fills:
        names += sorted({*draft.given, *draft.fills})
    wanted = needed.union(draft.reads, draft.fills).difference([term for term in results if isinstance(term, str)])
    order = [*results, *(name for name in dict.fromkeys(names) if name in wanted)]
    layout = _Layout(len(order))
    slots, taken = layout.slots, draft.taken
    for slot, name in enumerate(order):
        if isinstance(name, Constant):
            layout.fills.append(steps.Fill(slot, name))
        elif name in taken:
            layout.take.append((taken[name], slot))
            slots.setdefault(name, slot)
        elif name in before:
            layout.keep.append((before[name], slot))
            slots.setdefault(name, slot)
        elif name in slots:
            layout.copies.append(steps.Copy(slots[name], slot))
        else:
            slots[name] = slot
    return layout


# --- actions -------------------------------------------------------------------------------------------------------


def _actions(draft: _Draft, layout: _Layout, is_sought: bool) -> tuple[steps.Action, ...]:
    slots, actions = layout.slots, layout.fills
    actions += [steps.KeepConstant(slots[name], constant) for name, constant in draft.fixed]
    actions += [steps.KeepEqual(slots[left], slots[right]) for left, right in draft.same]
    actions += [steps.Fill(slots[name], constant) for name, constant in draft.fills.items()]
    for ready, test in draft.tests:
        if ready.is_apart:
            actions.append(_take_apart(test, ready, slots))
            continue
        found = ready.solution
        if found is not None:
            slot = slots[found.variable.name]
            actions.append(steps.Compute(slot, found.expression, drops_errors=True, is_sought=True))
        if found is None or not found.is_exact:
            binds = ready.gives[0].name if ready.gives and found is None else None
            # A derivation whose arithmetic overflows has not been made: rows for which it does lead to none.
            drops_errors = found is not None or (is_sought and can_fail(test))
            actions.append(_test_action(test, binds, slots, drops_errors))
    return (*actions, *layout.copies)


def _take_apart(goal: Test, apart: Ready, slots: dict[str, int]) -> steps.Action:
    assert isinstance(goal.left, Variable)
    assert isinstance(goal.right, Apply)
    unknown = {variable.name for variable in apart.gives}
    taken: list[tuple[int, int]] = []
    checked: list[tuple[int, int]] = []
    fixed: list[tuple[int, Constant]] = []
    for position, part in enumerate(goal.right.arguments):
        if isinstance(part, Constant):
            fixed.append((position, part))
        elif isinstance(part, Variable):
            # Of a variable that stands twice the second place is compared with the first.
            (taken if part.name in unknown else checked).append((position, slots[part.name]))
            unknown.discard(part.name)
    return steps.TakeApart(slots[goal.left.name], goal.right, tuple(taken), tuple(checked), tuple(fixed))


def _test_action(goal: Test, binds: str | None, slots: dict[str, int], drops_errors: bool) -> steps.Action:
    if binds is None:
        return steps.Keep(goal.operator, goal.base, goal.left, goal.right, drops_errors)
    is_left = isinstance(goal.left, Variable) and goal.left.name == binds
    expression: Expression = goal.right if is_left else goal.left
    if isinstance(expression, Apply) and expression.functor == "range":
        return steps.Generate(slots[binds], expression, drops_errors)
    return steps.Compute(slots[binds], expression, drops_errors)


# --- alternative plans -----------------------------------------------------------------------------------------------

_HANDICAP = 4
"""How many times less a fact must meet at first on another way that is long, of which only the plan knows the rest."""


def handicap(variant: steps.Variant) -> int:
    """How many times less a fact must meet in the first join of another way than in that of this one. After two joins
    both ways have found the same."""
    return 1 if len(variant.probes) == 2 else _HANDICAP


def first_key(variant: steps.Variant) -> tuple[int, ...] | None:
    """The columns of the fact which a variant starts at that its first join, by an index, looks for; None if it looks
    for anything else."""
    if not variant.probes or variant.probes[0].is_filter:
        return None
    column_of = {slot: column for column, slot in variant.gather.take}
    columns = tuple(column_of.get(slot, -1) for slot in variant.probes[0].key_slots)
    return columns if columns and min(columns) >= 0 and not variant.gather.actions else None


def other_ways(variant: steps.Variant, statistics: Statistics) -> Iterator[steps.Variant]:
    """Variants with the same start and results that join another goal first, the most promising first."""
    clause, start = variant.clause, variant.gather.goal
    if start is None or len(variant.probes) < 2 or first_key(variant) is None:
        return
    if clause.rule is not None and clause.rule.plan:
        return  # the user has said which way
    usual = variant.probes[0]
    if statistics.fanout(usual.relation, usual.key_columns) < SETTINGS.fork_fanout:
        return
    ways = [
        plan_by_way_of(variant, goal, statistics)
        for goal, literal in enumerate(clause.goals)
        if isinstance(literal, Scan) and goal not in (start, usual.goal)
    ]
    found = [way for way in ways if way.probes[0].goal != usual.goal and first_key(way) is not None]
    yield from sorted(found, key=lambda way: statistics.fanout(way.probes[0].relation, way.probes[0].key_columns))
