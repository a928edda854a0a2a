"""The elastic choice: what an update of a stratum may cost, and whether to try it at all.

It is the problem of rent or buy: an update costs more the longer it goes on, a bootstrap costs once. All is counted, in
derivations, rows and rounds, never in time, so that the same updates lead to the same choices. With the budget `auto`,
an update of which nothing is known may cost as much as a bootstrap: then both together cost twice the better of the two
at most, whatever comes. What is known is one number for each size class, the moving average of what such updates took:

- what a larger update changes at least follows from how deep the facts are that rest on it, also where nothing like it
  was seen (see `experience`);
- an update that should cost less than a bootstrap may cost SLACK times what it should, a bootstrap at least, and no
  more than the guarantee allows;
- one that should cost more is not tried, on *credit*, or on debts where its like was seen; or else given up at the
  least share that the guarantee allows.

An update that was abandoned gives credit, the more the further it had come, not to try others like it. So the work on a
stratum is never more than FACTOR times that of the better choice, in sum over its epochs. An update abandoned at s
bootstraps has cost s + 1 of them, where the better choice costs s at least, 1 if s is more: its credit is what is left
of FACTOR times that. As much is left of the first bootstrap, without which there would be nothing: that allows for
debts. Updates that should be hopeless, and are, cost FACTOR / (FACTOR - 1) of the
better choice. To begin a bootstrap costs something too, as much as a few thousand derivations: updates that take no
more are never abandoned.

A number as budget is a fixed share of the last bootstrap, beyond which every update is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from elastalog.backends.protocol import Driven, Small, costs_of
from elastalog.backends.watch import WITH_REST
from elastalog.diagnostics.messages import counted
from elastalog.evaluation.experience import (
    HALF_SURE,
    LEAST_TO_WEIGH,
    Bootstrap,
    Difference,
    Expectation,
    Experience,
    Features,
    observe,
)
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum, shown_names
from elastalog.settings import SETTINGS

Budget: TypeAlias = float | Literal["auto"] | None
"""The share of the last bootstrap that an update may cost; None: updates are never abandoned."""

AUTO: Final = "auto"

FACTOR: Final = 8
"""Upper bound on the total cost over the epochs of a stratum, relative to the better choice."""

LEAST_END: Final = 1 / (FACTOR - 1)
"""The least share of a bootstrap after which an update may be abandoned. Abandoned at t it has cost t + 1, where the
better choice takes the lesser of t and 1 at least: FACTOR times that is enough from here on."""

LARGEST_END: Final = (FACTOR - 1) / WITH_REST
"""The largest: extended when all is lost (see `Watch.extend`) it allows FACTOR - 1, and then there is the bootstrap."""

SLACK: Final = 3.0
"""An update may cost this many times its estimate; from 2 to 4 the choice costs the same."""

_MOST_CREDIT = FACTOR - 1
"""Updates in a row that are not tried, and the most debt where no credit was earned: the present facts took a bootstrap
to make."""


class How(StrEnum):
    """How a stratum is brought up to date. In the first epoch: from its explicit facts (`bootstrap`). In an update: by
    its strategy, from what has changed (`update`); from its explicit facts again (`recompute`), or so after an update
    was begun and abandoned (`switch`). Aggregates and equivalences: groups and classes that changed are folded again
    (`refold`)."""

    BOOTSTRAP = "bootstrap"
    UPDATE = "update"
    RECOMPUTE = "recompute"
    SWITCH = "switch"
    REFOLD = "refold"


@dataclass(frozen=True, slots=True)
class Forecast:
    """The choice for one stratum. `expected`: the derivations that an update should take, None without experience, and
    `sure` how sure that is, from 0 to 1. `bootstrap`: the derivations that a bootstrap should take. `cost` and `other`:
    what the choice and its alternative should cost, in derivations of a usual bootstrap; None without experience."""

    stratum: int
    relations: tuple[str, ...]
    how: How
    why: str
    expected: float | None
    derivations_allowed: int | None
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
        what = "updated" if self.how is How.UPDATE else "recomputed"
        return f"{shown_names(self.relations)} would be {what}: {self.reason}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(slots=True)
class CostModel:
    """What is known of the strata, and the choices that follow from it."""

    budget: Budget
    _experience: dict[int, Experience] = field(default_factory=dict)
    _counted: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Of strata that were evaluated and not asked about since: what was counted."""
    _in_vain: set[int] = field(default_factory=set)
    """The few strata some updates of which were in vain."""
    small_updates: int = 0
    next_to_learn: int = 1
    """The updates that were too small to be chosen, and the one to be told of next."""
    _small: Small = field(default_factory=lambda: Small(0))

    def known(self, stratum: LogicalStratum) -> Experience:
        """What is known of a stratum."""
        found = self._known.get(stratum.number)
        return self._known.setdefault(stratum.number, Experience()) if found is None else found

    @property
    def _known(self) -> dict[int, Experience]:
        """What is known, by the numbers of strata."""
        known = self._experience
        while self._counted:
            number, counted = next(iter(self._counted.items()))
            known.setdefault(number, Experience()).bootstrap = Bootstrap.counted(*counted)
            del self._counted[number]  # last: Ctrl-C may come before
        return known

    # --- learning ---

    def bootstrapped(self, stratum: LogicalStratum, latest: Bootstrap) -> None:
        """Remembers what a bootstrap took."""
        self.known(stratum).bootstrap = latest

    def evaluated(self, stratum: LogicalStratum, *counted: int) -> None:
        """Remembers what was counted of a bootstrap (see `Bootstrap.counted`). Many a session is never updated, so that
        nothing is made of it now."""
        self._counted[stratum.number] = counted

    def updated(
        self,
        stratum: LogicalStratum,
        features: Features,
        derivations: int,
        steps: int = 0,
        touched: int | None = None,
        helped: int = 0,
    ) -> None:
        """Remembers what an update cost, in how many steps (see `experience`), how many facts it touched, if that is
        known, and how many steps other threads spared it."""
        known = self.known(stratum)
        known.observe(features, derivations, steps, touched)
        left = steps / max(steps + helped, 1) if helped else 1.0
        known.difference = Difference(features, touched, left) if touched and features.facts else None
        if derivations > SETTINGS.least_budget and known.weight * derivations > cost_anew(known, features):
            self._give_credit(stratum, features, derivations)

    def driven(self, done: Driven, is_loss: bool) -> None:
        """Remembers what updates cost that were too small to be chosen one by one; of many a sample is enough."""
        number = self.small_updates
        sample = 1 if number < SETTINGS.many_small_updates else SETTINGS.small_update_sample
        self.next_to_learn = number - number % sample + sample
        every = self._known
        for place, changes, derivations, rows, effort, touched in costs_of(done):
            stratum = done[0][place]
            if not stratum.clauses:
                continue
            known = every.get(stratum.number) or self.known(stratum)
            # Most tell nothing but what those of their size take.
            if effort < LEAST_TO_WEIGH:
                observe(known.sizes, changes, is_loss, effort)
                known.difference = None
            else:
                self.updated(stratum, Features(changes, is_loss), effort, derivations + rows, touched or None)

    def abandoned(self, stratum: LogicalStratum, features: Features, derivations: int) -> None:
        """Remembers that an update cost more than it was allowed."""
        self.known(stratum).observe_least(features, derivations)
        self._give_credit(stratum, features, derivations)

    def rebuilt(self, stratum: LogicalStratum, features: Features, other: int) -> None:
        """Remembers that a stratum was evaluated anew instead of being updated, and how many of its facts are not as
        they were; 0 if that is not known."""
        self.known(stratum).difference = Difference(features, other) if other else None

    def _give_credit(self, stratum: LogicalStratum, features: Features, derivations: int) -> None:
        """An update was abandoned after this many derivations, or had better been."""
        known = self.known(stratum)
        share = known.weight * derivations / max(cost_anew(known, features), 1)
        left = FACTOR * min(share, 1.0) - (share + 1)
        known.credit = min(known.credit + max(left, 0.0), _MOST_CREDIT)
        self._in_vain.add(stratum.number)

    # --- choosing ---

    def least_budget(self, known: Experience) -> int | None:
        """What an update that is tried in any case may cost whatever it changes: few spend more, and until then the
        choice can wait. None: it must be made now."""
        return SETTINGS.least_budget if self.budget == AUTO and not known.may_skip else None

    def small(self, done: list[Any]) -> Small | None:
        """The updates that need not be chosen one by one, for the same reason; they are noted in `done`. None: there
        are none."""
        if self.budget != AUTO:
            return None
        small = self._small
        small.done, small.derivations = done, SETTINGS.least_budget
        if self._in_vain or small.asked:
            small.asked = [number for number in self._in_vain if self._known[number].may_skip]
        return small

    def forecast(self, stratum: LogicalStratum, features: Features) -> Forecast:
        """The choice for an update."""
        known = self.known(stratum)
        expected, anew = known.expect(features), cost_anew(known, features)
        how, allowed = How.UPDATE, None
        if self.budget is None:
            why = "updates only"
        else:
            if self.budget != AUTO:
                derivations = self.budget * known.bootstrap_of(0).derivations
            else:
                share = _share_allowed(known, expected, anew)
                how, derivations = How.UPDATE if share else How.RECOMPUTE, share * anew / known.weight
            allowed = max(int(derivations), SETTINGS.least_budget)
            why = f"{counted(features.changes, 'changed input')}, {counted(allowed, 'derivation')} allowed"
        if how is How.RECOMPUTE:
            why, allowed = "an update should cost more", 0
        bootstrap = known.bootstrap_of(features.inputs).derivations
        if expected is None:
            return Forecast(stratum.number, stratum.relations, how, why, None, allowed, 0.0, bootstrap)
        updating = known.weight * expected.derivations
        cost, other = (anew, updating) if how is How.RECOMPUTE else (updating, anew)
        why = (
            f"{why}; about {counted(round(expected.derivations), 'derivation')} expected of an update,"
            f" {expected.sure:.0%} sure, which cost as much as {updating:,.0f} of a recompute,"
            f" which should cost {anew:,.0f}"
        )
        return Forecast(
            stratum.number, stratum.relations, how, why, expected.derivations, allowed, expected.sure, bootstrap,
            cost, other,
        )  # fmt: skip

    def choose(self, stratum: LogicalStratum, features: Features) -> Forecast:
        """The forecast, taken: a hopeless update is skipped, but not for ever, since what was learnt may no longer
        hold."""
        forecast = self.forecast(stratum, features)
        if forecast.how is How.RECOMPUTE:
            self._known[stratum.number].credit -= 1
        return forecast

    # --- keeping ---

    def learnt(self, strata: Iterable[int] | None = None) -> dict[str, Any]:
        """What is known of some strata, or of all, by number: a JSON value that a store can keep."""
        return {
            str(number): known.as_json()
            for number in (self._known if strata is None else strata)
            if (known := self._known.get(number)) is not None
        }

    def recall(self, learnt: Mapping[str, Any]) -> None:
        """Remembers what a store has kept."""
        for number, kept in learnt.items():
            known = self._known[int(number)] = Experience.of_json(kept)
            if known.may_skip:
                self._in_vain.add(int(number))

    def copy(self) -> CostModel:
        """What is known now, to come back to."""
        known = {number: known.copy() for number, known in self._known.items()}
        return CostModel(self.budget, known, _in_vain={*self._in_vain})

    def become(self, other: CostModel) -> None:
        """Knows what another model knows, and nothing else."""
        copied = other.copy()
        self._counted.clear()
        self._experience, self._in_vain = copied._experience, copied._in_vain

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Strata have other numbers now; those that have none are forgotten."""
        self._experience = {numbers[number]: known for number, known in self._known.items() if number in numbers}
        self._in_vain = {numbers[number] for number in self._in_vain if number in numbers}

    def forget_rates(self, before: CostModel, numbers: Mapping[int, int]) -> None:
        """Forgets what was learnt about updates since `before`, whose strata had other `numbers`: a rule that came or
        went says nothing about facts."""
        earlier = {numbers[number]: known for number, known in before._known.items() if number in numbers}
        for number, known in self._known.items():
            known.forget_updates(earlier.get(number, Experience()))
            if known.may_skip:
                self._in_vain.add(number)


def cost_anew(known: Experience, features: Features) -> float:
    """What evaluating a stratum anew should cost, by what was learnt of it."""
    return known.bootstrap_of(features.inputs).rebuild_cost(features.facts)


def _share_allowed(known: Experience, expected: Expectation | None, anew: float) -> float:
    """The share of a bootstrap that an update may cost; 0: it is not even tried."""
    if expected is None:
        return 1.0
    share = known.weight * expected.derivations / max(anew, 1)
    if share <= 1:
        return min(max(SLACK * share, 1.0), LARGEST_END)
    # What is well known is worth debts.
    price = 1 - _MOST_CREDIT if expected.sure >= HALF_SURE else 1
    return 0.0 if known.credit >= price else LEAST_END
