"""What is known of the costs of one stratum: its last bootstrap, and updates of like size, all in derivations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import log2
from typing import Any

from elastalog.late import dataclass

_MEMORY = 0.6
"""How much of the past a new observation leaves."""

UNSURE = 1.0
"""The spread after one observation: as likely as not another factor than 2."""


@dataclass(slots=True)
class Observed:
    """Updates of like size, from so many changes up to twice as many: the logarithm of what they cost, how far single
    ones were from it, and how many there were."""

    mean: float
    spread: float = UNSURE
    seen: int = 1

    def observe(self, cost: float) -> None:
        """Another one, of which the logarithm is given."""
        self.spread = _MEMORY * self.spread + (1 - _MEMORY) * abs(cost - self.mean)
        self.mean = _MEMORY * self.mean + (1 - _MEMORY) * cost
        self.seen += 1


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an update should cost, in derivations, and how sure that is, from 0 to 1."""

    derivations: float
    sure: float


@dataclass(slots=True)
class Experience:
    """`failures`: how many updates in a row were abandoned, of `failed_changes` changes and more; `skipped`: how many
    like them have not been tried since the last of them; `credit`: how many more need not be (see `costs`).
    `bootstrap_inputs`: the facts that the last bootstrap read, 0 if that is not known."""

    bootstrap_derivations: int = 0
    bootstrap_seconds: float = 0.0
    derivations_per_change: float | None = None
    skipped: int = 0
    failures: int = 0
    failed_changes: int = 0
    sizes: dict[int, Observed] = field(default_factory=dict)
    credit: float = 0.0
    bootstrap_inputs: int = 0

    def bootstrap_of(self, inputs: int) -> int:
        """What a bootstrap that reads so many facts should take: as the last one; in proportion where it reads less
        than half or more than twice as many; and a derivation for each where the last one made none, as that of a
        session which begins empty. Without `inputs`, 0: as the last one."""
        known, before = self.bootstrap_derivations, self.bootstrap_inputs
        if not known:
            return inputs
        is_alike = not inputs or not before or before <= 2 * inputs <= 4 * before
        return known if is_alike else known * inputs // before

    def observe(self, changes: int, derivations: int) -> None:
        """An update of so many changes took so many derivations."""
        rate = derivations / max(changes, 1)
        known = self.derivations_per_change
        self.derivations_per_change = rate if known is None else _MEMORY * known + (1 - _MEMORY) * rate
        size, cost = changes.bit_length(), log2(derivations + 1)
        observed = self.sizes.get(size)
        if observed is None:
            self.sizes[size] = Observed(cost)
        else:
            observed.observe(cost)

    def observe_least(self, changes: int, derivations: int) -> None:
        """An update of so many changes was abandoned after so many derivations: it would have taken more, most likely
        as many again."""
        expected = self.expect(changes)
        if expected is None or expected.derivations < 2 * derivations:
            self.observe(changes, 2 * derivations)
        else:
            self.sizes.setdefault(changes.bit_length(), Observed(log2(expected.derivations + 1))).seen += 1

    def expect(self, changes: int) -> Expectation | None:
        """What an update of so many changes should take: what others of its size took or, in proportion, those of the
        next size that is known. None without experience."""
        if not self.sizes:
            return None
        size = changes.bit_length()
        observed = self.sizes.get(size)
        if observed is not None:
            return Expectation(2**observed.mean, observed.seen / (observed.seen + 1) / (1 + observed.spread))
        nearest = min(self.sizes, key=lambda known: (abs(known - size), known))
        observed, away = self.sizes[nearest], size - nearest
        sure = observed.seen / (observed.seen + 1) / (1 + observed.spread + abs(away))
        return Expectation(2 ** max(observed.mean + away, 0.0), sure)

    def forget_updates(self, earlier: Experience) -> None:
        """Knows of updates what was known earlier."""
        self.derivations_per_change, self.skipped = earlier.derivations_per_change, earlier.skipped
        self.failures, self.failed_changes, self.credit = earlier.failures, earlier.failed_changes, earlier.credit
        self.sizes = earlier.copy().sizes

    def copy(self) -> Experience:
        """The same, to come back to."""
        sizes = {size: Observed(known.mean, known.spread, known.seen) for size, known in self.sizes.items()}
        return Experience(
            self.bootstrap_derivations, self.bootstrap_seconds, self.derivations_per_change, self.skipped,
            self.failures, self.failed_changes, sizes, self.credit, self.bootstrap_inputs,
        )  # fmt: skip

    def as_json(self) -> list[Any]:
        """What a store keeps."""
        return [
            self.bootstrap_derivations, self.bootstrap_seconds, self.derivations_per_change, self.skipped,
            self.failures, self.failed_changes,
            [[size, known.mean, known.spread, known.seen] for size, known in self.sizes.items()],
            self.credit, self.bootstrap_inputs,
        ]  # fmt: skip

    @classmethod
    def of_json(cls, kept: Sequence[Any]) -> Experience:
        """What a store has kept; those of old kept nothing of sizes, or of inputs."""
        derivations, seconds, rate, skipped, failures, failed_changes, *rest = kept
        nothing: tuple[Any, ...] = ((), 0.0, 0)
        observed, credit, inputs = *rest, *nothing[len(rest) :]
        sizes = {int(size): Observed(mean, spread, int(seen)) for size, mean, spread, seen in observed}
        counts = int(skipped), int(failures), int(failed_changes)
        return cls(int(derivations), float(seconds), rate, *counts, sizes, float(credit), int(inputs))
