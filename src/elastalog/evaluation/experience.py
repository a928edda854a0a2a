"""What is known of the costs of one stratum: its last bootstraps, and updates of like size, all from what was counted.

Costs are in derivations of a bootstrap. A derivation of an update costs about two of them, and how many exactly depends
on how many facts it touches: that is learnt. Updates grow with what they change, by a power that is learnt too; losses
and gains are told apart, since a fact that is lost is looked for, and one that is gained is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import copysign, exp, inf, log, log2, sqrt
from typing import Any

from elastalog.late import dataclass

WEIGHT = 2.0
"""What a derivation of an update costs, as long as nothing is known: facts are found, not appended."""

_OF_DERIVATION, _OF_TOUCHED = 1.0, 1.8
"""The same for the derivation alone, and for every fact that is touched. Measured, like the next ones."""

_OF_LOSS = 1.35
"""How much more the same costs where facts are lost."""

_LEAST_TO_WEIGH = 200
"""Derivations of an update from which something is learnt of their weight."""

_MEMORY = 0.6
"""How much of the past a new observation leaves."""

UNSURE = 0.5
"""The spread after one observation, in powers of two."""

_SURELY = 0.2
"""The spread that is left however often like updates cost the same."""

_AWAY = 0.05
"""How much less sure an expectation is for every doubling of what was observed."""

_OTHER_WAY = 0.5
"""The same where gains are judged by losses, or losses by gains."""

_ALIKE_IN_SIZE = 0.5
"""Doublings of the changes up to which updates should cost the same: those of one bucket are further apart."""

_LOCALITY = 0.3
"""How much more the next sizes tell of the growth than those further away."""

_STEEPEST = 1.2
"""Twice the changes cost no more than this power of two as much."""

_MOST_OF_LOSSES, _MOST_OF_GAINS = (1.8, 0.6), (1.05, 0.42)
"""What updates usually enumerate at most, in terms of a bootstrap's derivations or of its rows, whichever is more: what
is lost, and looked for again; what is gained."""

_ALIKE = 0.003
"""Bootstraps that read so nearly as many facts take the place of one another."""

_BOOTSTRAPS = 4
"""How many of different size are remembered."""


@dataclass(slots=True)
class Observed:
    """Updates of like size, from so many changes up to twice as many: the logarithm of what they cost, how far single
    ones were from it, how many there were, and the logarithm of their changes."""

    mean: float
    size: float
    spread: float = UNSURE
    seen: int = 1

    def observe(self, cost: float, size: float) -> None:
        """Another one, of which the logarithms are given."""
        self.spread = _MEMORY * self.spread + (1 - _MEMORY) * abs(cost - self.mean)
        self.mean = _MEMORY * self.mean + (1 - _MEMORY) * cost
        self.size = _MEMORY * self.size + (1 - _MEMORY) * size
        self.seen += 1


@dataclass(frozen=True, slots=True)
class Occasion:
    """An update as a stratum meets it: how many facts change that it reads or is given, and whether most of them go.
    `inputs`: how many facts it reads, `facts`: how many it has; 0 where nobody has asked."""

    changes: int
    is_loss: bool = False
    inputs: int = 0
    facts: int = 0


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an update should take, in derivations: as likely more as less, by a factor of 2 to the `spread` or more in
    one case of three; never more than `most`. `sure`: the same from 0 to 1, for people."""

    derivations: float
    spread: float
    most: float
    sure: float


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """One that read so many facts (0: nobody knows) took so many derivations, and cost as much as so many usual ones,
    what it costs to begin and to compare with what was there left aside; its joins looked up or made so many rows."""

    inputs: int
    derivations: int
    cost: float
    rows: int = 0


@dataclass(slots=True)
class Experience:
    """`failures`: how many updates in a row were abandoned, of `failed_changes` changes and more (`failed_losses`: of
    those that delete, 0 if none); `skipped`: how many like them have not been tried since the last of them; `credit`:
    how many more need not be (see `costs`). `sizes`: updates by the binary logarithm of their changes, negative for
    those that delete. `weight`: what a derivation of an update costs, and `weighed` how often that was seen. `excess`:
    how much more than usual updates have enumerated at most."""

    bootstrap_derivations: int = 0
    bootstrap_seconds: float = 0.0
    skipped: int = 0
    failures: int = 0
    failed_changes: int = 0
    sizes: dict[int, Observed] = field(default_factory=dict)
    credit: float = 0.0
    bootstraps: list[Bootstrap] = field(default_factory=list)
    weight: float = WEIGHT
    weighed: int = 0
    failed_losses: int = 0
    excess: float = 1.0

    # --- bootstraps ---

    def bootstrapped(self, derivations: int, seconds: float, inputs: int, cost: float, rows: int = 0) -> None:
        """A bootstrap that read so many facts took so many derivations and rows, and cost so much."""
        self.bootstrap_derivations, self.bootstrap_seconds = derivations, seconds
        others = [
            known for known in self.bootstraps if inputs and known.inputs and _apart(known.inputs, inputs) > _ALIKE
        ]
        self.bootstraps = [*others[-_BOOTSTRAPS + 1 :], Bootstrap(inputs, derivations, cost, rows)]

    def bootstrap_of(self, inputs: int) -> Bootstrap:
        """What a bootstrap that reads so many facts should take: as the one that read nearly as many; in proportion
        where it reads less than half or more than twice as many; and a derivation for each where that one made none, as
        in a session which begins empty. Without `inputs`, 0: as the last one."""
        if not self.bootstraps:
            return Bootstrap(inputs, inputs, inputs)
        if not inputs:
            return self.bootstraps[-1]
        nearest = min(reversed(self.bootstraps), key=lambda known: _apart(known.inputs, inputs))
        if not nearest.derivations:
            return Bootstrap(inputs, inputs, inputs)
        if not nearest.inputs or nearest.inputs <= 2 * inputs <= 4 * nearest.inputs:
            return nearest
        share = inputs / nearest.inputs
        return Bootstrap(inputs, int(nearest.derivations * share), nearest.cost * share, int(nearest.rows * share))

    # --- updates ---

    def weight_of(self, is_loss: bool) -> float:
        """What a derivation of an update costs, by what was learnt."""
        return _OF_LOSS * self.weight if is_loss else self.weight

    def observe(self, occasion: Occasion, derivations: int, touched: int | None = None) -> None:
        """An update took so many derivations, and touched so many facts, None if nobody knows."""
        self._exceed(occasion, derivations)
        changes = occasion.changes or 1
        bucket, size, cost = changes.bit_length(), log2(changes), log2(derivations + 1)
        if occasion.is_loss:
            bucket = -bucket
        observed = self.sizes.get(bucket)
        if observed is None:
            self.sizes[bucket] = Observed(cost, size)
        else:
            observed.observe(cost, size)
        if touched is not None and derivations >= _LEAST_TO_WEIGH:
            weight = _OF_DERIVATION + _OF_TOUCHED * min(touched / derivations, 1.0)
            self.weight = _MEMORY * self.weight + (1 - _MEMORY) * weight if self.weighed else weight
            self.weighed += 1

    def observe_least(self, occasion: Occasion, derivations: int) -> None:
        """An update was abandoned after so many derivations: it would have taken more, most likely as many again."""
        expected = self.expect(occasion)
        if expected is None or expected.derivations < 1.5 * derivations:
            self.observe(occasion, 2 * derivations)
        else:
            self._exceed(occasion, 2 * derivations)

    def _exceed(self, occasion: Occasion, derivations: int) -> None:
        """An update has taken so many derivations: others may be as much beyond the usual from now on. The usual is
        that of the last bootstrap, whatever it read: where a loss has left little to derive, nothing is usual."""
        if derivations > self.bootstrap_derivations > 0:
            self.excess *= max(derivations / max(self._most(0, occasion.is_loss), 1.0), 1.0)

    def _most(self, inputs: int, is_loss: bool) -> float:
        """The derivations that an update of a stratum which reads so many facts should take at most."""
        bootstrap = self.bootstrap_of(inputs)
        of_derivations, of_rows = _MOST_OF_LOSSES if is_loss else _MOST_OF_GAINS
        return self.excess * max(of_derivations * bootstrap.derivations, of_rows * bootstrap.rows)

    def expect(self, occasion: Occasion) -> Expectation | None:
        """What an update should take: what others of the next size took, times the power of what it changes more or
        less that all of them show, if that is much. None without experience."""
        if not self.sizes:
            return None
        is_loss, size = occasion.is_loss, log2(max(occasion.changes, 1))
        alike = [known for bucket, known in self.sizes.items() if (bucket < 0) == is_loss]
        others = alike or list(self.sizes.values())
        nearest = min(others, key=lambda known: abs(known.size - size))
        away = abs(nearest.size - size)
        spread = nearest.spread + _SURELY + 0.3 / sqrt(nearest.seen) + _AWAY * away + (0.0 if alike else _OTHER_WAY)
        sure = nearest.seen / (nearest.seen + 1) / (1 + nearest.spread + _AWAY * away)
        beyond = copysign(max(away - _ALIKE_IN_SIZE, 0.0), size - nearest.size)
        expected: float = 2 ** (nearest.mean + _slope(others, size) * beyond)
        return Expectation(expected, spread, self._most(occasion.inputs, is_loss), sure if alike else sure / 2)

    def least_in_vain(self, is_loss: bool) -> float:
        """How many changes an update has that is as large as one that was in vain."""
        return (self.failed_losses if is_loss else self.failed_changes) or inf

    def fail(self, occasion: Occasion) -> None:
        """An update was in vain."""
        least = int(min(occasion.changes, self.least_in_vain(occasion.is_loss)))
        if occasion.is_loss:
            self.failed_losses = least
        else:
            self.failed_changes = least

    def succeed(self, occasion: Occasion) -> None:
        """An update was not: if others as large were, that no longer counts."""
        if occasion.changes >= self.least_in_vain(occasion.is_loss):
            self.failures = self.failed_changes = self.failed_losses = 0
            self.credit = 0.0

    def forget_updates(self, earlier: Experience) -> None:
        """Knows of updates what was known earlier."""
        self.failures, self.failed_changes, self.credit = earlier.failures, earlier.failed_changes, earlier.credit
        self.failed_losses, self.weight, self.weighed = earlier.failed_losses, earlier.weight, earlier.weighed
        self.skipped, self.excess = earlier.skipped, earlier.excess
        self.sizes = earlier.copy().sizes

    # --- keeping ---

    def copy(self) -> Experience:
        """The same, to come back to."""
        return Experience.of_json(self.as_json())

    def as_json(self) -> list[Any]:
        """What a store keeps. Only ever more behind what there was; in the third place, of derivations for each change,
        nothing any more."""
        last = self.bootstraps[-1].inputs if self.bootstraps else 0
        return [
            self.bootstrap_derivations, self.bootstrap_seconds, None, self.skipped,
            self.failures, self.failed_changes,
            [[bucket, known.mean, known.spread, known.seen, known.size] for bucket, known in self.sizes.items()],
            self.credit, last, [[known.inputs, known.derivations, known.cost, known.rows] for known in self.bootstraps],
            self.weight, self.weighed, self.failed_losses, self.excess,
        ]  # fmt: skip

    @classmethod
    def of_json(cls, kept: Sequence[Any]) -> Experience:
        """What a store has kept; those of old kept nothing of sizes, or of inputs, or of more than one bootstrap."""
        derivations, seconds, _, skipped, failures, failed_changes, *rest = kept
        nothing: tuple[Any, ...] = ((), 0.0, 0, None, WEIGHT, 0, 0, 1.0)
        observed, credit, inputs, bootstraps, weight, weighed, failed_losses, excess = *rest, *nothing[len(rest) :]
        sizes = {
            int(bucket): Observed(mean, size[0] if size else max(abs(bucket) - 0.5, 0.0), spread, int(seen))
            for bucket, mean, spread, seen, *size in observed
        }
        if bootstraps is None:
            bootstraps = [[inputs, derivations, derivations]] if derivations or inputs else []
        known = [
            Bootstrap(int(read), int(made), float(cost), *map(int, rows)) for read, made, cost, *rows in bootstraps
        ]
        counts = int(skipped), int(failures), int(failed_changes)
        learnt = float(weight), int(weighed), int(failed_losses)
        return cls(int(derivations), float(seconds), *counts, sizes, float(credit), known, *learnt, float(excess))


def _apart(inputs: int, others: int) -> float:
    return abs(log((inputs + 1) / (others + 1)))


def _slope(observed: Sequence[Observed], size: float) -> float:
    """The power by which costs grow with changes, near a size: 1 as long as nothing speaks against it."""
    weights = [known.seen / (1 + _LOCALITY * (known.size - size) ** 2) for known in observed]
    whole = sum(weights)
    x = sum(w * known.size for w, known in zip(weights, observed, strict=True)) / whole
    y = sum(w * known.mean for w, known in zip(weights, observed, strict=True)) / whole
    across = sum(w * (known.size - x) ** 2 for w, known in zip(weights, observed, strict=True))
    along = sum(w * (known.size - x) * (known.mean - y) for w, known in zip(weights, observed, strict=True))
    return min(max((along + 1) / (across + 1), 0.0), _STEEPEST)


_POINTS = tuple(z / 3 for z in range(-7, 8))
_SHARES = tuple(exp(-z * z / 2) for z in _POINTS)


def likely_costs(expected: Expectation) -> list[tuple[float, float]]:
    """Derivations that an update may take, each with how likely that is."""
    whole = sum(_SHARES)
    return [
        (min(expected.derivations * 2 ** (expected.spread * z), expected.most), share / whole)
        for z, share in zip(_POINTS, _SHARES, strict=True)
    ]
