"""B/F^c: backward/forward checking with a counter. Nothing is deleted that can be proved, so nothing has to be found
again.

Invariant: after every epoch C_nr(F) = [F is explicit] + number of derivations of F by non-recursive rules, for every
fact F of the materialisation, and 0 for absent facts.

A fact that lost a derivation is *checked*: backwards, its derivations by recursive rules and those of their body
facts are searched for facts with other support (C_nr > 0); forwards, what follows from those is proved. Three sets
for the stratum: C (checked), P (proved, ⊆ C), Y (delayed: follows from proved facts, but was not checked). Proofs
only use what fires in the old *and* in the new epoch, so a fact that loses all that but gains a new derivation is
deleted and inserted again.

    delete     every F in E⁻ ⊎ inst_nr[I, I : dead, born]: ND += F; C_nr(F) −= 1
               ND += heads inst_r[I, I : dead, born]
               repeat  CHECK(ND \\ D);  ΔD := (ND \\ D) \\ P;  ND := heads inst_r[surviving : ΔD];  D := D ∪ ΔD
    CHECK(Q)   frontier := Q \\ C
               while frontier ≠ ∅:  C := C ∪ frontier;  PROPAGATE({F ∈ frontier : F ∈ Y or C_nr(F) > 0})
                                    frontier := (body facts, in this stratum, of derivations of frontier \\ P) \\ C
    PROPAGATE  repeat  ΔP := (NP ∩ C) \\ P;  Y := Y ∪ (NP \\ C);  P := P ∪ ΔP
                       NP := heads inst_r[P ∪ lower facts of I \\ dead, I ∪ A : ΔP]
    insert     as DRed^c, without C_r

After CHECK every checked fact is proved, or all its derivations have been searched and all their body facts checked:
"checked and not proved" means "gone".

B/F has no counter: a fact has support from outside the stratum's recursion if it is explicit or a non-recursive rule
derives it under surviving evaluation, which is found by evaluating those rules backwards. Of each fact it is known only
whether it is explicit.
"""

from __future__ import annotations

from typing import ClassVar

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.sets import NO_MARK, Change, Evaluation, Facts, Mark, SetMaintenance, size, union, without
from elastalog.evaluation.strategies.by_stratum import Strategy, insert
from elastalog.evaluation.strategies.look_ahead import Marks
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.settings import SETTINGS


class BFC(Strategy):
    name: ClassVar[str] = "bfc"
    annotation: ClassVar[Annotation] = Annotation(Support.NONRECURSIVE)
    is_memoryless: ClassVar[bool] = True

    marks: ClassVar[tuple[Marks, ...]] = (Marks.NONE, Marks.EAGER, Marks.LINKED)

    is_counting: ClassVar[bool] = True
    """Whether `supported` is C_nr > 0."""

    def supported(self, stratum: SetMaintenance, facts: Facts) -> Facts:
        """Which of some facts hold whatever becomes of the other facts of the stratum."""
        return stratum.with_nonrecursive_support(facts)

    def maintain(self, stratum: SetMaintenance, counters: Counters) -> None:
        self.delete(stratum, self.marking.candidates(stratum), counters)
        insert(stratum, {}, counters)

    def delete(self, stratum: SetMaintenance, marked: Facts, counters: Counters) -> None:
        given = union(stratum.explicit_losses(), marked)
        found = stratum.heads_of_changes(Evaluation.OLD, Change.TAKE)
        found = union(given, found)
        counters.deletions += size(found) - size(given)
        rounds = 0
        while queries := stratum.having(found, Mark.PRESENT):
            rounds += 1
            if rounds > SETTINGS.bfc_plain_after and self.is_counting:
                rounds = 0
                found, number = stratum.delete_plainly(queries)
                counters.deletions += number
                if not (queries := found):
                    break
            self.check_queries(stratum, queries, counters)
            delta = stratum.having(queries, NO_MARK, Mark.PROVED)
            found = stratum.heads(Evaluation.SURVIVING, delta)
            counters.deletions += size(stratum.having(found, Mark.PRESENT, Mark.CHECKED))
            stratum.mark(delta, NO_MARK, removed=Mark.PRESENT)

    def check_queries(self, stratum: SetMaintenance, queries: Facts, counters: Counters) -> None:
        """Decides, for every query, whether it is proved."""
        frontier = stratum.move(queries, NO_MARK, Mark.CHECKED, added=Mark.CHECKED)
        while frontier:
            self.propagate(stratum, frontier, counters)
            bodies = stratum.bodies(stratum.having(frontier, NO_MARK, Mark.PROVED))
            frontier = stratum.move(bodies, NO_MARK, Mark.CHECKED, added=Mark.CHECKED)
            counters.backward += size(frontier)

    def propagate(self, stratum: SetMaintenance, checked: Facts, counters: Counters) -> None:
        """Proves those of the newly checked facts that have support, and what follows from them."""
        delayed = stratum.having(checked, Mark.DELAYED)
        rest = stratum.having(checked, NO_MARK, Mark.DELAYED) if delayed else checked
        found = union(delayed, self.supported(stratum, rest))
        while delta := stratum.move(found, Mark.CHECKED, Mark.PROVED, added=Mark.PROVED):
            heads = stratum.heads(Evaluation.PROVED, delta)
            fresh = stratum.move(heads, NO_MARK, Mark.CHECKED | Mark.DELAYED, added=Mark.DELAYED)
            found = stratum.having(heads, Mark.CHECKED, Mark.PROVED)
            counters.forward += size(fresh) + size(stratum.having(found, NO_MARK, Mark.DELAYED))


class BF(BFC):
    name: ClassVar[str] = "bf"
    annotation: ClassVar[Annotation] = Annotation(Support.EXPLICIT)
    is_counting: ClassVar[bool] = False

    def supported(self, stratum: SetMaintenance, facts: Facts) -> Facts:
        explicit = stratum.explicit_ones(facts)
        return union(explicit, stratum.derivable(without(facts, explicit), by_recursive=False))
