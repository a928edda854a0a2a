"""The derivations of a stratum in which equivalences form classes, found in an update of it, and where they fire."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import Scratch, Sink
from elastalog.backends.kernel.execution.delta_variant import Phase, Setting
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.merging.merging_levels import MergingLevels
from elastalog.backends.kernel.merging.merging_plan import MergingPlan, Telling
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.rows import distinct
from elastalog.backends.watch import Watch

_MOST = 1 << 20
"""Derivations that are held before they are looked at: to ask for levels takes a look at whole classes."""


class MergingDerivations:
    """Runs variants, and keeps the heads that they find until somebody takes them. A derivation may be found twice."""

    def __init__(
        self,
        plan: MergingPlan,
        relations: dict[str, KernelRelation],
        levels: MergingLevels,
        watch: Watch,
        scratch: Scratch,
    ) -> None:
        self._plan = plan
        self._relations = relations
        self._levels = levels
        self._watch = watch
        self._setting = Setting(relations, plan.flat, scratch)
        self._held: dict[int, tuple[Telling, list[Matrix]]] = {}
        self._number = 0
        self._found: dict[str, list[Matrix]] = {}

    def through_changes(self, below: Mapping[str, Vector], phase: Phase) -> None:
        """What fired through what has gone below, or fires through what has come."""
        for name, changed in below.items():
            for telling in self._plan.forward.get(name, ()):
                self._run([telling], telling.variant.concerned(self._relations[name], changed, phase), phase)

    def through(self, relation: str, entries: Vector, phase: Phase) -> None:
        """What fired, or fires, through facts of the stratum."""
        tellings = self._plan.forward.get(relation, ())
        whole = self._levels.is_forgetting  # classes, and not some rows of them
        self._run([telling for telling in tellings if not (whole and telling.is_repeated)], entries, phase)

    def of(self, name: str, facts: Matrix) -> None:
        """What has some heads still; of an equivalence, what is a pair of a member of these."""
        plan = self._plan
        wanted = self._relations[plan.wanted_name(name)] = plan.wanted(name, facts)
        for telling in plan.again[name]:
            sink = self._sink(telling)
            telling.variant.run_range(self._setting, 0, wanted.used, None, sink)

    def take(self) -> dict[str, tuple[Matrix, Vector]]:
        """The heads that have been found, and the levels at which their derivations fire, by relation."""
        self._look()
        found = {name: np.concatenate(parts) for name, parts in self._found.items()}
        self._found.clear()
        return {name: (np.ascontiguousarray(heads[:, :-1]), heads[:, -1]) for name, heads in found.items()}

    def _run(self, tellings: Iterable[Telling], entries: Vector, phase: Phase) -> None:
        if len(entries):
            for telling in tellings:
                sink = self._sink(telling)
                telling.variant.run(self._setting, entries, phase, sink)

    def _sink(self, telling: Telling) -> Sink:
        _, held = self._held.setdefault(id(telling), (telling, []))
        name, width = telling.head, telling.width

        def hold(block: Matrix, used: int) -> None:
            self._watch.derived(used)
            some = block[:used]
            some = some[self._levels.are_news(name, np.ascontiguousarray(some[:, :width]))]
            if len(some):
                held.append(some)
                self._number += len(some)
                if self._number > _MOST:
                    self._look()

        return hold

    def _look(self) -> None:
        """Finds out where the derivations fire that are held."""
        for telling, held in self._held.values():
            if held:
                some = held[0] if len(held) == 1 else np.concatenate(held)
                held.clear()
                self._found.setdefault(telling.head, []).append(distinct(self._firing(telling, some)))
        self._number = 0

    def _firing(self, telling: Telling, some: Matrix) -> Matrix:
        """Heads, and behind each the level at which its derivation fires."""
        width = telling.width
        highest = np.maximum(some[:, -LEVELS], self._levels.reached)
        for i, name in enumerate(telling.read):
            pairs = np.ascontiguousarray(some[:, width + 2 * i : width + 2 * i + 2])
            highest = np.maximum(highest, self._levels.of_pairs_read(name, pairs))
        found = np.empty((len(some), width + 1), np.int32)
        found[:, :width], found[:, width] = some[:, :width], highest + 1
        return found
