"""DRed: delete everything that might go, find again what still follows, then insert.

Invariant: after every epoch the materialisation I is the fixpoint; of each fact it is known only whether it is
explicit.

With D the facts deleted and A those added so far, dead = D \\ A and born = A \\ D, a stratum goes through three phases:

    over-delete   ND := E⁻ ∪ heads inst[I, I : dead, born]
                  repeat  ΔD := ND \\ D;  ND := heads inst[surviving : ΔD];  D := D ∪ ΔD
    rederive      R := {F ∈ D : F is explicit, or a rule derives F under surviving evaluation}
    insert        NA := R ∪ E⁺ ∪ heads inst[new : born, dead]
                  repeat  ΔA := NA \\ ((I \\ D) ∪ A);  A := A ∪ ΔA;  NA := heads inst[new : ΔA]

Evaluating over-deletion before ΔD enters D is what makes every derivation be considered once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import DELETING, Change, Evaluation, Facts, SetMaintenance, size, union
from elastalog.evaluation.strategies.by_stratum import Strategy, insert
from elastalog.evaluation.strategies.look_ahead import Marks
from elastalog.evaluation.strategies.protocol import Counters


class DRed(Strategy):
    name: ClassVar[str] = "dred"
    annotation: ClassVar[Annotation] = Annotation(Support.EXPLICIT)
    is_memoryless: ClassVar[bool] = True

    marks: ClassVar[tuple[Marks, ...]] = (Marks.NONE, Marks.EAGER, Marks.LINKED)
    marking_options: ClassVar[Mapping[str, bool]] = {"is_transitive": True, "is_positive": True}

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        deleted = over_delete(stratum, self.marking.candidates(stratum), counters)
        returning = stratum.returning()
        again = rederive(stratum, deleted)
        counters.rederivations += size(again)
        insert(stratum, union(again, self.marking.assured(stratum)), counters)
        self.marking.gather_returning(stratum, returning, counters)


def over_delete(stratum: SetMaintenance, marked: Facts, counters: Counters) -> Facts:
    """D of the stratum. Marked facts enter it at once."""
    given = union(stratum.explicit_losses(), marked)
    found = union(given, stratum.heads_of_changes(Evaluation.OLD))
    counters.over_deletions -= size(given)
    deleted = stratum.propagate(found, Evaluation.SURVIVING, Change.NOTHING, DELETING)
    counters.over_deletions += size(deleted)
    return deleted


def rederive(stratum: SetMaintenance, deleted: Facts) -> Facts:
    """Which of the deleted facts still hold without what was deleted."""
    return union(stratum.explicit_ones(deleted), stratum.derivable(deleted, by_recursive=True))
