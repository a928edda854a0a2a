"""Bootstrap of one stratum: semi-naive evaluation with counts, on fresh relations (algorithms 3 and 4.2).

Explicit facts are the first rows of each relation. Every iteration appends what it finds, so the rows of a relation are
in order of level, the delta of an iteration is a range of rows, and "facts before it" is a bound on row numbers.

Strata that do not depend on each other may be evaluated in one round that several threads share: one of few rules over
few facts leaves them little to share. Another place may evaluate a stratum for the kernel, to its end or to where the
rounds get so small that the kernel is faster: then this goes on from what was begun there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies, bodies_of
from elastalog.backends.kernel.bootstrap.handover import Begun, Handover
from elastalog.backends.kernel.bootstrap.rounds import NO_LIMIT, ONE_ROUND, SettlingWorkers, Workers, first_progress
from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.backends.kernel.machine.plan import MachinePlan, start_of
from elastalog.planning.logical import Clause, LogicalStratum
from elastalog.planning.order import Statistics
from elastalog.planning.steps import Variant
from elastalog.planning.variants import plan_again, plan_from_goal, plan_full
from elastalog.settings import SETTINGS


class _Asked:
    """Statistics that note the relations of which they are asked."""

    def __init__(self, statistics: Statistics) -> None:
        self._statistics = statistics
        self.relations: set[str] = set()

    def rows(self, relation: str) -> float:
        self.relations.add(relation)
        return self._statistics.rows(relation)

    def fanout(self, relation: str, columns: tuple[int, ...]) -> float:
        self.relations.add(relation)
        return self._statistics.fanout(relation, columns)


class StratumVariants:
    """The variants of a stratum's clauses: those that run once, and those that follow a delta. What a recursive stratum
    will hold is not known beforehand, so its plans are made anew as it grows, but for those which do not depend on
    that: `_provisional` are the places of the others among those that follow a delta."""

    def __init__(self, stratum: LogicalStratum, binder: Binder, plans: dict[Any, Any] | None = None) -> None:
        """`plans`: those that were made for like sizes, also in other sessions of the program."""
        self._stratum = stratum
        self._relations = binder.relations
        self.binder = binder
        self._statistics = binder.statistics
        self._plans: dict[Any, Any] = {} if plans is None else plans
        sizes = binder.statistics.small_sizes((*stratum.relations, *sorted(stratum.reads)))
        # Of the plans, and of the code of the bodies as long as these are planned so.
        self._key = None if sizes is None else (stratum.number, sizes)
        once, by_delta, self._provisional = self._planned()
        self.once = [binder.bind(plan) for plan in once]
        self.by_delta = [binder.bind(plan) for plan in by_delta]
        self._bodies = [*self.once]
        self._are_bodies_old = True
        self._planned_size = self._size()
        self._read_sizes = self._sizes_read()

    def _planned(self) -> tuple[list[Variant], list[Variant], list[int]]:
        """The plans of clauses that run once, of those that follow a delta, and which of the latter are provisional."""
        stratum, statistics = self._stratum, self._statistics
        if self._key in self._plans:
            found: tuple[list[Variant], list[Variant], list[int]] = self._plans[self._key]
            return found
        once = [plan_full(clause, statistics) for clause in stratum.clauses if not clause.is_recursive]
        by_delta: list[Variant] = []
        provisional: list[int] = []
        for clause in stratum.clauses:
            for goal in clause.recursive_goals:
                asked = _Asked(statistics)
                by_delta.append(plan_from_goal(clause, goal, asked))
                if not asked.relations.isdisjoint(stratum.relations):
                    provisional.append(len(by_delta) - 1)
        if self._key is not None:
            self._plans[self._key] = once, by_delta, provisional
        return once, by_delta, provisional

    def __iter__(self) -> Iterator[BoundVariant]:
        yield from self.once
        yield from self.by_delta

    @property
    def bodies(self) -> list[BoundVariant]:
        """All variants; those that follow a delta and differ in their heads only as one."""
        if self._are_bodies_old:
            shared = bodies_of(self.by_delta, self.binder, self._bodies)
            self._bodies = [*self._bodies[: len(self.once)], *shared]
            self._are_bodies_old = False
        return self._bodies

    @property
    def laid_out(self) -> StratumBodies:
        """The bodies for the machine."""
        number, own = self._stratum.number, self._stratum.relations
        return StratumBodies(number, own, self.bodies, self.binder, self._plans, self._key)

    def left_code(self) -> tuple[list[list[Clause]], MachinePlan] | None:
        """A plan that the last evaluation has left, if others can use it, and the clauses of its bodies, in their
        order."""
        left: list[MachinePlan] = self._plans.get((self._key, True, 0), [])
        if self._key is None or not left:
            return None
        own = self._stratum.relations
        bodies = sorted(self.bodies, key=lambda body: start_of(body) not in own)
        return [[one.clause for one in body.each] for body in bodies], left[-1].copied()

    def _size(self) -> int:
        return sum(self._relations[name].used for name in self._stratum.relations)

    def _sizes_read(self) -> list[int]:
        return [self._relations[name].used for name in sorted(self._stratum.reads)]

    def suit(self, stratum: LogicalStratum) -> bool:
        """Whether the plans are still good: the rules are the same, those relations that they read have about the sizes
        for which the plans were made, and their own are not larger: what has become less may become as much again."""
        if stratum is not self._stratum or self.still_planned_for < 0:
            return False
        pairs = zip(self._read_sizes, self._sizes_read(), strict=True)
        return all(max(pair) <= SETTINGS.replan_growth * min(pair) + SETTINGS.replan_slack for pair in pairs)

    def restart(self) -> None:
        """Nothing has been derived by these variants yet."""
        for variant in self:
            variant.derivations, variant.rows, variant.start_rows, variant.seconds = 0, 0, 0, 0.0

    def indexes_of(self, relation: str) -> set[tuple[int, ...]]:
        """The columns by which the variants that follow a delta look facts of a relation up."""
        probes = (probe for variant in self.by_delta for probe in variant.probes)
        return {p.key_columns for p in probes if p.relation == relation and p.key_columns and not p.is_member}

    @property
    def still_planned_for(self) -> int:
        """How many more facts the plans are good for."""
        return SETTINGS.replan_growth * self._planned_size + SETTINGS.replan_slack - self._size()

    def adapt(self) -> None:
        """Plans the variants that follow a delta anew, if the stratum has grown much since they were planned."""
        if self.still_planned_for > 0:
            return
        self._planned_size = self._size()
        for i in self._provisional:
            variant = self.by_delta[i]
            planned = plan_again(variant.planned, self._statistics)
            if planned is not variant.planned:
                renewed = self.by_delta[i] = self.binder.bind(planned)
                renewed.derivations, renewed.rows = variant.derivations, variant.rows
                renewed.start_rows, renewed.seconds = variant.start_rows, variant.seconds
                self._are_bodies_old, self._key = True, None
        used = {(probe.relation, probe.key_columns) for variant in self.by_delta for probe in variant.probes}
        for name in self._stratum.relations:
            self._relations[name].keep_indexes([columns for relation, columns in used if relation == name])


def evaluate(
    stratum: LogicalStratum,
    variants: StratumVariants,
    workers: Workers,
    limits: Mapping[str, int] | None = None,
    begun: Begun | None = None,
    handover: Handover | None = None,
) -> bool:
    """Brings the relations of a stratum, which hold their explicit facts, or what has `begun`, to the fixpoint: all
    bootstraps do. Compiled code runs rounds, and is left to make plans anew, to settle what a round has found, or to
    ask another place whether it goes on, by `handover`. False if it stopped before, because a relation has as many
    facts as `limits` allows it (`.limitsize`)."""
    own = [workers.relations[name] for name in stratum.relations]
    settling = workers if isinstance(workers, SettlingWorkers) else None
    if settling is not None:
        settling.settle(0)
    progress = first_progress(own) if begun is None else begun.progress
    is_limited = limits is not None and not limits.keys().isdisjoint(stratum.relations)
    is_one_by_one = settling is not None or is_limited or not variants.by_delta
    is_complete = True
    rounds = None
    while not progress.is_done:
        rounds = workers.rounds(variants.laid_out, progress, rounds)
        most = ONE_ROUND if is_one_by_one else variants.still_planned_for
        progress = rounds.run_from(progress, most if handover is None else min(most, handover.until))
        if settling is not None:
            progress = settling.settled(own, progress)
        if progress.is_done or not variants.by_delta:
            break
        variants.adapt()
        if is_limited and any(each.used >= (limits or {}).get(each.name, NO_LIMIT) for each in own):
            is_complete = False
            break
        if handover is not None and (after := handover.offer(progress)) is not None:
            progress, handover = after, None
    if settling is not None:
        settling.finish()
    if rounds is not None:
        rounds.give_back()
    for relation in own:
        relation.present = relation.used
        relation.trim()
    return is_complete


_SPARSE = 8
"""A set table that was made for this many times the facts that came is made anew when it is needed."""


def strata_beside(strata: Sequence[LogicalStratum], is_plain: Callable[[LogicalStratum], bool]) -> list[LogicalStratum]:
    """The first of some strata in their order, and those that can be evaluated together with it: plain ones, which need
    one round and nothing else, and read nothing that is still to be evaluated."""
    found: list[LogicalStratum] = []
    waiting: set[str] = set()
    for stratum in strata:
        if is_plain(stratum) and waiting.isdisjoint(stratum.reads):
            found.append(stratum)
        waiting.update(stratum.relations)
    return found


def evaluate_together(
    strata: Mapping[int, LogicalStratum], variants: Mapping[int, StratumVariants], workers: Workers
) -> dict[int, int]:
    """Brings plain strata, whose relations hold their explicit facts and have no annotations, to their fixpoints.
    Returns the derivations of each, by number."""
    relations, watch = workers.relations, workers.watch
    own = [relations[name] for stratum in strata.values() for name in stratum.relations]
    before = {relation.name: relation.used for relation in own}
    bodies = [variant for number in strata for variant in variants[number].once]
    binder = variants[next(iter(strata))].binder
    workers.run_round(StratumBodies(-1, list(before), bodies, binder), first_progress(own))
    watch.rounds += len(strata) - 1  # as if each had had its own
    for number, stratum in strata.items():
        watch.tell(number, 1, sum(relations[name].used - before[name] for name in stratum.relations))
    for relation in own:
        relation.present = relation.used
        relation.trim()
        if _SPARSE * relation.used < relation.full:
            relation.forget_table()
    return {number: sum(variant.derivations for variant in variants[number]) for number in strata}
