"""Look-ahead: while one update is being processed, facts that the next one will question are marked.

U1 is the update at work, U2 = (E2⁻, E2⁺) the one announced. Explicit facts are those of relations without rules, the
others are implicit.

- Negative marks: "U2 will question it". Explicit facts of E2⁻; an implicit fact that has a derivation with such a body
  fact. With DRed, whose deletions go on until they are found again, a marked implicit fact of the same stratum marks
  further ones; with backward/forward checking it does not, since it may well stay. Marked facts enter D (DRed), or are
  checked (backward/forward), from the start of U2.
- *Eager* marks are those of facts that U1 derives or proves anyway. *Linked* marks are all of them: the derivations
  through E2⁻ are enumerated in the same wave as those through the facts that U1 inserts. Then the consequences of E2⁻
  need not be looked for when U2 deletes it.
- Positive marks (DRed): "deleted now, certainly back after U2". Explicit facts of E1⁻ ∩ E2⁺; an implicit fact that U1
  over-deletes by a derivation all of whose body facts are marked positively, or explicit, present and not marked
  negatively, unless it is found again. U2 inserts them together with E2⁺.

Negative marks never change a result: a candidate that is not questionable is proved, an over-deleted fact that still
follows is found again. Positive ones are used only if the update that comes keeps what was announced: it inserts the
explicit facts that they rest on, and deletes no explicit fact that was not announced. So it does not matter when U2
becomes known, or whether the update that follows is U2 at all. If U2 deletes explicit facts of relations with rules,
which look like derived ones to a derivation, there are no positive marks.

The papers mark the head of a derivation that is *applied*. Sets of derivations are applied at once here, so a head is
marked if any of its derivations in the wave qualifies: at least what the papers mark.

Whether marks pay is found by trial, counted in derivations and never in time, so that a replay chooses alike
(`MarksChoice`). What marks save are derivations of the update that finds them, and what they cost is a look at the next
update, as much as some hundreds of derivations however small it is; and what is counted as saved is not always time. So
they are tried only where updates take far more than that, a few updates out of many, and kept for as long as updates
that have them take so much less than those that have none. A trial that is in vain costs a share of the updates in it,
which are one in thirty: far less than a fiftieth in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from elastalog.backends.protocol import Backend, Matrix, Vector
from elastalog.backends.sets import Facts, Mark, SetMaintenance, size
from elastalog.evaluation.changes import Update
from elastalog.evaluation.strategies.protocol import Counters
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalProgram, LogicalStratum

_APPLIED = Mark.PROVED | Mark.DELAYED


class Marks(Enum):
    """Which facts look-ahead marks."""

    NONE = "none"
    EAGER = "eager"
    LINKED = "linked"
    AUTO = "auto"
    """Linked ones where they pay (see `MarksChoice`)."""


@dataclass(slots=True)
class Foreseen:
    """What look-ahead has found for the update after the present one; facts are rows by relation.

    `questioned`: negatively marked implicit facts, and `support` the number of their derivations by non-recursive rules
    through E2⁻. `lost`: E2⁻, of which all consequences in the strata `explored` are questioned. `assured`: positively
    marked facts, as long as the update inserts `awaited` and deletes only `announced`."""

    questioned: dict[str, Vector] = field(default_factory=dict)
    support: dict[str, Vector] = field(default_factory=dict)
    lost: dict[str, Vector] = field(default_factory=dict)
    explored: set[int] = field(default_factory=set)
    assured: dict[str, Vector] = field(default_factory=dict)
    awaited: dict[str, Matrix] = field(default_factory=dict)
    announced: Mapping[str, Matrix] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        return bool(self.questioned or self.explored or self.assured)

    def is_kept(self, backend: Backend) -> bool:
        """Whether the update under way keeps what positive marks rest on."""
        deleted, inserted = backend.changes.explicit()
        return all(_is_within(words, inserted.get(name)) for name, words in self.awaited.items()) and all(
            _is_within(words, self.announced.get(name)) for name, words in deleted.items()
        )


class Marking:
    """The marks of one strategy, from update to update. `is_transitive`, `is_positive`: as with DRed."""

    def __init__(self, *, is_transitive: bool = False, is_positive: bool = False) -> None:
        self._is_transitive = is_transitive
        self._is_positive = is_positive
        self._program: LogicalProgram | None = None
        self.forget()

    def forget(self) -> None:
        """Forgets every mark, and what was announced."""
        self.kind = Marks.NONE
        self._upcoming: Update | None = None
        self._known = Foreseen()
        self._coming = Foreseen()
        self._ahead: dict[str, Facts] = {}
        self._recalled: dict[str, bool] = {}
        self._marker: SetMaintenance | None = None
        self._is_return_certain = False
        self._is_noting = False

    def announce(self, kind: Marks, upcoming: Update | None) -> None:
        """U2 is known, if it is to be looked at."""
        self.kind = kind
        self._upcoming = upcoming

    @property
    def is_looking(self) -> bool:
        """Whether the update at work knows of another one."""
        return self._upcoming is not None

    @property
    def is_known(self) -> bool:
        """Whether the update at work has marks."""
        return self._known.is_used

    def begin(self, backend: Backend) -> None:
        """An update begins: the marks made during the one before it are in force, unless it changes the rules."""
        if backend.program is not self._program:
            self._program = backend.program
            self._known = Foreseen()
        self._coming = Foreseen()
        self._ahead.clear()
        self._recalled.clear()
        self._marker = None
        if self._known.assured and not self._known.is_kept(backend):
            self._known.assured = {}
        self._is_return_certain = (
            self._is_positive
            and self._upcoming is not None
            and all(_has_no_rules(backend, name) for name in self._upcoming.deleted)
        )

    def end(self) -> None:
        """The update has been processed; what was announced is no longer ahead, and its marks are in force."""
        if self._marker is not None:
            for facts in self._ahead.values():
                self._marker.forget(facts)
        if self._upcoming is not None:
            self._coming.announced = self._upcoming.deleted
        self._upcoming = None
        self._known = self._coming

    # --- what was marked before ------------------------------------------------------------------------------------

    def candidates(self, stratum: SetMaintenance) -> Facts:
        """The facts of the stratum that were marked negatively. If they include all consequences of what they were
        marked for, these are not looked for again."""
        known = self._known
        if not known.is_used or not stratum.explicit:
            return {}
        is_explored = stratum.number in known.explored and self._has_lost(stratum)
        facts = stratum.facts_of_rows(
            {name: known.questioned[name] for name in stratum.own if name in known.questioned}
        )
        if is_explored:
            stratum.leave_out_expected()
            stratum.take_support(facts, known.support)
        return facts

    def _has_lost(self, stratum: SetMaintenance) -> bool:
        """Whether the update deletes just what was expected to go, of what the stratum reads, and marks it."""
        for name in stratum.explicit:
            rows = self._known.lost.get(name)
            if rows is not None and name not in self._recalled:
                facts = stratum.facts_of_rows({name: rows})
                self._recalled[name] = size(stratum.move(facts, Mark.WAS, Mark.PRESENT, added=Mark.EXPECTED)) == len(
                    rows
                )
        return all(self._recalled[name] for name in stratum.explicit if name in self._known.lost)

    def assured(self, stratum: SetMaintenance) -> Facts:
        """The facts of the stratum that were marked positively."""
        certain = self._known.assured
        return stratum.facts_of_rows({name: certain[name] for name in stratum.own if name in certain})

    # --- what is ahead ---------------------------------------------------------------------------------------------

    def concerns(self, stratum: LogicalStratum) -> bool:
        """Whether a stratum that U1 does not affect may get marks."""
        if self._upcoming is None or self.kind is not Marks.LINKED or not stratum.clauses:
            return False
        return any(name in self._upcoming.deleted for name in stratum.reads)

    def look(self, stratum: SetMaintenance, counters: Counters) -> None:
        """Before a stratum is maintained: its derivations shall know E2⁻ and E1⁻ ∩ E2⁺."""
        self._is_noting = False
        coming = self._coming
        if self._upcoming is None or not (stratum.explicit or coming.assured):
            return
        is_linked = self.kind is Marks.LINKED
        if is_linked:
            coming.explored.add(stratum.number)
        questioned: Facts = {}
        for name in stratum.explicit:
            if name not in self._upcoming.deleted and name not in self._upcoming.inserted:
                continue
            if name not in self._ahead:
                self._marker = stratum
                self._ahead[name] = facts = self._expected(stratum, name)
                counters.marked_explicit += size(facts)
                if is_linked:
                    coming.lost.update(stratum.rows_of(facts))
            questioned.update(self._ahead[name])
        if questioned:
            self._is_noting = True
            stratum.look(questioned, is_complete=is_linked, is_transitive=self._is_transitive)
        if coming.assured:
            below = {name: coming.assured[name] for name in stratum.below if name in coming.assured}
            if below:
                stratum.look_for_returns(stratum.facts_of_rows(below))

    def _expected(self, stratum: SetMaintenance, name: str) -> Facts:
        """E2⁻ in a relation without rules. Notes E1⁻ ∩ E2⁺."""
        assert self._upcoming is not None
        deleted, inserted = self._upcoming.deleted.get(name), self._upcoming.inserted.get(name)
        if self._is_return_certain and inserted is not None and name in stratum.below:
            returning = stratum.expect_return(name, inserted)
            self._coming.assured.update(stratum.rows_of(returning))
            self._coming.awaited.update(stratum.words_of(returning))
        return {} if deleted is None else stratum.expect_deletion(name, deleted, inserted)

    def gather(self, stratum: SetMaintenance, counters: Counters) -> None:
        """After a stratum has reached its new fixpoint: takes the negative marks."""
        if self._is_noting:
            marked, support = stratum.marked(_APPLIED if self.kind is Marks.EAGER else Mark.PRESENT)
            counters.marked_implicit += size(marked)
            self._coming.questioned.update(stratum.rows_of(marked))
            self._coming.support.update(support)

    def gather_returning(self, stratum: SetMaintenance, returning: Facts, counters: Counters) -> None:
        """Takes the positive marks of a stratum."""
        if returning:
            gone = stratum.having(returning, Mark.WAS, Mark.PRESENT)
            counters.marked_positive += size(gone)
            self._coming.assured.update(stratum.rows_of(gone))


def _has_no_rules(backend: Backend, name: str) -> bool:
    return any(
        name in stratum.relations and not stratum.clauses and not stratum.is_folded
        for stratum in backend.program.strata
    )


def _is_within(words: Matrix, others: Matrix | None) -> bool:
    """Whether all rows of a matrix are in another."""
    return others is not None and set(map(tuple, words.tolist())) <= set(map(tuple, others.tolist()))


LEAST_SAVING = 1_500
"""Derivations that marks must save an update: a few times what looking ahead costs."""

TRIAL = 3
"""Updates of a trial; the first of them still has the marks, or none, that were made before it."""

BETWEEN_TRIALS = 90
FIRST_TRIAL = 8
"""Updates before the first trial, so that it is known what they take."""

_MEMORY = 0.9


@dataclass(slots=True)
class Taken:
    """What updates of one kind took, the latest counting most: derivations by changed facts."""

    updates: float = 0.0
    changes: float = 0.0
    effort: float = 0.0

    def add(self, changes: int, effort: int) -> None:
        """Another one."""
        self.updates = _MEMORY * self.updates + 1
        self.changes = _MEMORY * self.changes + max(changes, 1)
        self.effort = _MEMORY * self.effort + effort

    @property
    def rate(self) -> float:
        """Derivations for a changed fact."""
        return self.effort / self.changes

    @property
    def usual(self) -> float:
        """Derivations of an update."""
        return self.effort / self.updates


@dataclass(slots=True)
class MarksChoice:
    """Which marks the next update makes. `plain` and `marked`: updates without any marks, and those that had and made
    some. `usual`: what is chosen outside trials."""

    plain: Taken = field(default_factory=Taken)
    marked: Taken = field(default_factory=Taken)
    usual: Marks = Marks.NONE
    _until_trial: int = FIRST_TRIAL
    _in_trial: int = 0

    def next(self) -> Marks:
        """The marks for an update that is about to come, another one being known."""
        if self._in_trial:
            self._in_trial -= 1
            if self._in_trial:
                return self._other()
            self.usual = Marks.LINKED if self._pays() else Marks.NONE
            self._until_trial = BETWEEN_TRIALS
            return self.usual
        self._until_trial -= 1
        if self._until_trial <= 0 and self._is_worth_a_trial():
            self._in_trial = TRIAL
            # What such updates took long ago says little of now.
            if self.usual is Marks.LINKED:
                self.plain = Taken()
            else:
                self.marked = Taken()
            return self._other()
        return self.usual

    def observe(self, changes: int, effort: int, *, is_marked: bool, is_looking: bool) -> None:
        """What an update took that had marks, or not, and made some, or not."""
        if is_marked and is_looking:
            self.marked.add(changes, effort)
        elif not is_marked and not is_looking:
            self.plain.add(changes, effort)

    def _other(self) -> Marks:
        return Marks.NONE if self.usual is Marks.LINKED else Marks.LINKED

    def _is_worth_a_trial(self) -> bool:
        """Whether updates take so much that marks could save enough."""
        known = self.marked if self.usual is Marks.LINKED else self.plain
        return known.updates > 0 and (self.usual is Marks.LINKED or known.usual > 2 * LEAST_SAVING)

    def _pays(self) -> bool:
        if not (self.plain.updates and self.marked.updates):
            return False
        changes = self.marked.changes / self.marked.updates
        return (self.plain.rate - self.marked.rate) * changes > LEAST_SAVING
