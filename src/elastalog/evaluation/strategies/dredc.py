"""DRed^c: DRed with counters. A fact that still has a derivation by a non-recursive rule is never deleted, and what
to find again is read off, without evaluating a rule.

Invariant: after every epoch, for every fact F of the materialisation,

    C_nr(F) = [F is explicit] + number of derivations of F by non-recursive rules,
    C_r(F)  = number of derivations of F by recursive rules,

and both are 0 for facts that are absent.

    over-delete   every F in E⁻ ⊎ inst_nr[I, I : dead, born]: ND += F; C_nr(F) −= 1
                  every F in inst_r[I, I : dead, born]:        ND += F; C_r(F)  −= 1
                  repeat  ΔD := {F ∈ ND \\ D : C_nr(F) = 0}
                          every F in inst_r[surviving : ΔD]:   ND += F; C_r(F)  −= 1
                          D := D ∪ ΔD
    rederive      R := {F ∈ D : C_r(F) > 0}
    insert        NA := R; every F in E⁺ ⊎ inst_nr[new : born, dead]: NA += F; C_nr(F) += 1
                           every F in inst_r[new : born, dead]:        NA += F; C_r(F)  += 1
                  repeat  ΔA := NA \\ ((I \\ D) ∪ A);  A := A ∪ ΔA
                          every F in inst_r[new : ΔA]:         NA += F; C_r(F)  += 1

All sums are over multisets: one step of a counter for every derivation. R is taken when over-deletion is over, never
during it, since recursive derivations may go in a circle.
"""

from __future__ import annotations

from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import DELETING_UNSUPPORTED, Change, Evaluation, Facts, SetMaintenance, size, union
from elastalog.evaluation.strategies.by_stratum import Strategy, insert
from elastalog.evaluation.strategies.protocol import Counters


class DRedC(Strategy):
    name: ClassVar[str] = "dredc"
    annotation: ClassVar[Annotation] = Annotation(Support.EVERY)
    is_memoryless: ClassVar[bool] = True

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        deleted = over_delete(stratum, counters)
        again = stratum.with_recursive_support(deleted)
        counters.rederivations += size(again)
        insert(stratum, again, counters)


def over_delete(stratum: SetMaintenance, counters: Counters) -> Facts:
    """D of the stratum. Facts with C_nr > 0 found on the way are not looked at again: from the first ΔD on, C_nr
    stands still."""
    given = stratum.explicit_losses()
    found = union(given, stratum.heads_of_changes(Evaluation.OLD, Change.TAKE))
    counters.over_deletions -= size(stratum.without_nonrecursive_support(given))
    deleted = stratum.propagate(found, Evaluation.SURVIVING, Change.TAKE, DELETING_UNSUPPORTED)
    counters.over_deletions += size(deleted)
    return deleted
