"""What a backend offers to the strategies that maintain sets: DRed, DRed^c, Counting, B/F and B/F^c.

These algorithms speak of the previous materialisation I, the facts deleted so far D and those added so far A (D ⊆ I,
A ∩ I ⊆ D). A fact of a stratum carries two marks for them: WAS (it is in I) and PRESENT (it is in (I \\ D) ∪ A). Then

    dead = D \\ A = WAS and not PRESENT          I \\ dead      = WAS and PRESENT
    born = A \\ D = PRESENT and not WAS          (I \\ D) ∪ A  = PRESENT,

for the stratum at work and for finished ones alike. Further marks serve backward/forward checking.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntFlag
from typing import Protocol, TypeAlias

from elastalog.backends.protocol import Matrix, Vector
from elastalog.late import dataclass

Facts: TypeAlias = dict[str, Vector]
"""A set of facts that an update has touched, by relation; empty relations are left out, so that an empty set is
false. What the vectors hold is the backend's business."""


class Mark(IntFlag):
    """The marks of a fact during an update of its stratum. The kernel keeps them by these values.

    DELAYED: it follows from proved facts but was not checked; or it was added."""

    WAS = 1
    PRESENT = 2
    DELTA = 4
    CHECKED = 8
    PROVED = 16
    DELAYED = 32

    EXPECTED = 8
    """For a fact of a relation without rules: look-ahead has said that it will be deleted, or had said so before."""


NO_MARK = Mark(0)
ADDED = Mark.PRESENT | Mark.DELAYED
"""The marks of a fact that an update adds."""


class Evaluation(Enum):
    """What positive and negated atoms see: inst[Ip, In : ...] of the papers."""

    OLD = "positive facts in I, negation in I"
    SURVIVING = "positive facts in I \\ dead, negation in I ∪ A: what fires in both epochs"
    NEW = "positive facts and negation in (I \\ D) ∪ A"
    PROVED = "as SURVIVING, with facts of the stratum only if they are proved"


class Change(Enum):
    """What evaluation does to the counter of a head, once for every derivation."""

    NOTHING = 0
    TAKE = -1
    GIVE = 1


@dataclass(frozen=True, slots=True)
class Propagation:
    """Which of the facts found are the next delta: those with all of the required marks and none of the excluded ones
    and, if `is_unsupported`, with C_nr = 0. Marks are added when a fact enters the delta and removed when it leaves
    it."""

    required: Mark = NO_MARK
    excluded: Mark = NO_MARK
    added: Mark = NO_MARK
    removed: Mark = NO_MARK
    is_unsupported: bool = False


DELETING = Propagation(required=Mark.PRESENT, removed=Mark.PRESENT)
DELETING_UNSUPPORTED = Propagation(required=Mark.PRESENT, removed=Mark.PRESENT, is_unsupported=True)
ADDING = Propagation(excluded=Mark.PRESENT, added=ADDED)


class SetMaintenance(Protocol):
    """The maintenance of one stratum, under way. Evaluation enumerates each derivation once."""

    number: int
    """The number of the stratum."""

    own: tuple[str, ...]
    """The relations of the stratum."""

    below: Facts
    """The net changes of lower relations: dead ∪ born."""

    explicit: frozenset[str]
    """The relations without rules that the stratum reads or consists of."""

    has_rules: bool

    def explicit_losses(self) -> Facts:
        """E⁻ of the stratum; they are no longer explicit. Where C_nr is kept, each loses 1."""

    def explicit_gains(self) -> Facts:
        """E⁺ of the stratum; they are explicit now. Where C_nr is kept, each gains 1."""

    def heads(self, evaluation: Evaluation, delta: Facts) -> Facts:
        """The heads of inst_r[evaluation : delta]: derivations with a body fact in the delta, which is of the
        stratum."""

    def propagate(self, found: Facts, evaluation: Evaluation, change: Change, how: Propagation) -> Facts:
        """Repeats, as long as there is one: takes the next delta of what was found, and finds the heads of
        inst_r[evaluation : delta]. All deltas together; no fact may be in two of them. The evaluation is SURVIVING or
        NEW. With a `change`, C_r of the head changes by 1 for every derivation, if it is kept. Unless counted,
        evaluation NEW leaves out heads that nothing has touched, since they are present."""

    def heads_of_changes(self, evaluation: Evaluation, change: Change = Change.NOTHING) -> Facts:
        """The heads of inst[OLD : dead, born] or inst[NEW : born, dead] for the changes below: derivations that fired
        through dead facts and the absence of born ones, or fire now through born facts and the absence of dead
        ones. With a `change`, as in `propagate`; of a rule that is not recursive it is C_nr."""

    def derivable(self, facts: Facts, *, by_recursive: bool) -> Facts:
        """Which of some facts a rule derives under SURVIVING evaluation; one with a positive body atom of the stratum
        only if they are sought `by_recursive` rules too. Another may also be evaluated on the new state of lower
        strata, which only finds what holds after the update."""

    def bodies(self, facts: Facts) -> Facts:
        """The body facts, in this stratum, of all derivations of some facts by recursive rules under SURVIVING
        evaluation."""

    def delete_plainly(self, queries: Facts) -> tuple[Facts, int]:
        """Deletes facts that are questioned, and what is questioned then, as long as none of it has support (C_nr is
        kept) or is delayed and every fact of the stratum that a derivation of it needs has been checked. Returns what
        is to be checked next, and how many of the facts questioned on the way had not been checked."""

    def having(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK) -> Facts:
        """Which of some facts have all of the required marks and none of the excluded ones."""

    def move(self, facts: Facts, required: Mark, excluded: Mark = NO_MARK, *, added: Mark) -> Facts:
        """The facts that `having` gives; from then on they have more marks."""

    def mark(self, facts: Facts, added: Mark, removed: Mark = NO_MARK) -> None: ...

    def explicit_ones(self, facts: Facts) -> Facts:
        """Which of some facts are explicit now."""

    def without_nonrecursive_support(self, facts: Facts) -> Facts:
        """{F : C_nr(F) = 0}"""

    def with_nonrecursive_support(self, facts: Facts) -> Facts:
        """{F : C_nr(F) > 0}"""

    def with_recursive_support(self, facts: Facts) -> Facts:
        """{F : C_r(F) > 0}"""

    def rows_of(self, facts: Facts) -> dict[str, Vector]:
        """Facts in a form that outlives the update."""

    def words_of(self, facts: Facts) -> dict[str, Matrix]:
        """Facts by their words."""

    def facts_of_rows(self, rows: Mapping[str, Vector]) -> Facts:
        """The facts that `rows_of` gave, in this update."""

    def expect_deletion(self, relation: str, deleted: Matrix, inserted: Matrix | None) -> Facts:
        """The present facts of a relation without rules that the next update, given by words, deletes for good: marked
        EXPECTED, and such that derivations know them (see `look`) until `forget`."""

    def expect_return(self, relation: str, inserted: Matrix) -> Facts:
        """The facts of a relation without rules that this update has deleted and the next inserts again."""

    def forget(self, facts: Facts) -> None:
        """Derivations no longer know facts to be deleted."""

    def look(self, questioned: Facts, *, is_complete: bool, is_transitive: bool) -> None:
        """From now on heads of derivations with a body fact that is questioned are noted: those of derivations that
        the update enumerates anyway, or of all (`is_complete`), which `heads_of_changes(NEW)` then enumerates too.
        `is_transitive`: a noted fact of the stratum is questioned itself."""

    def look_for_returns(self, certain: Facts) -> None:
        """Until `returning`, heads of derivations OLD and SURVIVING are noted if each of their body facts will
        certainly be there after the next update: a deleted fact given here or so noted, or an explicit one that is not
        questioned."""

    def returning(self) -> Facts:
        """The deleted facts of the stratum that were noted to be there after the next update."""

    def marked(self, any_of: Mark) -> tuple[Facts, Facts]:
        """The present facts of the stratum that were noted as questioned and have any of some marks; and how many of
        their derivations by non-recursive rules are questioned, where C_nr is kept."""

    def take_support(self, facts: Facts, numbers: Mapping[str, Vector]) -> None:
        """Takes numbers of derivations off C_nr of facts, in parallel."""

    def leave_out_expected(self) -> None:
        """`heads_of_changes(OLD)` leaves out derivations through dead facts marked EXPECTED: they are known."""


def union(*sets: Facts) -> Facts:
    """The union of sets of facts."""
    some = [facts for facts in sets if facts]
    if len(some) < 2:
        return some[0] if some else {}
    several = {name for facts in some for name in facts if sum(name in others for others in some) > 1}
    return {name: _distinct(entries) if name in several else entries for name, entries in joined(*some).items()}


def _distinct(entries: Vector) -> Vector:
    """Like `numpy.unique`, which is slow on small vectors. Sorts the vector in place."""
    import numpy as np

    entries.sort()
    is_first = np.empty(len(entries), np.bool_)
    is_first[:1] = True
    np.not_equal(entries[1:], entries[:-1], out=is_first[1:])
    return entries[is_first]


def joined(*sets: Facts) -> Facts:
    """The union of sets that have no facts in common."""
    import numpy as np

    parts: dict[str, list[Vector]] = {}
    for facts in sets:
        for name, entries in facts.items():
            parts.setdefault(name, []).append(entries)
    return {name: some[0] if len(some) == 1 else np.concatenate(some) for name, some in parts.items()}


def without(facts: Facts, others: Facts) -> Facts:
    """The facts of one set that are not in another."""
    import numpy as np

    rest = {
        name: np.setdiff1d(entries, others[name], assume_unique=True) if name in others else entries
        for name, entries in facts.items()
    }
    return {name: entries for name, entries in rest.items() if len(entries)}


def size(facts: Facts) -> int:
    """How many facts a set holds."""
    return sum(len(entries) for entries in facts.values())
