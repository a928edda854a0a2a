"""The last phase of the strategies that maintain sets."""

from __future__ import annotations

from elastalog.backends.sets import ADDING, NO_MARK, Change, Evaluation, Facts, Mark, SetMaintenance, size, union
from elastalog.evaluation.counters import Counters


def insert(stratum: SetMaintenance, again: Facts, counters: Counters) -> None:
    """Adds what was found again, what is explicit now, and what follows: A of the stratum. Every new derivation is
    counted, where derivations are."""
    given = union(again, stratum.explicit_gains())
    found = union(given, stratum.heads_of_changes(Evaluation.NEW, Change.GIVE))
    counters.insertions -= size(stratum.having(given, NO_MARK, Mark.PRESENT))
    counters.insertions += size(stratum.propagate(found, Evaluation.NEW, Change.GIVE, ADDING))
