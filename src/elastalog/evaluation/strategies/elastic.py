"""Elastic: small changes are followed through the derivations they touch, large ones are evaluated anew, stratum by
stratum.

Invariant (the sparse state of the papers, exact after every epoch): an explicit fact t has level(t) = 0 and count(t) =
1; every other fact of the materialisation has

    level(t) = 1 + min over derivations d of t of max { level(f) : f in body(d) },
    count(t) = | { d : 1 + max level(body(d)) = level(t) } |,

where facts of lower strata count as level 0 (local levels) or as their own level (global levels: level(t) is then the
height of the lowest proof of t).

An update of a stratum has a budget (see `evaluation.costs`). Beyond it, the stratum alone is abandoned and
bootstrapped; the strata above see only what changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.protocol import Backend, Driven, Maintenance, costs_of
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.costs import AUTO, Budget, CostModel, Forecast, How
from elastalog.evaluation.experience import LEAST_TO_WEIGH, Bootstrap, Features
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.protocol import Counters, StratumWork, Work, evaluate_all
from elastalog.planning.logical import LogicalStratum

_UNUSED = Counters()


class Elastic(Strategy):
    name: ClassVar[str] = "elastic"
    annotation: ClassVar[Annotation] = Annotation()

    def __init__(self, watch: Watch, budget: Budget = AUTO) -> None:
        super().__init__(watch, budget)
        self._write = partial(_written_down, self.costs)

    def bootstrap(self, backend: Backend) -> Work:
        watch, stored, evaluated = self.watch, backend.stored, self.costs.evaluated
        rows, rounds, spared = self._counted()

        def remember(stratum: LogicalStratum, derivations: int) -> None:
            nonlocal rows, rounds, spared
            if not stratum.clauses and not stratum.is_folded:
                return  # there is no choice, and nothing was counted
            now, ended, helped = watch.rows, watch.rounds, watch.spared
            counted = now - rows, ended - rounds, helped - spared
            evaluated(stratum, sum(map(stored, stratum.reads)), derivations, *counted)
            rows, rounds, spared = now, ended, helped

        return evaluate_all(backend, remember)

    def update(self, backend: Backend) -> Work:
        costs = self.costs
        done: list[StratumWork | Driven] = []
        for stratum, reach in backend.changes.affected(costs.small(done)):
            done.append(self.update_stratum(backend, stratum, reach, _UNUSED))
        for part in done:
            if type(part) is tuple:
                costs.small_updates += 1
                if costs.small_updates >= costs.next_to_learn or part[2] >= LEAST_TO_WEIGH:
                    costs.driven(part, is_mostly_loss(backend))
        return Work(done, None, self._write)

    def forecast(self, backend: Backend, stratum: LogicalStratum, changes: int, *, is_loss: bool) -> Forecast:
        return self.costs.forecast(stratum, features_of(backend, stratum, changes, is_loss))

    def rebuild(self, backend: Backend, stratum: LogicalStratum, changes: int, work: StratumWork) -> None:
        """Evaluates a stratum anew; `work` says what it has cost until now, and what the update should."""
        costs, watch = self.costs, self.watch
        before, touched = self._counted(), watch.touched
        features = features_of(backend, stratum, changes, is_mostly_loss(backend))
        derivations = backend.rebuild(stratum)
        counted_since = (now - then for now, then in zip(self._counted(), before, strict=True))
        done = Bootstrap.counted(features.inputs, derivations, *counted_since)
        costs.bootstrapped(stratum, done)
        costs.rebuilt(stratum, features, watch.touched - touched)
        work.cost = round(done.rebuild_cost(features.facts) + (work.cost or 0))
        if work.how is How.SWITCH:
            work.reason = f"{work.reason}, a bootstrap took {derivations:,}"
        if work.other is not None:
            work.reason = f"{work.reason}; it cost {work.cost:,.0f}, an update should have cost {work.other:,.0f}"

    def update_rules(
        self, backend: Backend, stratum: LogicalStratum, changes: int, work: StratumWork, counters: Counters
    ) -> None:
        """Maintains a stratum if that is the choice, within what it may cost. Says in `work` how it went."""
        costs, watch = self.costs, self.watch
        known = costs.known(stratum)
        least = costs.least_budget(known)
        forecast: Forecast | None = None
        is_loss = is_mostly_loss(backend)
        features = Features(changes, is_loss)

        def choose() -> int | None:
            nonlocal forecast, features
            features = features_of(backend, stratum, changes, is_loss)
            forecast = costs.choose(stratum, features)
            return forecast.derivations_allowed

        if least is not None:
            watch.allow(least, choose, is_extended=True)
        else:
            allowed = choose()
            if forecast is not None and forecast.how is How.RECOMPUTE:
                _skip(work, forecast)
                return
            watch.allow(allowed, is_extended=costs.budget == AUTO)
        effort, steps, touched, helped = watch.effort, watch.steps, watch.touched, watch.helped
        try:
            backend.maintain(stratum, maintain, is_portable=True)
        except BudgetExceeded as exceeded:
            spent = watch.effort - effort
            work.cost = round(known.weight * spent)
            if forecast is not None and forecast.how is How.RECOMPUTE:
                _skip(work, forecast)
                return
            costs.abandoned(stratum, features, spent)
            work.how, work.reason = (
                How.SWITCH,
                str(exceeded) or f"the update cost more than {counted(spent, 'derivation')}",
            )
            expected = None if forecast is None else forecast.cost if forecast.how is How.UPDATE else forecast.other
            work.other = max(round(expected or 0), work.cost)
            return
        finally:
            watch.allow(None)
        spent = watch.effort - effort
        others = watch.touched - touched or None, watch.helped - helped
        costs.updated(stratum, features, spent, watch.steps - steps, *others)
        work.how, work.reason = How.UPDATE, counted(changes, "changed input") if forecast is None else forecast.why
        _tell(work, known.weight, known.bootstrap_of(features.inputs), features.facts, spent)

    def _counted(self) -> tuple[int, int, int]:
        """The rows and rounds of evaluations from the start, until now, and what threads have spared them."""
        return self.watch.rows, self.watch.rounds, self.watch.spared


def _skip(work: StratumWork, forecast: Forecast) -> None:
    """Notes that an update was not tried, or hardly."""
    work.how, work.reason = forecast.how, forecast.why
    work.other = None if forecast.other is None else round(forecast.other)


def _tell(work: StratumWork, weight: float, bootstrap: Bootstrap, facts: int, spent: int) -> None:
    """Notes what an update took and cost, and what a bootstrap should have."""
    work.spent, work.bootstrap = spent, bootstrap.derivations
    work.cost = round(weight * spent)
    work.other = round(bootstrap.rebuild_cost(facts))


def _written_down(costs: CostModel, driven: StratumWork | Driven) -> list[StratumWork]:
    """The work of small updates, with what is known by now of strata that have rules. The clock was not read in
    between: strata share the time by the changes that reached them and the rows that they looked at."""
    if isinstance(driven, StratumWork):
        return [driven]
    (strata, _, _, seconds_of_all), each = driven, costs_of(driven)
    share = seconds_of_all / (sum([changes + rows for _, changes, _, rows, *_ in each]) or 1)
    found = []
    for place, changes, derivations, rows, effort, _ in each:
        stratum, seconds = strata[place], share * (changes + rows)
        why = counted(changes, "changed input") if stratum.clauses else "explicit facts"
        work = StratumWork(stratum.number, stratum.relations, How.UPDATE, why, derivations, seconds)
        if stratum.clauses:
            known = costs.known(stratum)
            _tell(work, known.weight, known.bootstrap_of(0), 0, effort)
        found.append(work)
    return found


def is_mostly_loss(backend: Backend) -> bool:
    """Whether most explicit facts that the update under way changes go."""
    deleted, inserted = backend.changes.explicit()
    return sum(map(len, deleted.values())) > sum(map(len, inserted.values()))


def features_of(backend: Backend, stratum: LogicalStratum, changes: int, is_loss: bool) -> Features:
    """An update as a stratum meets it."""
    inputs, facts = _size_of(backend, stratum.reads), _size_of(backend, stratum.relations)
    levels = [backend.changes.levels(name) for name in stratum.relations]
    given, depth = sum(given for given, _ in levels), sum(whole for _, whole in levels) / max(facts, 1)
    return Features(changes, is_loss, inputs, facts, given, depth)


def _size_of(backend: Backend, relations: Iterable[str]) -> int:
    """How many facts some relations have now."""
    return sum(map(backend.changes.size, relations))


def maintain(stratum: Maintenance) -> None:
    """The delta-driven Update: losses to their end, then gains in the order of their levels."""
    stratum.update()


class Dense(Strategy):
    """Elastic, with the number of derivations of every fact at *every* level.

    Invariant (the dense state of the papers, exact after every epoch): a derivation fires at 1 + the highest first
    level of its body facts (facts of lower strata count as level 0), and

        counts(t)[k] = number of derivations of t that fire at k, for k ≥ 1,     counts(t)[0] = [t is explicit],
        first(t)     = the least k with counts(t)[k] > 0  =  level(t) of the sparse state.

    Losses go first: each old derivation through a fact that leaves its first level is taken off the counts of its head,
    and a head whose first count reaches 0 leaves its level in turn. A fact that left waits for its next non-zero level,
    without a search backwards; gains then settle in the order of their levels, and every derivation through a fact that
    settles moves from the level at which it fired before to that at which it fires now. Memory is the price: as many
    counts as levels at which facts are derived."""

    name: ClassVar[str] = "dense"
    annotation: ClassVar[Annotation] = Annotation(Support.VECTORS)

    def update_rules(
        self, backend: Backend, stratum: LogicalStratum, changes: int, work: StratumWork, counters: Counters
    ) -> None:
        backend.maintain(stratum, maintain, is_portable=False)
