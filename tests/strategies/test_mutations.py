"""Mistakes that are easily made in these algorithms and that ordinary examples miss: random cases must notice each of
them.

The seeds are of cases that do; a mutation that none of them notices any more means that the tests have lost their
teeth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from elastalog.backends.kernel.sets.set_update import PHASES, StratumSets
from elastalog.backends.kernel.store.annotations import COUNT, IS, NEW, WAS, view
from elastalog.backends.sets import Change, Evaluation, Facts, Mark, Rules
from tests.generators.construction import Features
from tests.strategies.running import failure

SMALL = Features(aggregates=False, arithmetic=False, symbols=False, disjunctions=False)
Patch = pytest.MonkeyPatch
ORIGINAL = StratumSets._wave


def sets_for_multisets(patch: Patch) -> None:
    """A counter changes by one for every head, however many derivations it has."""

    def wave(
        self: StratumSets, evaluation: Evaluation, delta: Facts, negated: Facts, rules: Rules, change: Change,
        **options: Any,
    ) -> Facts:  # fmt: skip
        if change is Change.NOTHING:
            return ORIGINAL(self, evaluation, delta, negated, rules, change, **options)
        found: dict[str, list[Any]] = {}
        for some, column, step in ((Rules.NONRECURSIVE, COUNT, 1), (Rules.RECURSIVE, NEW, 2)):
            if rules in (Rules.ALL, some):
                hit = ORIGINAL(self, evaluation, delta, negated, some, Change.NOTHING, **options)
                for name, entries in hit.items():
                    self._relations[name].touched[entries, column] += step * change.value
                    found.setdefault(name, []).append(entries)
        return {name: np.unique(np.concatenate(entries)) for name, entries in found.items()}

    patch.setattr(StratumSets, "_wave", wave)


def no_recursive_insertion(patch: Patch) -> None:
    """Changes of lower strata reach only the non-recursive rules when they are inserted (a misprint)."""

    def wave(
        self: StratumSets, evaluation: Evaluation, delta: Facts, negated: Facts, rules: Rules, *rest: Any,
        **options: Any,
    ) -> Facts:  # fmt: skip
        if evaluation is Evaluation.NEW and rules is Rules.ALL:
            rules = Rules.NONRECURSIVE
        return ORIGINAL(self, evaluation, delta, negated, rules, *rest, **options)

    patch.setattr(StratumSets, "_wave", wave)


def double_counting(patch: Patch) -> None:
    """Goals before the start see the delta too."""
    for evaluation, phase in list(PHASES.items()):
        patch.setitem(PHASES, evaluation, replace(phase, sees_before=phase.sees))


def negation_in_the_old_epoch_only(patch: Patch) -> None:
    """What survives has its negated literals tested in I instead of I ∪ A."""
    wrong = replace(PHASES[Evaluation.SURVIVING], lacks=view(0, WAS), lacks_before=view(0, WAS))
    patch.setitem(PHASES, Evaluation.SURVIVING, wrong)


def negation_in_the_new_epoch_only(patch: Patch) -> None:
    """What survives has its negated literals tested in (I \\ D) ∪ A instead of I ∪ A."""
    wrong = replace(PHASES[Evaluation.SURVIVING], lacks=view(0, IS), lacks_before=view(0, IS))
    patch.setitem(PHASES, Evaluation.SURVIVING, wrong)


def over_deletion_after_the_deletion(patch: Patch) -> None:
    """Facts leave before their consequences are followed, so that those through two of them are missed."""

    def wave(self: StratumSets, evaluation: Evaluation, delta: Facts, *rest: Any, **options: Any) -> Facts:
        if evaluation is Evaluation.SURVIVING:
            self.mark(delta, Mark(0), removed=Mark.PRESENT)
        return ORIGINAL(self, evaluation, delta, *rest, **options)

    patch.setattr(StratumSets, "_wave", wave)


MUTATIONS: list[tuple[Callable[[Patch], None], str, Features, tuple[int, ...]]] = [
    (sets_for_multisets, "dredc", SMALL, (5, 11, 12)),
    (sets_for_multisets, "bfc", SMALL, (5, 11, 12)),
    (no_recursive_insertion, "bfc", SMALL, (36, 43, 45)),
    (double_counting, "dredc", SMALL, (4, 5, 11)),
    (negation_in_the_old_epoch_only, "dred", SMALL, (0, 15, 39)),
    (negation_in_the_new_epoch_only, "dredc", SMALL, (11, 77, 101)),
    (over_deletion_after_the_deletion, "dred", SMALL, (5, 11, 23)),
]


@pytest.mark.parametrize(("mutation", "strategy", "features", "seeds"), MUTATIONS)
def test_mutation_is_noticed(
    mutation: Callable[[Patch], None], strategy: str, features: Features, seeds: tuple[int, ...], monkeypatch: Patch
) -> None:
    assert all(failure(seed, strategy, features) is None for seed in seeds)
    mutation(monkeypatch)
    assert any(failure(seed, strategy, features) is not None for seed in seeds)
