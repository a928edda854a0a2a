"""Bootstrap with global levels: the level of a fact is the height of its lowest proof, across strata (algorithm 4.6).

Three ways, from cheap to dear:
- the relations read below have one level each: every clause then fires at one level, and clauses run in the order of
  theirs;
- no recursion: one pass over all derivations, each head keeping its lowest level and how many derivations attain it;
- recursion: levels in order; a derivation that fires later than the next level, because of a fact of a lower relation,
  waits in a bucket queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from elastalog.backends.kernel.bootstrap.bodies import Body, StratumBodies
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate
from elastalog.backends.kernel.bootstrap.machine_rounds import GlobalLevels, MachineRounds
from elastalog.backends.kernel.bootstrap.workers import Progress, Run, Workers, whole_run
from elastalog.backends.kernel.execution.bound_variant import BLOCK, Bounds, BoundVariant, Scratch, Sink
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant, Setting
from elastalog.backends.kernel.machine import bucket_queue, layout
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.memory import Matrix, Vector, state_vector
from elastalog.backends.kernel.store.relation import KernelRelation, highest_now, note_levels
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.kernel.store.set_table import USED
from elastalog.backends.watch import Watch
from elastalog.diagnostics.source import Source
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum
from elastalog.planning.variants import plan_full
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


class GlobalLevelEvaluation:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint with global levels."""

    def __init__(
        self,
        stratum: LogicalStratum,
        program: LogicalProgram,
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        workers: Workers,
        watch: Watch,
    ) -> None:
        self.stratum = stratum
        self.relations = relations
        self.dictionary = dictionary
        self.source = program.checked.source
        self.flat = program.flat
        self.workers = workers
        self.watch = watch
        self.names = frozenset(stratum.relations)
        self.own = [relations[name] for name in stratum.relations]

    def run(self) -> None:
        """Chooses the way and goes it."""
        if self.stratum.is_recursive:
            self._by_level()
        else:
            fires = [self._uniform_level(clause) for clause in self.stratum.clauses]
            if all(level is not None for level in fires):
                self._by_clause([level or 0 for level in fires])
            else:
                self._one_pass()
        for relation in self.own:
            relation.present = relation.used
            note_levels(relation)

    def _uniform_level(self, clause: Clause) -> int | None:
        """The level at which all derivations of a clause fire, None if it depends on the derivation."""
        highest = 0
        for scan in clause.scans:
            relation = self.relations[scan.relation]
            if scan.relation in self.flat:
                continue
            if not relation.is_settled or relation.lowest != relation.highest:
                return None
            highest = max(highest, relation.highest)
        return highest + 1

    def _by_clause(self, fires: list[int]) -> None:
        statistics = KernelStatistics(self.relations)
        for level in sorted(set(fires)):
            before = {relation.name: relation.used for relation in self.own}
            variants = [
                BoundVariant(plan_full(clause, statistics), self.names, self.dictionary, self.source)
                for clause, fires_at in zip(self.stratum.clauses, fires, strict=True)
                if fires_at == level
            ]
            runs = [whole_run(variant, self.relations) for variant in variants]
            self.workers.run_round(runs, Bounds(before, before), before)
            for relation in self.own:
                relation.level[before[relation.name] : relation.used] = level
            self.watch.iteration(self.stratum.number, level, sum(r.used - before[r.name] for r in self.own))

    def _one_pass(self) -> None:
        statistics = KernelStatistics(self.relations)
        setting = Setting(self.relations, self.flat, Scratch(self.watch))
        state: Vector = state_vector()
        for clause in self.stratum.clauses:
            head = self.relations[clause.head]

            def sink(block: Matrix, used: int, head: KernelRelation = head) -> None:
                head.reserve(head.used + used)
                state[USED] = head.used
                bookkeeping.insert_lowest(block, used, head.rows, head.table, head.shift, head.level, head.count, state)
                head.used = int(state[USED])
                self.watch.derived(used)

            variant = DeltaVariant(plan_full(clause, statistics), self.dictionary, self.source)
            variant.run_all(setting, sink)
        self.watch.iteration(self.stratum.number, 1, sum(relation.used for relation in self.own))

    def _by_level(self) -> None:
        lower = [self.relations[name] for name in self.stratum.reads]
        variants = StratumVariants(self.stratum, self.relations, self.dictionary, self.source)
        workers = self.workers
        if not all(relation.is_settled and relation.highest == 0 for relation in lower):
            workers = _LevelWorkers(self.own, self.relations, self.workers, variants, self.flat, self.source)
        # If everything below is at level 0, iterations are levels anyway.
        evaluate(self.stratum, variants, self.relations, workers, self.watch)


class _LevelWorkers(Workers):
    """Iterations are levels: what fires later than the next one waits, and when nothing is found the lowest level that
    something waits for is next. A clause whose facts from below are all at lower levels needs no levels in its
    bindings."""

    most_work: ClassVar[int] = SETTINGS.level_machine_work

    def __init__(
        self,
        own: Sequence[KernelRelation],
        relations: Mapping[str, KernelRelation],
        workers: Workers,
        variants: StratumVariants,
        flat: frozenset[str],
        source: Source,
    ) -> None:
        super().__init__(relations, workers.watch, workers.crew, variants.dictionary)
        self._names = frozenset(relation.name for relation in own)
        self._flat = flat
        self._source = source
        self._bind = partial(DeltaVariant, dictionary=variants.dictionary, source=source)
        self._carrying: dict[BoundVariant, DeltaVariant] = {}
        self._waiting = BucketQueue(own, self.watch)
        self._setting = Setting(relations, flat, Scratch(self.watch))
        self._known_highest: dict[str, int] = {}
        self._level = 1
        self._small = 0

    def run_round(self, runs: Sequence[Run], bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs what may fire later with levels."""
        level, waiting = self._level, self._waiting
        waiting.insert(level, counted)
        plain: list[Run] = []
        for run in runs:
            if run.body.members[0].clause.is_recursive and level > self._highest_below(run.body.members[0].clause):
                plain.append(run)
                continue
            for variant in run.body.members:
                carrying = self._carrying.get(variant)
                if carrying is None:
                    carrying = self._carrying[variant] = self._bind(variant.planned)
                sink = waiting.sink(variant, level, counted)
                if variant.clause.is_recursive:
                    carrying.run_range(self._setting, run.start, run.stop, bounds, sink)
                else:
                    carrying.run_all(self._setting, sink)
        super().run_round(plain, bounds, counted)

    def next_iteration(self, iteration: int, found: int) -> int | None:
        if found:
            self._level = iteration + 1
        elif self._waiting.is_empty:
            return None
        else:
            self._level = self._waiting.next_level
        return self._level

    def prefer_machine(self, found: int, steps: int) -> bool:
        """If levels stay small."""
        self._small = self._small + 1 if found <= SETTINGS.few_at_a_level else 0
        return self._small >= SETTINGS.level_machine_after

    def further_rounds(self, stratum: StratumBodies) -> MachineRounds:
        bodies = [Body([variant]) for body in stratum.bodies for variant in body.members]
        alone = StratumBodies(stratum.number, stratum.own, bodies, stratum.relations, stratum.dictionary)
        return MachineRounds(alone, self.watch, GlobalLevels(self._flat, self._waiting.workspace))

    def stay_in_machine(self, progress: Progress) -> bool:
        """Levels are not small any more, or plans are others."""
        self._level, self._small = progress.iteration, 0
        return False

    def _highest_below(self, clause: Clause) -> int:
        """Above which level of its facts in the stratum a clause always fires one level higher."""
        return max(
            (self._highest(scan.relation) for scan in clause.scans if scan.relation not in self._names), default=0
        )

    def _highest(self, name: str) -> int:
        """No fact of a lower relation has a higher level; of one that the update under way has changed too."""
        highest = self._known_highest.get(name)
        if highest is None:
            highest = self._known_highest[name] = highest_now(self.relations[name])
        return highest


class BucketQueue:
    """Derivations of a stratum that fire later than the next level (see `machine.bucket_queue`), filed under the places
    of their heads in `own`. When their level has come, their heads are inserted like those that are found at that
    time."""

    def __init__(self, own: Sequence[KernelRelation], watch: Watch) -> None:
        self._own = own
        self._place = {relation.name: place for place, relation in enumerate(own)}
        self._watch = watch
        words = max(relation.width for relation in own)
        self._block: Matrix = np.empty((BLOCK, words), np.int32)
        self.workspace = Workspace(words)

    def sink(self, variant: BoundVariant, level: int, counted: Mapping[str, int]) -> Sink:
        """Takes derivations: those that fire at `level` are inserted, the others kept."""
        place = self._place[variant.clause.head]
        head = self._own[place]
        counted_from = counted[head.name]
        workspace = self.workspace
        machine = workspace.machine

        def take(block: Matrix, used: int) -> None:
            self._watch.derived(used)
            variant.derivations += used
            while reason := bucket_queue.put_off_block(workspace.address, block, used, level, place, head.width):
                if reason == layout.NO_NODES:
                    workspace.reserve_nodes(used)
                else:
                    workspace.reserve_levels(machine.highest)
            head.insert(block, 0, machine.kept, counted_from)

        return take

    def insert(self, level: int, counted: Mapping[str, int]) -> None:
        """Inserts the heads of the derivations that fire at a level."""
        workspace, block = self.workspace, self._block
        while filled := bucket_queue.take_due(workspace.address, level, block):
            head = self._own[workspace.machine.full]
            head.insert(block, 0, filled, counted[head.name])

    @property
    def is_empty(self) -> bool:
        return not self.workspace.is_waiting

    @property
    def next_level(self) -> int:
        """The lowest level that something waits for."""
        return self.workspace.next_level
