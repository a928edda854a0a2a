"""The elastic choice: what an update of a stratum may cost, and whether to try it at all.

All is counted in derivations, never in time, so that the same updates lead to the same choices. With the budget `auto`
an update goes on while going on is expected to cost less than evaluating the stratum anew. Without experience that is
until it has cost as much as a bootstrap: then both together cost twice the better of the two at most, whatever comes.
Experience of updates of like size moves that end, the surer it is the further: to twice a bootstrap if the update
should end before, to a quarter of one if it should not. And an update that was abandoned gives *credit*, the more the
further it had come, not to try others like it.

What a bootstrap costs is what the last one did, in proportion to the facts that it reads now and read then if these are
far from as many.

So the work on a stratum is never more than FACTOR times that of the better choice, in sum over its epochs. An update
abandoned at s bootstraps has cost s + 1 of them, where the better choice costs s at least, 1 if s is more: its credit
is what is left of FACTOR times that. Updates that should be hopeless, and are, cost FACTOR / (FACTOR - 1) of the better
choice. To begin a bootstrap costs something too, as much as a few thousand derivations: updates that take no more are
never abandoned.

A number as budget is a fixed share of the last bootstrap, beyond which every update is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal, TypeAlias

from elastalog.backends.protocol import Small
from elastalog.evaluation.experience import Expectation, Experience
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum

Budget: TypeAlias = float | Literal["auto"] | None
"""The share of the last bootstrap that an update may cost; None: updates are never abandoned."""

AUTO: Final = "auto"

FACTOR: Final = 8
"""What the choice never costs more than, in terms of the better one."""

LEAST_BUDGET: Final = 2_000
"""Derivations that are always allowed: cheaper than planning a bootstrap."""

_WEIGHT = 2.0
"""What a derivation of an update costs in terms of one of a bootstrap: facts are found, not appended."""

_EARLIEST = 0.25
"""The share of a bootstrap after which an update is abandoned that should never have been tried."""

_MOST_CREDIT = 16.0
"""Updates in a row that are not tried."""

_FAILURES = 2
"""How many updates in a row must have been abandoned before one of their size is not tried, with a fixed budget."""

_TRUST = 3
"""How often in a row a forecast is believed before it is put to the test."""

_HOPELESS = 3.0
"""An expected cost beyond a fixed budget by this factor is not tried."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The choice for one stratum. `expected` is the number of derivations the model expects of an update, None without
    experience, and `sure` how sure it is of that, from 0 to 1. `bootstrap`: what the last bootstrap took."""

    stratum: int
    relations: tuple[str, ...]
    how: str
    why: str
    expected: float | None
    derivations_allowed: int | None
    seconds_allowed: float | None
    sure: float = 0.0
    bootstrap: int | None = None


@dataclass(slots=True)
class CostModel:
    """What is known of the strata, and the choices that follow from it."""

    budget: Budget
    _strata: dict[int, Experience] = field(default_factory=dict)

    def bootstrapped(self, stratum: LogicalStratum, derivations: int, seconds: float, inputs: int = 0) -> None:
        """Remembers what a bootstrap cost that read so many facts, 0 if that is not known; here and below."""
        experience = self.known(stratum)
        experience.bootstrap_derivations = derivations
        experience.bootstrap_seconds = seconds
        experience.bootstrap_inputs = inputs

    def known(self, stratum: LogicalStratum) -> Experience:
        """What is known of a stratum."""
        found = self._strata.get(stratum.number)
        return self._strata.setdefault(stratum.number, Experience()) if found is None else found

    def least_budget(self, known: Experience) -> int | None:
        """What an update may cost whatever it changes, if it is tried in any case: few spend more, and until one does
        the choice can wait. None: it must be made now."""
        return LEAST_BUDGET if self.budget == AUTO and known.credit < 1 else None

    def small(self) -> Small | None:
        """The updates that need not be chosen one by one, for the same reason; None: there are none."""
        if self.budget != AUTO:
            return None
        return Small(LEAST_BUDGET, [number for number, known in self._strata.items() if known.credit >= 1])

    def updated(self, stratum: LogicalStratum, changes: int, derivations: int, inputs: int = 0) -> Experience:
        """Remembers what an update cost. Returns what is known now."""
        known = self.known(stratum)
        known.observe(changes, derivations)
        known.skipped = 0
        anew = _bootstrap_cost(known, inputs)
        if _WEIGHT * derivations > anew:
            _give_credit(known, changes, derivations, anew)
        elif changes >= known.failed_changes:
            known.failures = 0
            known.credit = 0.0
        return known

    def abandoned(self, stratum: LogicalStratum, changes: int, derivations: int, inputs: int = 0) -> None:
        """Remembers that an update cost more than it was allowed."""
        experience = self.known(stratum)
        experience.observe_least(changes, derivations)
        experience.skipped = 0
        _give_credit(experience, changes, derivations, _bootstrap_cost(experience, inputs))
        experience.failures += 1

    def forecast(self, stratum: LogicalStratum, changes: int, inputs: int = 0) -> Forecast:
        """The choice for an update that changes so many facts that a stratum reads or is given."""
        experience = self.known(stratum)
        expected = experience.expect(changes)
        if self.budget is None:
            return _choice(stratum, experience, "update", "updates only", expected, None)
        if self.budget == AUTO:
            return _choose_freely(stratum, experience, changes, expected, inputs)
        return _choose_within(stratum, experience, changes, expected, self.budget)

    def choose(self, stratum: LogicalStratum, changes: int, inputs: int = 0) -> Forecast:
        """The forecast, taken: a hopeless update is skipped, but not for ever, since what was learnt may no longer
        hold."""
        forecast = self.forecast(stratum, changes, inputs)
        if forecast.how == "bootstrap":
            experience = self._strata[stratum.number]
            experience.skipped += 1
            experience.credit = max(experience.credit - 1, 0.0)
        return forecast

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
            self._strata[int(number)] = Experience.of_json(kept)

    def copy(self) -> CostModel:
        """What is known now, to come back to."""
        return CostModel(self.budget, {number: known.copy() for number, known in self._strata.items()})

    def become(self, other: CostModel) -> None:
        """Knows what another model knows, and nothing else."""
        self._strata = other.copy()._strata

    def renumber(self, numbers: Mapping[int, int]) -> None:
        """Strata have other numbers now; those that have none are forgotten."""
        self._strata = {numbers[number]: known for number, known in self._strata.items() if number in numbers}

    def forget_rates(self, before: CostModel, numbers: Mapping[int, int]) -> None:
        """Forgets what was learnt about updates since `before`, whose strata have had other `numbers`: a rule that came
        or went says nothing about facts."""
        earlier = {numbers[number]: known for number, known in before._strata.items() if number in numbers}
        for number, known in self._strata.items():
            known.forget_updates(earlier.get(number, Experience()))


def _bootstrap_cost(experience: Experience, inputs: int) -> float:
    """What evaluating the stratum anew costs, with what it costs to begin."""
    return experience.bootstrap_of(inputs) + _WEIGHT * LEAST_BUDGET


def _give_credit(experience: Experience, changes: int, derivations: int, anew: float) -> None:
    """An update has cost so many derivations and was abandoned, or had better been; `anew`: what a bootstrap costs."""
    is_first = not experience.failures and not experience.credit
    experience.failed_changes = changes if is_first else min(changes, experience.failed_changes)
    share = _WEIGHT * derivations / max(anew, 1)
    left = FACTOR * min(share, 1.0) - (share + 1)
    experience.credit = min(experience.credit + max(left, 0.0), _MOST_CREDIT)


def _choose_freely(
    stratum: LogicalStratum, experience: Experience, changes: int, expected: Expectation | None, inputs: int
) -> Forecast:
    bootstrap, anew = experience.bootstrap_of(inputs), _bootstrap_cost(experience, inputs)
    share = 1.0
    if expected is not None:
        if _WEIGHT * expected.derivations <= anew:
            share += expected.sure
        else:
            if experience.credit >= 1 and changes >= experience.failed_changes:
                why = (
                    f"about {expected.derivations:,.0f} derivations expected of an update, {bootstrap:,} of a bootstrap"
                )
                return _choice(stratum, experience, "bootstrap", why, expected, 0)
            share -= (1 - _EARLIEST) * expected.sure
    allowed = max(int(share * anew / _WEIGHT), LEAST_BUDGET)
    why = f"{changes:,} changed inputs, {allowed:,} derivations allowed"
    return _choice(stratum, experience, "update", why, expected, allowed)


def _choose_within(
    stratum: LogicalStratum, experience: Experience, changes: int, expected: Expectation | None, budget: float
) -> Forecast:
    allowed = max(int(budget * experience.bootstrap_derivations), LEAST_BUDGET)
    if experience.skipped < _TRUST:
        why = None
        if expected is not None and expected.derivations > _HOPELESS * allowed:
            why = f"about {expected.derivations:,.0f} derivations expected of an update, {allowed:,} allowed"
        elif experience.failures >= _FAILURES and changes >= experience.failed_changes:
            why = f"updates of {experience.failed_changes:,} changes and more have cost too much lately"
        if why is not None:
            return _choice(stratum, experience, "bootstrap", why, expected, allowed)
    why = f"{changes:,} changed inputs, {allowed:,} derivations allowed"
    return _choice(stratum, experience, "update", why, expected, allowed)


def _choice(
    stratum: LogicalStratum,
    experience: Experience,
    how: str,
    why: str,
    expected: Expectation | None,
    allowed: int | None,
) -> Forecast:
    derivations, sure = (None, 0.0) if expected is None else (expected.derivations, expected.sure)
    return Forecast(
        stratum.number, stratum.relations, how, why, derivations, allowed, None, sure, experience.bootstrap_derivations
    )
