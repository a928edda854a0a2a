"""What is known of the costs of one stratum, all of it counted: its last bootstrap, what updates of each size class
took, how much a derivation of theirs weighs, and which were in vain. A store keeps it.

The unit of cost is a derivation of a usual bootstrap, as `benchmarks.fit_costs` measures it. An update takes about as
much for every derivation, for every row that its joins look at and for every fact that it touches, since each of these
steps waits for memory. A bootstrap goes through rows in their order, at half the cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from math import log2
from operator import attrgetter
from typing import Any, Final

from elastalog.late import dataclass
from elastalog.settings import SETTINGS

# --- unit costs ------------------------------------------------------------------------------------------------------

WEIGHT: Final = 2.0
"""What a derivation's worth of effort costs in an update, as long as nothing is known."""

_OF_STEP = 0.37
"""What an update costs for every derivation, every row and every fact that is touched."""

OF_FACT: Final = 0.53
"""What it costs to compare a fact that was there with those of a bootstrap, and to index it again."""

_OF_DERIVATION, _OF_ROW, _OF_ROUND = 0.35, 0.21, 2_000.0
"""What bootstraps cost for every derivation, every row that joins look up or make, and every round."""

_LEAST_ROWS = 1.5
"""Rows that are counted for every derivation, though it is only copied."""

_USUAL_ROWS, _OF_ROW_IN_VAIN = 4.0, 0.11
"""Rows for every derivation up to which they cost as much as any, and what each costs beyond: those are looked at one
after the other, and lead nowhere."""


# --- what is learnt --------------------------------------------------------------------------------------------------

MEMORY: Final = 0.6
"""The share of what was known that a new observation leaves; from 0.5 to 0.7 the choice costs the same."""

HALF_SURE: Final = 0.5
"""How sure it is, at least, what an update should take that is like one that was seen, or what rests on its changes."""

LEAST_TO_WEIGH: Final = 200
"""Derivations of an update from which something is learnt of their weight."""


@dataclass(frozen=True, slots=True)
class Features:
    """An update as a stratum meets it: how many of the facts change that it reads or is given, and whether most of them
    go. `inputs`: the facts it reads; `facts`: those it has; `given`: the explicit ones among these; `depth`: the mean
    of their levels. 0 where that was not asked, or is not known."""

    changes: int
    is_loss: bool = False
    inputs: int = 0
    facts: int = 0
    given: int = 0
    depth: float = 0.0


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A bootstrap: the number of facts that it read (0: not known), its derivations, its cost, without that of
    beginning it and of comparing with the facts that were there, and the rows that its joins looked up or made. `left`:
    the part of the work that one of several threads had, 1 without threads."""

    inputs: int
    derivations: int
    cost: float
    rows: int = 0
    left: float = 1.0

    @classmethod
    def counted(cls, inputs: int, derivations: int, rows: int, rounds: int, spared: int = 0) -> Bootstrap:
        """A bootstrap from what was counted of it (see `Watch`); from derivations alone if it was evaluated elsewhere.
        What threads spare a bootstrap makes it the better choice sooner; what they spare an update is no effort."""
        if not rounds:
            return cls(inputs, derivations, float(derivations), rows)
        usual = min(max(rows, _LEAST_ROWS * derivations), _USUAL_ROWS * derivations)
        joins = _OF_DERIVATION * derivations + _OF_ROW * usual + _OF_ROW_IN_VAIN * max(rows - usual, 0.0)
        left = 1 - spared / max(rows, 1)
        return cls(inputs, derivations, joins * left + _OF_ROUND * rounds, rows, left)

    def rebuild_cost(self, facts: int) -> float:
        """The cost of evaluating a stratum anew: of the bootstrap, of beginning it, and of comparing with the facts it
        has, which threads share too."""
        return self.cost + OF_FACT * facts * self.left + WEIGHT * SETTINGS.least_budget


@dataclass(slots=True)
class SizeClass:
    """Updates of similar size, from one number of changes up to twice as many: how many there were, and the moving
    averages of the logarithms of their derivations and of their changes."""

    mean: float
    size: float
    seen: int = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """What an update, or a bootstrap instead of it, has made of a stratum: `other` of its facts have gone, have another
    level or count, or had one in between. `left`: the part of its steps that one of several threads had."""

    features: Features
    other: int
    left: float = 1.0

    @property
    def share(self) -> float:
        """The share of the facts that are not as they were."""
        return self.other / max(self.features.facts, 1)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The derivations that an update should take, and how sure that is, from 0 to 1."""

    derivations: float
    sure: float


@lru_cache(maxsize=1024)
def size_class_of(changes: int, is_loss: bool) -> tuple[int, float]:
    """The key of the size class of an update, and the logarithm of its number of changes. The key is the bits of that
    number, negative for deletions, since only lost facts are searched for. Every stratum of a small update asks, for
    few changes."""
    bits = max(changes, 1).bit_length()
    return -bits if is_loss else bits, log2(max(changes, 1))


def observe(sizes: dict[int, SizeClass], changes: int, is_loss: bool, derivations: int) -> None:
    """Learns what an update took."""
    key, size = size_class_of(changes, is_loss)
    cost, known = log2(derivations + 1), sizes.get(key)
    if known is None:
        sizes[key] = SizeClass(cost, size)
    else:
        known.mean += (1 - MEMORY) * (cost - known.mean)
        known.size += (1 - MEMORY) * (size - known.size)
        known.seen += 1


@dataclass(slots=True)
class Experience:
    """`sizes`: size classes by `size_class_of`. `weight`: the cost of a derivation of an update, and `weighed` how
    often that was seen. `credit`: how many updates need not be tried; debt if negative (see `costs`). `difference`:
    what the last update has changed, if that is known."""

    bootstrap: Bootstrap | None = None
    sizes: dict[int, SizeClass] = field(default_factory=dict)
    weight: float = WEIGHT
    weighed: int = 0
    credit: float = 0.0
    difference: Difference | None = None

    def bootstrap_of(self, inputs: int) -> Bootstrap:
        """The bootstrap to be expected if it reads this number of facts: the last one; in proportion where it reads
        less than half or more than twice as many; a derivation for each fact where the last one made none, as in a
        session that begins empty. Without `inputs`, 0: the last one."""
        last = self.bootstrap
        if last is None or (inputs and not last.derivations):
            return Bootstrap(inputs, inputs, inputs)
        if not inputs or not last.inputs or last.inputs <= 2 * inputs <= 4 * last.inputs:
            return last
        share = inputs / last.inputs
        return Bootstrap(inputs, int(last.derivations * share), last.cost * share, int(last.rows * share), last.left)

    # --- updates ---

    def observe(self, features: Features, derivations: int, steps: int = 0, touched: int | None = None) -> None:
        """Learns what an update took: derivations' worth of effort, `steps` (derivations and rows), and the facts that
        it touched, None if that is not known."""
        observe(self.sizes, features.changes, features.is_loss, derivations)
        if touched is not None and derivations >= LEAST_TO_WEIGH:
            weight = _OF_STEP * (max(steps, derivations) + touched) / derivations
            self.weight = weight if not self.weighed else MEMORY * self.weight + (1 - MEMORY) * weight
            self.weighed += 1

    def observe_least(self, features: Features, derivations: int) -> None:
        """Learns that an update was abandoned after this many derivations: it would have taken more, most likely twice
        as many."""
        expected = self.expect(features)
        if expected is None or expected.derivations < 1.5 * derivations:
            self.observe(features, 2 * derivations)

    def expect(self, features: Features) -> Expectation | None:
        """What an update should take: what others of its size class took; or those of the nearest one, in proportion to
        the changes, but no less than the facts take that will be others (see `_least`). For one that undoes the last
        update: what those facts take, with the help that it had. None without experience."""
        last = self.difference
        is_gain = last is not None and last.features.is_loss and not features.is_loss
        if last is not None and is_gain and features.changes == last.features.changes:
            # It seems to bring back what the last one has deleted.
            gained = self._of_share(last.share, features) + _OF_STEP * last.other / self.weight
            return Expectation(last.left * gained, HALF_SURE)
        key, size = size_class_of(features.changes, features.is_loss)
        if (known := self.sizes.get(key)) is not None:
            return Expectation(2**known.mean, known.seen / (known.seen + 1))
        least = self._least(features)
        alike = [known for other, known in self.sizes.items() if (other < 0) == features.is_loss]
        if not alike:
            return Expectation(least, HALF_SURE) if least else None
        nearest = min(alike, key=lambda known: abs(known.size - size))
        more = size - nearest.size
        found = 2 ** (nearest.mean + more)
        sure = nearest.seen / (nearest.seen + 1) / (1 + abs(more))
        return Expectation(found, sure) if found > least else Expectation(least, HALF_SURE)

    def _least(self, features: Features) -> float:
        """What an update should take at least, 0 where nothing is known. A fact of level n rests on n others below it,
        in a row: of facts as deep as most are, the share stays that rests on no change. A few small updates say nothing
        of that: their changes hardly ever meet."""
        below = features.inputs + features.given + (features.changes if features.is_loss else 0)
        stays = 1 - min(features.changes / max(below, 1), 1.0)
        return self._of_share(1 - stays**features.depth, features)

    def _of_share(self, share: float, features: Features) -> float:
        """What an update takes that makes a share of the facts others, all of them gained: that share of a bootstrap's
        derivations and rows, since what is gained is looked for once."""
        bootstrap = self.bootstrap_of(features.inputs)
        return _OF_STEP * share * (bootstrap.derivations + bootstrap.rows) / self.weight

    @property
    def may_skip(self) -> bool:
        """Whether an update need not even be begun: others were in vain, and have given credit."""
        return self.credit >= 1

    def forget_updates(self, earlier: Experience) -> None:
        """Knows of updates what was known earlier."""
        kept = earlier.copy()
        self.sizes, self.weight, self.weighed = kept.sizes, kept.weight, kept.weighed
        self.credit, self.difference = kept.credit, None

    # --- keeping ---

    def copy(self) -> Experience:
        """What is known now, to come back to."""
        return Experience.of_json(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """What a store keeps."""
        kept: dict[str, Any] = {
            "bootstraps": [] if self.bootstrap is None else [_of_bootstrap(self.bootstrap)],
            "sizes": [[key, known.mean, known.size, known.seen] for key, known in self.sizes.items()],
            "weight": [self.weight, self.weighed],
            "vain": [self.credit],
        }
        if self.difference is not None:
            kept["last"] = [*_of_features(self.difference.features), self.difference.other, self.difference.left]
        return kept

    @classmethod
    def of_json(cls, kept: Mapping[str, Any] | Sequence[Any]) -> Experience:
        """What a store has kept. Earlier stores have a list, of which the first number is read: the derivations of the
        last bootstrap."""
        if not isinstance(kept, Mapping):
            derivations = int(kept[0])
            return cls(Bootstrap(0, derivations, float(derivations)) if derivations else None)
        weight, weighed = kept["weight"]
        last = kept.get("last")
        difference = None if last is None else Difference(Features(*last[:4]), *last[4:])
        sizes = {key: SizeClass(mean, size, seen) for key, mean, size, seen in kept["sizes"]}
        bootstrap = Bootstrap(*kept["bootstraps"][-1]) if kept["bootstraps"] else None
        return cls(bootstrap, sizes, weight, weighed, kept["vain"][-1], difference)


# Not `astuple`, which copies everything: an epoch in a store has this of every stratum.
_of_bootstrap = attrgetter("inputs", "derivations", "cost", "rows", "left")
_of_features = attrgetter("changes", "is_loss", "inputs", "facts")
