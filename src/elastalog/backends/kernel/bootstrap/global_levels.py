"""Bootstrap with global levels: the level of a fact is the height of its lowest proof, across strata (algorithm 4.6).

Three ways, from cheap to dear:
- the relations read below have one level each: every clause then fires at one level, and clauses run in the order of
  theirs;
- no recursion: one pass over all derivations, each head keeping its lowest level and how many derivations attain it;
- recursion: levels in order; a derivation that fires later than the next level, because of a fact of a lower relation,
  waits in a bucket queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate
from elastalog.backends.kernel.bootstrap.rounds import (
    NO_LIMIT,
    GlobalLevels,
    MachineRounds,
    Progress,
    Workers,
    first_progress,
)
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store import bookkeeping
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation, highest_now, note_levels
from elastalog.planning.logical import Clause, LogicalStratum


def evaluate_globally(
    stratum: LogicalStratum, variants: StratumVariants, flat: frozenset[str], workers: Workers
) -> None:
    """Brings the relations of a stratum, which hold their explicit facts, to the fixpoint with global levels. Those of
    the relations that are `flat` have level 0."""
    own = [workers.relations[name] for name in stratum.relations]
    if stratum.is_recursive:
        evaluate(stratum, variants, _LevelWorkers(own, stratum.reads, workers, flat))
    else:
        fires = [_uniform_level(variant.clause, workers.relations, flat) for variant in variants.once]
        known = {level for level in fires if level is not None}
        if None in fires:
            known.clear()
            _in_one_pass(own, variants, flat, workers)
        for level in sorted(known):
            bodies = [one for one, at in zip(variants.once, fires, strict=True) if at == level]
            before = {relation.name: relation.used for relation in own}
            at_level = StratumBodies(stratum.number, list(before), bodies, variants.binder)
            workers.run_round(at_level, Progress(before, before, level, is_first=True))
    for relation in own:
        relation.present = relation.used
        note_levels(relation)


def _uniform_level(clause: Clause, relations: Mapping[str, KernelRelation], flat: frozenset[str]) -> int | None:
    """The level at which all derivations of a clause fire, None if it depends on the derivation."""
    highest = 0
    for scan in clause.scans:
        relation = relations[scan.relation]
        if scan.relation in flat:
            continue
        if not relation.is_settled or relation.lowest != relation.highest:
            return None
        highest = max(highest, relation.highest)
    return highest + 1


def _in_one_pass(
    own: Sequence[KernelRelation], variants: StratumVariants, flat: frozenset[str], workers: Workers
) -> None:
    def insert(variant: BoundVariant, block: Matrix, used: int) -> None:
        head = workers.relations[variant.clause.head]
        head.reserve(head.used + used)
        bookkeeping.insert_lowest(head.home, block, used)
        workers.watch.derived(used)

    levels = GlobalLevels(flat, Workspace(), NO_LIMIT)
    MachineRounds(variants.laid_out, workers.watch, insert, levels).run_from(first_progress(own))


class _LevelWorkers(Workers):
    """Iterations are levels: what fires later than the next one waits, and when nothing is found the lowest level that
    something waits for is next. Above the facts from below nothing has to, and bindings need no levels."""

    def __init__(
        self, own: Sequence[KernelRelation], reads: Iterable[str], workers: Workers, flat: frozenset[str]
    ) -> None:
        super().__init__(workers.relations, workers.watch, workers.crew)
        below = (self.relations[name] for name in reads if name not in flat)
        highest = max((highest_now(relation) for relation in below), default=0)
        # A fact at a level leads to derivations that fire at the next; what waits has been inserted then.
        self._until = highest + 2 if highest else 0
        self._levels = GlobalLevels(flat, Workspace(max(relation.width for relation in own)), self._until)

    def rounds(self, stratum: StratumBodies, progress: Progress, last: MachineRounds | None = None) -> MachineRounds:
        if last is not None and last.carries_levels != (progress.iteration < self._until):
            last = None
        if progress.iteration < self._until and (last is None or last.planned is not stratum.bodies):
            return MachineRounds(stratum, self.watch, global_levels=self._levels)
        return super().rounds(stratum, progress, last)
