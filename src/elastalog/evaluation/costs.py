"""The elastic choice: what an update of a stratum may cost, and whether to try it at all.

The model learns from past epochs, per stratum: what its bootstrap enumerated, and how many derivations updates
enumerated for each changed fact that it reads or is given. It only skips an update that experience says is hopeless; a
budget protects against all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum

_LEAST_BUDGET = 2_000
"""Derivations that are always allowed: cheaper than planning a bootstrap."""

_LEAST_SECONDS = 0.005
_SLOWDOWN = 1.5
"""An update enumerates a derivation more slowly than a bootstrap does; the time budget is only a backstop for that."""

_FAILURES = 2
"""How many updates in a row must have been abandoned before one of their size is not tried."""

_MEMORY = 0.7
"""How much of the past a new observation leaves."""

_TRUST = 3
"""How often in a row a forecast is believed before it is put to the test."""

_HOPELESS = 3.0
"""An expected cost beyond the budget by this factor is not tried."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The choice for one stratum. `expected` is the number of derivations the model expects of an update, None without
    experience."""

    stratum: int
    relations: tuple[str, ...]
    how: str
    why: str
    expected: float | None
    derivations_allowed: int | None
    seconds_allowed: float | None


@dataclass(slots=True)
class _Experience:
    bootstrap_derivations: int = 0
    bootstrap_seconds: float = 0.0
    derivations_per_change: float | None = None
    skipped: int = 0
    failures: int = 0
    failed_changes: int = 0


@dataclass(slots=True)
class CostModel:
    """`budget` is the fraction of the last bootstrap that an update may cost; None: updates are never abandoned."""

    budget: float | None
    _strata: dict[int, _Experience] = field(default_factory=dict)

    def bootstrapped(self, stratum: LogicalStratum, derivations: int, seconds: float) -> None:
        """Remembers what a bootstrap cost."""
        experience = self._strata.setdefault(stratum.number, _Experience())
        experience.bootstrap_derivations = derivations
        experience.bootstrap_seconds = seconds

    def updated(self, stratum: LogicalStratum, changes: int, derivations: int) -> None:
        """Remembers what an update cost."""
        experience = self._strata.setdefault(stratum.number, _Experience())
        rate = derivations / max(changes, 1)
        known = experience.derivations_per_change
        experience.derivations_per_change = rate if known is None else _MEMORY * known + (1 - _MEMORY) * rate
        experience.skipped = 0
        if changes >= experience.failed_changes:
            experience.failures = 0

    def abandoned(self, stratum: LogicalStratum, changes: int, derivations: int) -> None:
        """Remembers that an update cost more than it was allowed."""
        experience = self._strata.setdefault(stratum.number, _Experience())
        experience.failed_changes = min(changes, experience.failed_changes) if experience.failures else changes
        experience.failures += 1
        rate = derivations / max(changes, 1)
        known = experience.derivations_per_change
        if known is None or rate > known:
            experience.derivations_per_change = rate
        experience.skipped = 0

    def forecast(self, stratum: LogicalStratum, changes: int) -> Forecast:
        """The choice for an update that changes so many facts that a stratum reads or is given."""
        experience = self._strata.setdefault(stratum.number, _Experience())
        rate = experience.derivations_per_change
        expected = None if rate is None else rate * changes
        if self.budget is None:
            return self._choice(stratum, "update", "updates only", expected, None, None)
        allowed = max(int(self.budget * experience.bootstrap_derivations), _LEAST_BUDGET)
        seconds = max(_SLOWDOWN * self.budget * experience.bootstrap_seconds, _LEAST_SECONDS)
        if experience.skipped < _TRUST:
            why = None
            if expected is not None and expected > _HOPELESS * allowed:
                why = f"about {expected:,.0f} derivations expected of an update, {allowed:,} allowed"
            elif experience.failures >= _FAILURES and changes >= experience.failed_changes:
                why = f"updates of {experience.failed_changes:,} changes and more have cost too much lately"
            if why is not None:
                return self._choice(stratum, "bootstrap", why, expected, allowed, seconds)
        why = f"{changes:,} changed inputs, {allowed:,} derivations allowed"
        return self._choice(stratum, "update", why, expected, allowed, seconds)

    def choose(self, stratum: LogicalStratum, changes: int) -> Forecast:
        """The forecast, taken: a hopeless update is skipped, but not for ever, since what was learnt may no longer
        hold."""
        forecast = self.forecast(stratum, changes)
        if forecast.how == "bootstrap":
            self._strata[stratum.number].skipped += 1
        return forecast

    def learnt(self, strata: Iterable[int] | None = None) -> dict[str, list[float | None]]:
        """What is known of some strata, or of all, by number: a JSON value that a store can keep."""
        return {
            str(number): [
                e.bootstrap_derivations, e.bootstrap_seconds, e.derivations_per_change, e.skipped, e.failures,
                e.failed_changes,
            ]
            for number in (self._strata if strata is None else strata)
            if (e := self._strata.get(number)) is not None
        }  # fmt: skip

    def recall(self, learnt: Mapping[str, Sequence[Any]]) -> None:
        """Remembers what a store has kept."""
        for number, (derivations, seconds, rate, *counts) in learnt.items():
            self._strata[int(number)] = _Experience(int(derivations), float(seconds), rate, *map(int, counts))

    def copy(self) -> CostModel:
        """What is known now, to come back to."""
        return CostModel(self.budget, {number: replace(known) for number, known in self._strata.items()})

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
            was = earlier.get(number, _Experience())
            known.derivations_per_change, known.skipped = was.derivations_per_change, was.skipped
            known.failures, known.failed_changes = was.failures, was.failed_changes

    def _choice(
        self,
        stratum: LogicalStratum,
        how: str,
        why: str,
        expected: float | None,
        allowed: int | None,
        seconds: float | None,
    ) -> Forecast:
        return Forecast(stratum.number, stratum.relations, how, why, expected, allowed, seconds)
