"""B/F: backward/forward checking without counters.

Invariant: after every epoch the materialisation is the fixpoint; of each fact it is known only whether it is explicit.

As B/F^c (see `bfc`), where a fact has support from outside the stratum's recursion if it is explicit or a
non-recursive rule derives it under surviving evaluation: found by evaluating those rules backwards instead of reading
a counter.
"""

from __future__ import annotations

from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import Facts, Rules, SetMaintenance, union, without
from elastalog.evaluation.strategies.bfc import BFC


class BF(BFC):
    name: ClassVar[str] = "bf"
    annotation: ClassVar[Annotation] = Annotation(Support.EXPLICIT)
    is_counting: ClassVar[bool] = False

    def supported(self, stratum: SetMaintenance, facts: Facts) -> Facts:
        explicit = stratum.explicit_ones(facts)
        return union(explicit, stratum.derivable(without(facts, explicit), Rules.NONRECURSIVE))
