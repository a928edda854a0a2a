"""Dense: as elastic, with the number of derivations of every fact at *every* level.

Invariant (the dense state of the papers, exact after every epoch): a derivation fires at 1 + the highest first level
of its body facts (facts of lower strata count as level 0), and

    counts(t)[k] = number of derivations of t that fire at k, for k ≥ 1,     counts(t)[0] = [t is explicit],
    first(t)     = the least k with counts(t)[k] > 0  =  level(t) of the sparse state.

Losses go first: each old derivation through a fact that leaves its first level is taken off the counts of its head,
and a head whose first count reaches 0 leaves its level in turn. A fact that left waits for its next non-zero level,
without a search backwards; gains then settle in the order of their levels, and every derivation through a fact that
settles moves from the level at which it fired before to that at which it fires now. Memory is the price: as many
counts as levels at which facts are derived.
"""

from __future__ import annotations

from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.protocol import Backend
from elastalog.evaluation.strategies.by_stratum import MaintainingStrategy
from elastalog.evaluation.strategies.elastic import maintain
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.planning.logical import LogicalStratum


class Dense(MaintainingStrategy):
    name: ClassVar[str] = "dense"
    annotation: ClassVar[Annotation] = Annotation(Support.VECTORS)

    def update_rules(self, backend: Backend, stratum: LogicalStratum, counters: Counters) -> None:
        backend.maintain(stratum, maintain, is_portable=False)
