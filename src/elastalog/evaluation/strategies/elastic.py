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

import time
from typing import ClassVar

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Backend, Done, Maintenance, Reach
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.evaluation.costs import AUTO, Budget, CostModel, Forecast
from elastalog.evaluation.strategies.first_epoch import evaluate_all
from elastalog.evaluation.strategies.protocol import REBUILT, StratumWork, Work
from elastalog.planning.logical import LogicalStratum


class Elastic:
    name: ClassVar[str] = "elastic"
    annotation: ClassVar[Annotation] = Annotation()

    def __init__(self, watch: Watch, budget: Budget = AUTO) -> None:
        self.watch = watch
        self.costs = CostModel(budget)

    def bootstrap(self, backend: Backend) -> Work:
        def remember(stratum: LogicalStratum, derivations: int, seconds: float) -> None:
            self.costs.bootstrapped(stratum, derivations, seconds, _inputs_of(backend, stratum))

        return evaluate_all(backend, remember)

    def update(self, backend: Backend) -> Work:
        work = Work()
        for stratum, reach in backend.changes.affected(self.costs.small()):
            if reach.done is None:
                work.strata.append(self.update_stratum(backend, stratum, reach))
            else:
                work.strata.append(self._note(stratum, reach.changes, reach.done))
        return work

    def _note(self, stratum: LogicalStratum, changes: int, done: Done) -> StratumWork:
        """An update so small that nobody had to choose."""
        known = self.costs.updated(stratum, changes, done.effort)
        why = _why(f"{changes:,} changed inputs", done.effort, known.bootstrap_of(0))
        return StratumWork(stratum.number, stratum.relations, "update", why, done.derivations, done.seconds)

    def forecast(self, stratum: LogicalStratum, changes: int) -> Forecast:
        return self.costs.forecast(stratum, changes)

    def update_stratum(self, backend: Backend, stratum: LogicalStratum, reach: Reach) -> StratumWork:
        began, before = time.perf_counter(), self.watch.derivations
        if reach.must_rebuild:
            how, why = REBUILT
        elif stratum.is_folded:
            backend.refold(stratum)
            how, why = "refold", "classes" if stratum.aggregate is None else "an aggregate"
        else:
            how, why = self._try_update(backend, stratum, reach.changes)
        if how in ("bootstrap", "switch"):
            again = time.perf_counter()
            derivations = backend.rebuild(stratum)
            inputs = _inputs_of(backend, stratum)
            self.costs.bootstrapped(stratum, derivations, time.perf_counter() - again, inputs)
            if how == "switch":
                why = f"{why}, a bootstrap took {derivations:,}"
        derivations = self.watch.derivations - before
        return StratumWork(stratum.number, stratum.relations, how, why, derivations, time.perf_counter() - began)

    def _try_update(self, backend: Backend, stratum: LogicalStratum, changes: int) -> tuple[str, str]:
        """Maintains a stratum if that is the choice, within what it may cost. Returns how it went, and why."""
        costs, watch = self.costs, self.watch
        known = costs.known(stratum)
        forecast: Forecast | None = None
        inputs = 0

        def choose() -> int | None:
            nonlocal forecast, inputs
            inputs = _inputs_of(backend, stratum)
            forecast = costs.choose(stratum, changes, inputs)
            return forecast.derivations_allowed

        least = costs.least_budget(known)
        if least is not None:
            watch.allow(least, choose)
        else:
            allowed = choose()
            if forecast is not None and forecast.how == "bootstrap":
                return forecast.how, forecast.why
            watch.allow(allowed)
        effort = watch.effort
        try:
            backend.maintain(stratum, maintain, is_portable=True)
        except BudgetExceeded as exceeded:
            spent = watch.effort - effort
            costs.abandoned(stratum, changes, spent, inputs)
            return "switch", str(exceeded) or f"the update cost more than {spent:,} derivations"
        finally:
            watch.allow(None)
        spent = watch.effort - effort
        costs.updated(stratum, changes, spent, inputs)
        why = f"{changes:,} changed inputs" if forecast is None else forecast.why
        return "update", _why(why, spent, known.bootstrap_of(inputs))


def _why(why: str, spent: int, bootstrap: int) -> str:
    return f"{why}; it cost {spent:,}, a bootstrap takes {bootstrap:,}"


def _inputs_of(backend: Backend, stratum: LogicalStratum) -> int:
    """How many facts a stratum reads."""
    return sum(map(backend.changes.size, stratum.reads))


def maintain(stratum: Maintenance) -> None:
    """The delta-driven Update: losses to their end, then gains in the order of their levels."""
    stratum.update()
