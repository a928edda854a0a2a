"""Small random programs over relations without attributes, with an evaluator of a few lines: every part of an update
can be tried.

Derived relations are numbered; a rule uses those below negated or not, and its own and the next one positively
(recursion within a pair).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from random import Random

Rule = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Head, positive and negated body."""


@dataclass(frozen=True)
class Propositional:
    """Rules by stratum, and the explicit facts of two epochs. Some derived relations have explicit facts too."""

    strata: tuple[tuple[Rule, ...], ...]
    names: tuple[str, ...]
    before: frozenset[str]
    after: frozenset[str]

    @property
    def text(self) -> str:
        lines = [f".decl {name}()" for name in self.names]
        for stratum in self.strata:
            for head, positive, negative in stratum:
                body = [f"{name}()" for name in positive] + [f"!{name}()" for name in negative]
                lines.append(f"{head}() :- {', '.join(body)}.")
        return "\n".join(lines) + "\n"

    @property
    def elements(self) -> list[tuple[str, str]]:
        return [("+" if name in self.after else "-", name) for name in sorted(self.before ^ self.after)]

    @lru_cache(maxsize=8192)  # noqa: B019
    def facts(self, explicit: frozenset[str]) -> frozenset[str]:
        """Everything that follows."""
        found = set(explicit)
        for stratum in self.strata:
            grows = True
            while grows:
                new = {h for h, p, n in stratum if found.issuperset(p) and found.isdisjoint(n)} - found
                found |= new
                grows = bool(new)
        return frozenset(found)

    def after_undoing(self, undone: Iterable[str]) -> frozenset[str]:
        """The facts of the later epoch with some elements undone."""
        return self.facts(self.after.symmetric_difference(undone))

    def after_applying(self, applied: Iterable[str]) -> frozenset[str]:
        """The facts of the earlier epoch with some elements applied."""
        return self.facts(self.before.symmetric_difference(applied))

    def smallest_undoing(self, unwanted: set[str], missing: set[str], kept: frozenset[str] = frozenset()) -> int | None:
        """The least number of elements to undo, those in `kept` not among them, so that no fault is left."""
        names = sorted((self.before ^ self.after) - kept)
        for size in range(len(names) + 1):
            for part in combinations(names, size):
                facts = self.after_undoing(part)
                if facts.isdisjoint(unwanted) and facts.issuperset(missing):
                    return size
        return None

    def smallest_reproducing(self, unwanted: set[str], missing: set[str]) -> int:
        """The least number of elements that show all faults."""
        names = sorted(self.before ^ self.after)
        for size in range(len(names) + 1):
            for part in combinations(names, size):
                facts = self.after_applying(part)
                if facts.issuperset(unwanted) and facts.isdisjoint(missing):
                    return size
        raise AssertionError("the whole update does not show its own faults")


def random_propositional(seed: int, *, negation: bool, most_inputs: int = 10) -> Propositional:
    choice = Random(seed)
    inputs = [f"e{i}" for i in range(choice.randint(3, most_inputs))]
    below = list(inputs)
    strata: list[tuple[Rule, ...]] = []
    for number in range(choice.randint(1, 4)):
        own = [f"p{number}", f"q{number}"]
        rules: list[Rule] = []
        for _ in range(choice.randint(2, 7)):
            positive = choice.sample(below, min(len(below), choice.randint(1, 2)))
            if choice.random() < 0.4:
                positive.append(choice.choice(own))
            negative = choice.sample(below, 1) if negation and choice.random() < 0.5 else []
            rules.append((choice.choice(own), tuple(positive), tuple(n for n in negative if n not in positive)))
        strata.append(tuple(rules))
        below += own
    changeable = inputs + [name for name in below if name not in inputs and choice.random() < 0.15]
    before = frozenset(name for name in changeable if choice.random() < 0.5)
    after = frozenset(name for name in changeable if choice.random() < 0.5)
    return Propositional(tuple(strata), tuple(below), before, after)
