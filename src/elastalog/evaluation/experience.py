"""What is known of the costs of one stratum, all from what was counted: its last bootstraps, updates of like size, what
their derivations weigh, and which of them were in vain. A store keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import inf
from typing import Any

from elastalog.evaluation.past_bootstraps import Bootstrap, gained, reckoned, remembered
from elastalog.evaluation.past_updates import (
    MEMORY,
    Difference,
    Expectation,
    Observed,
    Occasion,
    expected_of,
    observe,
    undoing,
    with_gain,
)
from elastalog.evaluation.unit_costs import LEAST_TOUCHED, WEIGHT, effort_of, most_of_update, weight_of
from elastalog.late import dataclass

_SHARE_LOST = 0.5
"""Of the facts that updates touch which delete, so many do not come back, as long as nothing is known."""

_TOUCHING = 0.5
"""Facts that an update touches for every derivation, as long as nothing is known."""

LEAST_TO_WEIGH = 200
"""Derivations of an update from which something is learnt of their weight."""


@dataclass(slots=True)
class Experience:
    """`failures`: how many updates in a row were abandoned, of `failed_changes` changes and more (`failed_losses`: of
    those that delete, 0 if none); `skipped`: how many like them have not been tried since the last of them; `credit`:
    how many more need not be, negative where it is debt (see `costs`). `sizes`: updates by `past_updates.bucket_of`.
    `weight`: what a derivation of an update costs, `touching` how many facts it touches, and `weighed` how often that
    was seen. `excess`: how much more than usual updates have enumerated at most. `lost`: how many facts lately did not
    come back of those `touched` by updates that delete. `difference`: what the last update has changed, if
    somebody has told."""

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
    lost: float = 0.0
    touched: float = 0.0
    touching: float = _TOUCHING
    difference: Difference | None = None

    # --- bootstraps ---

    def bootstrapped(self, derivations: int, seconds: float, inputs: int, cost: float, rows: int = 0) -> None:
        """A bootstrap that read so many facts took so many derivations and rows, and cost so much."""
        self.bootstrap_derivations, self.bootstrap_seconds = derivations, seconds
        self.bootstraps = remembered(self.bootstraps, Bootstrap(inputs, derivations, cost, rows))

    def bootstrap_of(self, inputs: int) -> Bootstrap:
        """What a bootstrap that reads so many facts should take; 0: as many as the last one."""
        return reckoned(self.bootstraps, inputs)

    # --- updates ---

    def observe(self, occasion: Occasion, derivations: int, steps: int = 0, touched: int | None = None) -> None:
        """An update took so many derivations' worth, in so many steps (see `unit_costs`), and touched so many facts,
        None if nobody knows."""
        if derivations > self.bootstrap_derivations:
            self._exceed(occasion, derivations)
        observe(self.sizes, occasion.changes, occasion.is_loss, derivations)
        if touched is not None and derivations >= LEAST_TO_WEIGH:
            memory = MEMORY if self.weighed else 0.0
            weight, touching = weight_of(derivations, steps, touched), min(touched / derivations, 1.0)
            self.weight = memory * self.weight + (1 - memory) * weight
            self.touching = memory * self.touching + (1 - memory) * touching
            self.weighed += 1

    def observe_lost(self, touched: int, lost: int) -> None:
        """An update that deletes touched so many facts, of which so many did not come back."""
        self.lost = MEMORY * self.lost + min(max(lost, 0), touched)
        self.touched = MEMORY * self.touched + touched

    @property
    def share_lost(self) -> float:
        """How many of the facts that an update touches which deletes should not come back."""
        return self.lost / self.touched if self.touched else _SHARE_LOST

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
        return self.excess * most_of_update(bootstrap.derivations, bootstrap.rows, is_loss=is_loss)

    def expect(self, occasion: Occasion) -> Expectation | None:
        """What an update should take; None without experience."""
        if self.is_return(occasion):
            return self._expect_return(occasion)
        most = self._most(occasion.inputs, occasion.is_loss)
        expected = expected_of(self.sizes, occasion, most)
        if occasion.is_loss or not occasion.before:
            return expected
        more = gained(self.bootstraps, occasion.before, occasion.inputs)
        # Each brings a fact, most likely, and updates take derivations in vain besides.
        return with_gain(expected, more / max(self.touching, LEAST_TOUCHED), most) if more else expected

    def is_return(self, occasion: Occasion) -> bool:
        """Whether an update seems to undo the last one."""
        return self.difference is not None and self.difference.is_undone_by(occasion)

    def _expect_return(self, occasion: Occasion) -> Expectation:
        """Of a bootstrap, the share of its derivations and rows that lead to facts which will be others: what is gained
        is looked for once."""
        assert self.difference is not None
        bootstrap = self.bootstrap_of(occasion.inputs)
        steps = self.difference.share * (bootstrap.derivations + bootstrap.rows) + self.difference.other
        return undoing(effort_of(steps, self.weight), self._most(occasion.inputs, occasion.is_loss))

    def least_in_vain(self, is_loss: bool) -> float:
        """How many changes an update has that is as large as one that was in vain."""
        return (self.failed_losses if is_loss else self.failed_changes) or inf

    @property
    def may_skip(self) -> bool:
        """Whether an update need not even be begun: others were in vain, and have given credit."""
        return self.credit >= 1

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
            self.credit = min(self.credit, 0.0)

    def forget_updates(self, earlier: Experience) -> None:
        """Knows of updates what was known earlier."""
        self.failures, self.failed_changes, self.credit = earlier.failures, earlier.failed_changes, earlier.credit
        self.failed_losses, self.weight, self.weighed = earlier.failed_losses, earlier.weight, earlier.weighed
        self.touching, self.difference = earlier.touching, None
        self.skipped, self.excess = earlier.skipped, earlier.excess
        self.lost, self.touched = earlier.lost, earlier.touched
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
            self.weight, self.weighed, self.failed_losses, self.excess, self.lost, self.touched,
            self.touching, None if self.difference is None else self.difference.as_json(),
        ]  # fmt: skip

    @classmethod
    def of_json(cls, kept: Sequence[Any]) -> Experience:
        """What a store has kept; those of old kept nothing of sizes, or of inputs, or of more than one bootstrap."""
        derivations, seconds, _, skipped, failures, failed_changes, *rest = kept
        nothing: tuple[Any, ...] = ((), 0.0, 0, None, WEIGHT, 0, 0, 1.0, 0.0, 0.0, _TOUCHING, None)
        observed, credit, inputs, bootstraps, weight, weighed, failed_losses, *later = *rest, *nothing[len(rest) :]
        excess, lost, touched, touching, difference = later
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
        facts = float(excess), float(lost), float(touched), float(touching)
        last = None if difference is None else Difference.of_json(difference)
        return cls(int(derivations), float(seconds), *counts, sizes, float(credit), known, *learnt, *facts, last)
