"""Look-ahead: while one update is being processed, facts that the next one will question are marked.

U1 is the update at work, U2 = (E2⁻, E2⁺) the one announced. Explicit facts are those of relations without rules, the
others are implicit.

- Backward/forward checking. An implicit fact is marked if it has a derivation with a body fact in E2⁻: with *eager*
  marks only if U1 proved or inserted it, with *linked* marks whenever that is so. Marked facts are candidates of the
  next deletion from its start.
- DRed. An implicit fact is marked ("will be over-deleted") if U1 rederived or inserted it and it has a derivation
  with a body fact that is marked, explicit or an implicit one of the same stratum (those of lower strata may be
  rederived before they matter). Marked facts enter D together with E2⁻.

Marks never change a result: a candidate that is not questionable is proved, an over-deleted fact that still follows
is rederived. So it does not matter when U2 becomes known, or whether the update that follows is U2 at all.

The papers mark the head of a derivation that is *applied*. Sets of derivations are applied at once here, so a head is
marked if any of its derivations in the new epoch qualifies: at least what the papers mark. Linked marks are complete:
`bf` does not look for the consequences of E2⁻ a second time when U2 deletes it, that work has been done ahead of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from elastalog.backends.protocol import Matrix, Vector
from elastalog.backends.sets import Evaluation, Facts, Mark, SetMaintenance, size, union, without
from elastalog.evaluation.counters import Counters


class Marks(Enum):
    """Which facts look-ahead marks."""

    NONE = "none"
    EAGER = "eager"
    LINKED = "linked"


class Marking:
    """The marks of one strategy, from update to update."""

    def __init__(self, *, is_transitive: bool) -> None:
        self.kind = Marks.NONE
        self.is_transitive = is_transitive
        self._announced: tuple[Mapping[str, Matrix], Mapping[str, Matrix]] | None = None
        self._ahead: dict[str, Vector | None] = {}
        self._marked: dict[str, Vector] = {}
        self._coming: dict[str, Vector] = {}
        self._explored: dict[str, dict[str, Vector]] = {}
        self._exploring: dict[str, dict[str, Vector]] = {}

    def announce(self, kind: Marks, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix]) -> None:
        """U2 is known: facts to delete and to insert, as words by relation."""
        self.kind = kind
        self._announced = None if kind is Marks.NONE else (deleted, inserted)

    @property
    def is_looking(self) -> bool:
        return self._announced is not None

    @property
    def wants_every_stratum(self) -> bool:
        """Whether strata that U1 does not affect may get marks too."""
        return self.is_looking and self.kind is Marks.LINKED

    def begin(self) -> None:
        """An update begins: the marks made during the one before it are now in force."""
        self._ahead = {}
        self._marked, self._coming = self._coming, {}
        self._explored, self._exploring = self._exploring, {}

    def end(self) -> None:
        """The update has been processed; whatever was announced is no longer ahead."""
        self._announced = None

    def candidates(self, stratum: SetMaintenance) -> Facts:
        """The facts of the stratum that were marked and are still there."""
        if not self._marked:
            return {}
        own = {name: rows for name, rows in self._marked.items() if name in stratum.own}
        return stratum.having(stratum.facts_of_rows(own), Mark.PRESENT)

    def explored(self, stratum: SetMaintenance) -> Facts:
        """The explicit facts below all of whose consequences in the stratum have been marked: with linked marks, those
        announced."""
        return stratum.facts_of_rows(self._explored.get(stratum.own[0], {}))

    def look(self, stratum: SetMaintenance, applied: Facts, counters: Counters) -> None:
        """Marks facts of a stratum that has reached its new fixpoint. `applied`: those that U1 derived or proved."""
        if self._announced is None:
            return
        delta = self._explicit_ahead(stratum, counters)
        if not stratum.has_rules or (self.kind is Marks.EAGER and not applied):
            return
        if self.kind is Marks.LINKED:
            self._exploring[stratum.own[0]] = stratum.rows_of(delta)
        marked: Facts = {}
        while delta:
            found = stratum.heads(Evaluation.NEW, delta, is_every_head_known=True)
            if self.kind is Marks.EAGER:
                found = without(found, without(found, applied))
            delta = without(found, marked)
            marked = union(marked, delta)
            if not self.is_transitive:
                break
        counters.marked_implicit += size(marked)
        self._coming.update(stratum.rows_of(marked))

    def _explicit_ahead(self, stratum: SetMaintenance, counters: Counters) -> Facts:
        """E2⁻ in the relations without rules that concern a stratum; looked up once an update."""
        assert self._announced is not None
        deleted, inserted = self._announced
        for name in stratum.explicit:
            if name not in self._ahead and name in deleted:
                found = stratum.find({name: deleted[name]})
                if name in inserted:
                    found = without(found, stratum.find({name: inserted[name]}))
                found = stratum.having(found, Mark.PRESENT)
                counters.marked_explicit += size(found)
                self._ahead[name] = found.get(name)
        return {name: facts for name in stratum.explicit if (facts := self._ahead.get(name)) is not None}
