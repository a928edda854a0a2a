"""What updates of like size took, and what the next one should: updates grow with what they change, by a power that is
learnt. Losses and gains are told apart, since a fact that is lost is looked for, and one that is gained is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import copysign, exp, log2, sqrt
from typing import Any, Final

from elastalog.late import dataclass

MEMORY = 0.6
"""How much of the past a new observation leaves."""

_NEWS = 1 - MEMORY

UNSURE = 0.5
"""The spread after one observation, in powers of two."""

_SURELY = 0.2
"""The spread that is left however often like updates cost the same."""

_AWAY = 0.1
"""How much less sure an expectation is for every doubling of what was observed."""

_OTHER_WAY = 0.5
"""The same where gains are judged by losses, or losses by gains."""

_ALIKE_IN_SIZE = 0.3
"""Doublings of the changes up to which updates should cost the same: those of one bucket are further apart."""

FAR: Final = 32
"""How many times as large an update is that is far larger than another one."""

_FEW = 8
"""Changes that tell something of far more."""

_OF_GAIN = 0.5
"""The spread of updates around what a bootstrap after them takes more than one before."""

_OF_UNDOING = 0.3
"""The spread of updates that undo others around the share of a bootstrap that they touch."""

_LOCALITY = 0.3
"""How much more the next sizes tell of the growth than those further away."""

_STEEPEST = 1.2
"""Twice the changes cost no more than this power of two as much."""


@dataclass(slots=True)
class Observed:
    """Updates of like size, from so many changes up to twice as many: the logarithm of what they cost, how far single
    ones were from it, how many there were, and the logarithm of their changes."""

    mean: float
    size: float
    spread: float = UNSURE
    seen: int = 1


@dataclass(frozen=True, slots=True)
class Occasion:
    """An update as a stratum meets it: how many facts change that it reads or is given, and whether most of them go.
    `inputs`: how many facts it reads, `facts`: how many it has, `before`: how many it read before the update; 0 where
    nobody has asked. `is_recursive`: the stratum reads itself."""

    changes: int
    is_loss: bool = False
    inputs: int = 0
    facts: int = 0
    before: int = 0
    is_recursive: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update has made of a stratum, or a bootstrap instead of it: so many of its facts are gone or have another
    level or count, or have had one in between."""

    occasion: Occasion
    other: int

    @property
    def share(self) -> float:
        """The share of the facts that are not as they were."""
        return self.other / max(self.occasion.facts, 1)

    def is_undone_by(self, later: Occasion) -> bool:
        """Whether an update seems to bring back what that one has deleted: as many facts, after which the stratum reads
        as many as before."""
        first = self.occasion
        is_return = (later.before, later.inputs, later.changes) == (first.inputs, first.before, first.changes)
        return is_return and first.is_loss and not later.is_loss

    def as_json(self) -> list[Any]:
        """What a store keeps."""
        first = self.occasion
        return [first.changes, first.is_loss, first.inputs, first.facts, first.before, self.other]

    @classmethod
    def of_json(cls, kept: Sequence[Any]) -> Difference:
        """What a store has kept."""
        changes, is_loss, inputs, facts, before, other = kept
        return cls(Occasion(int(changes), bool(is_loss), int(inputs), int(facts), int(before)), int(other))


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an update should take, in derivations: as likely more as less, by a factor of 2 to the `spread` or more in
    one case of three; never more than `most`. `sure`: the same from 0 to 1, for people."""

    derivations: float
    spread: float
    most: float
    sure: float


@lru_cache(maxsize=1024)
def bucket_of(changes: int, is_loss: bool) -> tuple[int, float]:
    """Where updates of like size are found: the binary logarithm of their changes, negative for those that delete; and
    that logarithm. Every stratum of a small update asks, for few changes."""
    bucket = max(changes, 1).bit_length()
    return -bucket if is_loss else bucket, log2(max(changes, 1))


def observe(sizes: dict[int, Observed], changes: int, is_loss: bool, derivations: int) -> None:
    """An update of so many changes took so many derivations."""
    bucket, size = bucket_of(changes, is_loss)
    cost, observed = log2(derivations + 1), sizes.get(bucket)
    if observed is None:
        sizes[bucket] = Observed(cost, size)
    else:
        observed.spread = MEMORY * observed.spread + _NEWS * abs(cost - observed.mean)
        observed.mean = MEMORY * observed.mean + _NEWS * cost
        observed.size = MEMORY * observed.size + _NEWS * size
        observed.seen += 1


def expected_of(sizes: Mapping[int, Observed], occasion: Occasion, most: float) -> Expectation | None:
    """What an update should take, `most` at most: what others of the next size took, times the power of what it changes
    more or less that all of them show, if that is much. None without experience that tells of it."""
    is_loss, size = occasion.is_loss, log2(max(occasion.changes, 1))
    telling = {bucket: known for bucket, known in sizes.items() if _tells(known, size)}
    if not telling:
        return None
    alike = [known for bucket, known in telling.items() if (bucket < 0) == is_loss]
    others = alike or list(telling.values())
    nearest = min(others, key=lambda known: abs(known.size - size))
    away = abs(nearest.size - size)
    spread = nearest.spread + _SURELY + 0.3 / sqrt(nearest.seen) + _AWAY * away + (0.0 if alike else _OTHER_WAY)
    sure = nearest.seen / (nearest.seen + 1) / (1 + nearest.spread + _AWAY * away)
    beyond = copysign(max(away - _ALIKE_IN_SIZE, 0.0), size - nearest.size)
    expected: float = 2 ** (nearest.mean + _slope(others, size) * beyond)
    return Expectation(expected, spread, most, sure if alike else sure / 2)


def _tells(known: Observed, size: float) -> bool:
    """Whether updates of one size tell anything of another. Few changes tell of these very facts, and nothing of far
    more: a single one may touch nothing, or all."""
    return known.size >= log2(_FEW) or size - known.size < log2(FAR)


def undoing(derivations: float, most: float) -> Expectation:
    """What an update should take that undoes another, of which a bootstrap has told what it changed."""
    return Expectation(derivations, _OF_UNDOING, most, 1 - _OF_UNDOING)


def with_gain(expected: Expectation | None, derivations: float, most: float) -> Expectation:
    """The same where it is known from bootstraps before and after that an update should take so many derivations: the
    surer of the two counts for more."""
    if expected is None:
        return Expectation(derivations, _OF_GAIN, most, 1 - _OF_GAIN)
    own, other = 1 / expected.spread**2, 1 / _OF_GAIN**2
    likely = min(expected.derivations, max(most, 1.0))
    both = 2 ** ((own * log2(likely) + other * log2(derivations)) / (own + other))
    return Expectation(both, 1 / sqrt(own + other), most, expected.sure)


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
