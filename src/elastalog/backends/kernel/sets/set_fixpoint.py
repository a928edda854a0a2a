"""Bootstrap of one stratum for the strategies that maintain sets: semi-naive evaluation that counts every derivation.

Semi-naive evaluation enumerates each derivation once: a non-recursive rule runs in the first iteration only, and a
derivation by a recursive rule belongs to the iteration after its latest body fact. So counting whatever is inserted,
also what is there already, gives C_nr and C_r."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap.rounds import SettlingWorkers
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.sets.set_operators import RECURSIVE
from elastalog.backends.kernel.store import inserting
from elastalog.backends.kernel.store.annotations import DERIVED
from elastalog.backends.kernel.store.memory import NO_WORDS, Matrix, Vector, longer
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum


class CountingWorkers(SettlingWorkers):
    """Counts derivations by recursive rules apart, and those by others in `count`, where that is kept; in the end facts
    of the stratum have the annotations of `set_operators`."""

    def __init__(
        self, stratum: LogicalStratum, relations: Mapping[str, KernelRelation], watch: Watch, support: Support
    ) -> None:
        super().__init__(relations, watch)
        self._support = support
        self._explicit = {name: relations[name].used for name in stratum.relations}
        self._recursive: dict[str, Vector] = {}

    def finish(self) -> None:
        for name, first_derived in self._explicit.items():
            relation = self.relations[name]
            level = relation.level[: relation.used]
            level[:] = RECURSIVE * self._recursive_counts(relation)[: relation.used]
            level[first_derived:] += DERIVED

    def _recursive_counts(self, relation: KernelRelation) -> Vector:
        """How often recursive rules have derived each fact; as long as the relation has room for."""
        counts = self._recursive.get(relation.name, NO_WORDS)
        if len(counts) < len(relation.rows):
            counts = self._recursive[relation.name] = longer(counts, len(relation.rows), 0)
        return counts

    def take(self, variant: BoundVariant, block: Matrix, used: int) -> None:
        head, is_recursive = self.relations[variant.clause.head], variant.clause.is_recursive
        is_kept = self._support is Support.EVERY or (self._support is Support.NONRECURSIVE and not is_recursive)
        done = 0
        while done < used:
            first = head.used
            counts = NO_WORDS if not is_kept else self._recursive_counts(head) if is_recursive else head.count
            done = inserting.insert(head.home, block, done, used, counts, 0)
            if is_recursive or not is_kept:
                head.count[first : head.used] = self._support is Support.EXPLICIT
            if done < used:
                head.reserve(head.used + 64)
        self.watch.derived(used)
