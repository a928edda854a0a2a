"""What the last bootstraps of a stratum took, and what the next one should, from the facts that they read."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from elastalog.evaluation.unit_costs import cost_of_facts
from elastalog.late import dataclass

_ALIKE = 0.003
"""Bootstraps that read so nearly as many facts take the place of one another."""

_MUCH = 0.25
"""The share of its derivations that a bootstrap must have more than another to tell what an update in between takes:
one whose net effect is small may take anything."""

_OF_RECURSION = 3
"""The power of the facts that it reads by which a recursive stratum takes less after a loss, at least: 3.2 in closures,
4 where paths are enumerated, 10 and more where facts hang on one another."""

_KEPT = 4
"""How many of different size are remembered."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """One that read so many facts (0: nobody knows) took so many derivations, and cost as much as so many usual ones,
    what it costs to begin and to compare with what was there left aside; its joins looked up or made so many rows."""

    inputs: int
    derivations: int
    cost: float
    rows: int = 0

    def after_loss(self, inputs: int) -> float:
        """What it should cost at most when some of the facts that a recursive stratum reads are lost, and so many are
        left: its rounds may be as many."""
        of_facts = min(cost_of_facts(self.derivations, self.rows), self.cost)
        share = min(inputs / max(self.inputs, 1), 1.0)
        return self.cost - of_facts * (1 - share**_OF_RECURSION)


def remembered(past: Sequence[Bootstrap], latest: Bootstrap) -> list[Bootstrap]:
    """Those that are worth to be known, the latest at the end."""
    others = [
        known
        for known in past
        if latest.inputs and known.inputs and _apart(known.inputs, latest.inputs) > _ALIKE
    ]  # fmt: skip
    return [*others[-_KEPT + 1 :], latest]


def reckoned(past: Sequence[Bootstrap], inputs: int) -> Bootstrap:
    """What a bootstrap that reads so many facts should take: as the one that read nearly as many; in proportion where
    it reads less than half or more than twice as many; and a derivation for each where that one made none, as in a
    session which begins empty. Without `inputs`, 0: as the last one."""
    if not past:
        return Bootstrap(inputs, inputs, inputs)
    if not inputs:
        return past[-1]
    nearest = min(reversed(past), key=lambda known: _apart(known.inputs, inputs))
    if not nearest.derivations:
        return Bootstrap(inputs, inputs, inputs)
    if not nearest.inputs or nearest.inputs <= 2 * inputs <= 4 * nearest.inputs:
        return nearest
    share = inputs / nearest.inputs
    return Bootstrap(inputs, int(nearest.derivations * share), nearest.cost * share, int(nearest.rows * share))


def gained(past: Sequence[Bootstrap], before: int, after: int) -> int:
    """How many derivations more a bootstrap took that read about as many facts as there are `after` an update than one
    that read about as many as `before`; 0 where they are not both known, or that is not much."""
    first, last = reckoned(past, before), reckoned(past, after)
    if max(_apart(first.inputs, before), _apart(last.inputs, after)) > _ALIKE:
        return 0
    more = last.derivations - first.derivations
    return more if more >= _MUCH * last.derivations else 0


def _apart(inputs: int, others: int) -> float:
    return abs(log((inputs + 1) / (others + 1)))
