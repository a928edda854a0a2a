"""The elastic choice: what an update of a stratum may cost, and whether to try it at all.

All is counted, in derivations, rows and rounds, never in time, so that the same updates lead to the same choices. With
the budget `auto` an update goes on while going on is expected to cost less than evaluating the stratum anew. Without
experience that is until it has cost as much as a bootstrap: then both together cost twice the better of the two at
most, whatever comes. Experience moves that end to where the whole should cost least (see `stopping`): far beyond a
bootstrap if the update should end before, to a seventh of one if it should not. And an update that was abandoned gives
*credit*, the more the further it had come, not to try others like it.

So the work on a stratum is never more than FACTOR times that of the better choice, in sum over its epochs. An update
abandoned at s bootstraps has cost s + 1 of them, where the better choice costs s at least, 1 if s is more: its credit
is what is left of FACTOR times that. As much is left of the first bootstrap, without which nobody could have done: that
allows for debts, where an update is far larger than one that was in vain, or undoes the last one. Updates that should
be hopeless, and are, cost FACTOR / (FACTOR - 1) of the better choice. To begin a bootstrap costs something too, as much
as a few thousand derivations: updates that take no more are never abandoned. All this is in terms of a bootstrap of
what there was: what a deletion loses need not be made again, so that it is allowed less at first (see
`likely_cost_anew`), and less the more it has lost (see `CostModel.left`), but for what FACTOR asks for.

A number as budget is a fixed share of the last bootstrap, beyond which every update is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from math import inf
from typing import Any, Final, Literal, TypeAlias

from elastalog.analysis.findings import counted
from elastalog.backends.protocol import Driven, Small
from elastalog.evaluation.experience import LEAST_TO_WEIGH, Experience
from elastalog.evaluation.past_updates import FAR, Difference, Expectation, Occasion, observe
from elastalog.evaluation.stopping import FACTOR, LEAST_END, best_end
from elastalog.evaluation.unit_costs import OF_FACT, WEIGHT, most_of_update
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.settings import SETTINGS

Budget: TypeAlias = float | Literal["auto"] | None
"""The share of the last bootstrap that an update may cost; None: updates are never abandoned."""

_MANY_SEEN, _ONE_IN = 64, 8
"""Once so many small updates have been seen, one in so many is learnt from: what they cost is known well enough."""

AUTO: Final = "auto"


_MOST_CREDIT = 16.0
"""Updates in a row that are not tried."""

_MOST_DEBT = FACTOR - 1
"""The same where no credit was earned: what there is somebody had to make first, as a bootstrap does."""

_FAILURES = 2
"""How many updates in a row must have been abandoned before one of their size is not tried, with a fixed budget."""

_TRUST = 3
"""How often in a row a forecast is believed before it is put to the test."""

_HOPELESS = 3.0
"""An expected cost beyond a fixed budget by this factor is not tried."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The choice for one stratum. `expected` is the number of derivations the model expects of an update, None without
    experience, and `sure` how sure it is of that, from 0 to 1. `bootstrap`: what a bootstrap should take. Both as
    `cost` and `other`: what the choice should cost, and the other one, in derivations of a bootstrap as they usually
    are; None without experience."""

    stratum: int
    relations: tuple[str, ...]
    how: str
    why: str
    expected: float | None
    derivations_allowed: int | None
    seconds_allowed: float | None
    sure: float = 0.0
    bootstrap: int | None = None
    cost: float | None = None
    other: float | None = None

    @property
    def reason(self) -> str:
        """Why, in a few words; `why` has the numbers that were weighed."""
        if self.expected is None or self.bootstrap is None:
            return self.why
        updating = f"an update should take about {counted(round(self.expected), 'derivation')}"
        return f"{updating}, a recompute about {self.bootstrap:,}"

    def __str__(self) -> str:
        what = "updated" if self.how == "update" else "recomputed"
        return f"{', '.join(self.relations)} would be {what}: {self.reason}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(slots=True)
class CostModel:
    """What is known of the strata, and the choices that follow from it."""

    budget: Budget
    _strata: dict[int, Experience] = field(default_factory=dict)
    _in_vain: set[int] = field(default_factory=set)
    """The strata that have had updates in vain: few of all."""
    _small_updates: int = 0

    def bootstrapped(
        self,
        stratum: LogicalStratum,
        derivations: int,
        seconds: float,
        inputs: int = 0,
        cost: float | None = None,
        rows: int = 0,
    ) -> None:
        """Remembers what a bootstrap took that read so many facts, 0 if that is not known, here and below; and what it
        cost (see `unit_costs`), if not just its derivations."""
        self.known(stratum).bootstrapped(derivations, seconds, inputs, derivations if cost is None else cost, rows)

    def known(self, stratum: LogicalStratum) -> Experience:
        """What is known of a stratum."""
        found = self._strata.get(stratum.number)
        return self._strata.setdefault(stratum.number, Experience()) if found is None else found

    def least_budget(self, known: Experience) -> int | None:
        """What an update may cost whatever it changes, if it is tried in any case: few spend more, and until one does
        the choice can wait. None: it must be made now."""
        return SETTINGS.least_budget if self.budget == AUTO and not known.may_skip else None

    def small(self) -> Small | None:
        """The updates that need not be chosen one by one, for the same reason; None: there are none."""
        if self.budget != AUTO:
            return None
        in_vain = self._in_vain
        asked = [number for number in in_vain if self._strata[number].may_skip] if in_vain else ()
        return Small(SETTINGS.least_budget, asked)

    def updated(
        self,
        stratum: LogicalStratum,
        occasion: Occasion,
        derivations: int,
        steps: int = 0,
        touched: int | None = None,
        lost: int | None = None,
    ) -> None:
        """Remembers what an update cost, in how many steps (see `unit_costs`), how many facts it touched, and how many
        of them were lost for good, if that is known."""
        known = self.known(stratum)
        known.observe(occasion, derivations, steps, touched)
        if touched is not None and lost is not None:
            known.observe_lost(touched, lost)
        known.skipped = 0
        known.difference = Difference(occasion, touched) if touched and occasion.before else None
        if derivations > SETTINGS.least_budget:
            anew = cost_anew(known, occasion)
            if update_cost(known, derivations) > anew:
                self._give_credit(stratum, occasion, derivations, anew)
                return
        known.succeed(occasion)

    def driven(self, done: Driven, is_loss: bool) -> None:
        """Remembers what the updates cost that nobody had to choose (see `small`)."""
        self._small_updates += 1
        if done.effort < LEAST_TO_WEIGH and self._small_updates > _MANY_SEEN and self._small_updates % _ONE_IN:
            return
        for place, changes, derivations, rows, effort, touched in done.costs:
            stratum = done.strata[place]
            if not stratum.clauses:
                continue
            known = self._strata.get(stratum.number) or self.known(stratum)
            # Most tell nothing but what those of their size take.
            is_usual = effort < LEAST_TO_WEIGH and effort <= known.bootstrap_derivations
            if is_usual and not known.failed_changes and not known.failed_losses:
                observe(known.sizes, changes, is_loss, effort)
                known.skipped, known.difference = 0, None
            else:
                self.updated(stratum, Occasion(changes, is_loss), effort, derivations + rows, touched or None)

    def abandoned(self, stratum: LogicalStratum, occasion: Occasion, derivations: int) -> None:
        """Remembers that an update cost more than it was allowed."""
        known = self.known(stratum)
        known.observe_least(occasion, derivations)
        known.skipped = 0
        self._give_credit(stratum, occasion, derivations, cost_anew(known, occasion))
        known.failures += 1

    def rebuilt(self, stratum: LogicalStratum, occasion: Occasion, other: int) -> None:
        """Remembers that a stratum was evaluated anew instead of being updated, and that so many of its facts are not
        as they were, 0 if nobody knows."""
        self.known(stratum).difference = Difference(occasion, other) if other else None

    def _give_credit(self, stratum: LogicalStratum, occasion: Occasion, derivations: int, anew: float) -> None:
        """An update has cost so many derivations and was abandoned, or had better been; `anew`: what a bootstrap
        costs."""
        known = self.known(stratum)
        known.fail(occasion)
        share = update_cost(known, derivations) / max(anew, 1)
        left = FACTOR * min(share, 1.0) - (share + 1)
        known.credit = min(known.credit + max(left, 0.0), _MOST_CREDIT)
        self._in_vain.add(stratum.number)

    def forecast(self, stratum: LogicalStratum, occasion: Occasion, spent: int = 0) -> Forecast:
        """The choice for an update, on which so many derivations are `spent` already."""
        known = self.known(stratum)
        expected, anew = known.expect(occasion), likely_cost_anew(known, occasion)
        if self.budget is None:
            choice = _Choice("update", "updates only", None)
        elif self.budget == AUTO:
            choice = _choose_freely(known, occasion, expected, anew, spent)
        else:
            choice = _choose_within(known, occasion, expected, self.budget)
        return _forecast(stratum, known, occasion, choice, expected, anew)

    def choose(self, stratum: LogicalStratum, occasion: Occasion, spent: int = 0) -> Forecast:
        """The forecast, taken: a hopeless update is skipped, but not for ever, since what was learnt may no longer
        hold."""
        forecast = self.forecast(stratum, occasion, spent)
        if forecast.how == "bootstrap":
            experience = self._strata[stratum.number]
            experience.skipped += 1
            if self.budget == AUTO:
                experience.credit -= 1
        return forecast

    def left(self, stratum: LogicalStratum, occasion: Occasion, allowed: int, lost: int) -> int:
        """What is left in all of the derivations that an update was `allowed`, when so many are lost for now, some of
        them for good. They were allowed in proportion to a bootstrap, and stay in proportion to what is left of one
        that reads as much as there was before, but for what the guarantee asks for."""
        known, anew = self.known(stratum), likely_cost_anew(self.known(stratum), occasion)
        was = known.bootstrap_of(occasion.before)
        lost_now = min(lost / max(was.derivations, 1), 1.0)
        # The fewer derivations there are, the fewer facts find others to come back by.
        back = (1 - known.share_lost) * (1 - lost_now)
        share = min(rebuild_cost((1 - (1 - back) * lost_now) * was.cost, occasion.facts) / anew, 1.0)
        return max(int(share * allowed), _least_allowed(known, occasion))

    def learnt(self, strata: Iterable[int] | None = None) -> dict[str, list[Any]]:
        """What is known of some strata, or of all, by number: a JSON value that a store can keep."""
        return {
            str(number): known.as_json()
            for number in (self._strata if strata is None else strata)
            if (known := self._strata.get(number)) is not None
        }

    def recall(self, learnt: Mapping[str, Sequence[Any]]) -> None:
        """Remembers what a store has kept."""
        for number, kept in learnt.items():
            known = self._strata[int(number)] = Experience.of_json(kept)
            if known.may_skip:
                self._in_vain.add(int(number))

    def copy(self) -> CostModel:
        """What is known now, to come back to."""
        return CostModel(
            self.budget, {number: known.copy() for number, known in self._strata.items()}, {*self._in_vain}
        )

    def become(self, other: CostModel) -> None:
        """Knows what another model knows, and nothing else."""
        copied = other.copy()
        self._strata, self._in_vain = copied._strata, copied._in_vain

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Strata have other numbers now; those that have none are forgotten."""
        self._strata = {numbers[number]: known for number, known in self._strata.items() if number in numbers}
        self._in_vain = {numbers[number] for number in self._in_vain if number in numbers}

    def forget_rates(self, before: CostModel, numbers: Mapping[int, int]) -> None:
        """Forgets what was learnt about updates since `before`, whose strata have had other `numbers`: a rule that came
        or went says nothing about facts."""
        earlier = {numbers[number]: known for number, known in before._strata.items() if number in numbers}
        for number, known in self._strata.items():
            known.forget_updates(earlier.get(number, Experience()))
            if known.may_skip:
                self._in_vain.add(number)


def update_cost(known: Experience, derivations: float) -> float:
    """What an update costs that takes so many derivations, by what was learnt of the stratum."""
    return known.weight * derivations


def rebuild_cost(bootstrap: float, facts: int) -> float:
    """What evaluating a stratum anew costs: a bootstrap, what it costs to begin, and to compare with the facts that it
    has."""
    return bootstrap + OF_FACT * facts + WEIGHT * SETTINGS.least_budget


def cost_anew(known: Experience, occasion: Occasion) -> float:
    """The same, by what was learnt of the stratum."""
    return rebuild_cost(known.bootstrap_of(occasion.inputs).cost, occasion.facts)


def likely_cost_anew(known: Experience, occasion: Occasion) -> float:
    """The same, less where it is likely to be less by what is lost. The guarantee is not in terms of that."""
    if not (occasion.is_loss and occasion.is_recursive):
        return cost_anew(known, occasion)
    return rebuild_cost(known.bootstrap_of(occasion.inputs).after_loss(occasion.inputs), occasion.facts)


def _least_allowed(known: Experience, occasion: Occasion) -> int:
    """The derivations that the guarantee asks for, whatever is expected."""
    return int(LEAST_END * cost_anew(known, occasion) / known.weight)


def lost_by_update(known: Experience, occasion: Occasion, anew: float) -> float:
    """The share of a bootstrap that need not be made again after an update that costs as much as one, by what was
    learnt: facts that are lost, of those that updates touch, are lost with their derivations. Nothing where half of
    them came back, or as long as no deletion has told."""
    surely = 2 * known.share_lost - 1
    if not occasion.is_loss or not known.touched or surely <= 0:
        return 0.0
    most = most_of_update(known.bootstrap_of(occasion.inputs).derivations, 0, is_loss=True)
    return surely * anew / known.weight / max(most, 1.0)


@dataclass(frozen=True, slots=True)
class _Choice:
    """How, why, and the derivations that are allowed."""

    how: str
    why: str
    allowed: int | None


def _choose_freely(
    known: Experience, occasion: Occasion, expected: Expectation | None, anew: float, spent: int
) -> _Choice:
    weight, changes = known.weight, occasion.changes
    end = best_end(expected, weight, max(anew, 1), spent, lost_by_update(known, occasion, anew))
    is_dear = expected is not None and end.cost > end.instead
    if is_dear and known.credit >= _price(known, occasion):
        return _Choice("bootstrap", "smaller updates were in vain", 0)
    return _update_within(changes, max(int(end.share * anew / weight), _least_allowed(known, occasion)))


def _price(known: Experience, occasion: Occasion) -> float:
    """The credit that it takes not to try an update; debts are for those that are far larger than one in vain, or undo
    the last one."""
    least, other = (known.least_in_vain(is_loss) for is_loss in (occasion.is_loss, not occasion.is_loss))
    if known.is_return(occasion) or occasion.changes >= FAR * min(least, other):
        return 1 - _MOST_DEBT
    return 1 if occasion.changes >= least else inf


def _choose_within(known: Experience, occasion: Occasion, expected: Expectation | None, budget: float) -> _Choice:
    allowed = max(int(budget * known.bootstrap_derivations), SETTINGS.least_budget)
    if known.skipped < _TRUST:
        least = min(known.least_in_vain(False), known.least_in_vain(True))
        if expected is not None and expected.derivations > _HOPELESS * allowed:
            return _Choice("bootstrap", f"{allowed:,} derivations allowed", allowed)
        if known.failures >= _FAILURES and occasion.changes >= least:
            return _Choice("bootstrap", f"updates of {least:,.0f} changes and more have cost too much lately", allowed)
    return _update_within(occasion.changes, allowed)


def _update_within(changes: int, derivations: int) -> _Choice:
    allowed = max(derivations, SETTINGS.least_budget)
    return _Choice("update", f"{counted(changes, 'changed input')}, {allowed:,} derivations allowed", allowed)


def _forecast(
    stratum: LogicalStratum,
    known: Experience,
    occasion: Occasion,
    choice: _Choice,
    expected: Expectation | None,
    anew: float,
) -> Forecast:
    how, why, bootstrap = choice.how, choice.why, known.bootstrap_of(occasion.inputs).derivations
    if expected is None:
        return Forecast(stratum.number, stratum.relations, how, why, None, choice.allowed, None, 0.0, bootstrap)
    likely = min(expected.derivations, max(expected.most, 1.0))
    updating = update_cost(known, likely)
    cost, other = (anew, updating) if how == "bootstrap" else (updating, anew)
    why = (
        f"{why}; about {likely:,.0f} derivations expected of an update, {expected.sure:.0%} sure, which cost as much as"
        f" {updating:,.0f} of a bootstrap, which should cost {anew:,.0f}"
    )
    return Forecast(
        stratum.number, stratum.relations, how, why, likely, choice.allowed, None, expected.sure, bootstrap, cost, other
    )
