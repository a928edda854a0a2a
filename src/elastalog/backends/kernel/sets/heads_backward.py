"""The derivations of given heads, for the strategies that maintain sets.

Going backwards from a head is cheap if the clause's atoms share few facts with it, and hopeless if they share many: the
head of `D(y, z1 + z2) :- D(x, z1), B(x, y, z2)` says next to nothing of `z1`, the target of a virtual call nothing of
its receiver. Then it is cheaper to enumerate the clause forwards, once, and to remember its derivations by head. Which
is cheaper is not known before; so backward evaluation of a clause goes through a limited number of rows, then
enumeration may try with the same number, and if neither gets to the end the limit grows. What is lost is a factor, at
most.

A remembered derivation is a fact of a relation: the row of its head, then the rows of its body facts in the stratum. Of
a clause without such body facts one derivation a head is enough, and what is inserted into a relation is there once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from elastalog.backends.kernel.compile.signatures import INT, MATRIX, int64, operator
from elastalog.backends.kernel.execution.aggregates import rows_by_key
from elastalog.backends.kernel.execution.level_views import LEVELS, SURVIVING, VIEWS, is_seen
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting, Sink, TooManyRows
from elastalog.backends.kernel.sets.set_plan import SetPlan
from elastalog.backends.kernel.store.annotations import ROW, facts_of
from elastalog.backends.kernel.store.memory import Matrix, Vector, relation_descriptor_at
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.set_table import keep_row
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import Clause
from elastalog.settings import SETTINGS

_GROWTH = 4

_REMEMBERING = 4
"""To how many rows of a join it amounts to find a head and remember a derivation of it."""


@dataclass(slots=True)
class _Effort:
    """What a clause has cost in this update: rows that backward variants went through, for how many heads, and how many
    they may go through before enumeration is tried."""

    limit: int
    rows: int = 0
    heads: int = 0

    def expected(self, more_heads: int) -> int:
        """The rows it will have been, if further heads are like those before."""
        return self.rows + self.rows * more_heads // max(self.heads, 1)


class BackwardSearch:
    """Searches backward in one stratum, in one update, by surviving evaluation: what it sees of the stratum may shrink,
    and all else stays. `setting`: what variants run in, by the relations that are flat."""

    def __init__(self, plan: SetPlan, own: Sequence[str], setting: Callable[[frozenset[str]], Setting]) -> None:
        self._plan = plan
        self._own = own
        self._setting = setting
        self._efforts: dict[int, _Effort] = {}
        self._remembered: dict[int, RememberedDerivations] = {}

    @property
    def is_easy(self) -> bool:
        """Whether going backwards has been cheap for every clause so far."""
        return all(effort.limit == SETTINGS.backward_limit for effort in self._efforts.values())

    def run(self, backward: Enumerator, flat: frozenset[str], entries: Vector, sink: Sink) -> None:
        """Gives the derivations of heads, by the clause of a backward variant, to a sink that does not mind getting one
        again."""
        clause, setting = backward.variant.clause, self._setting(flat)
        number = clause.number
        effort = self._efforts.get(number)
        if effort is None:
            limit = max(self._plan.rows_of_everything.get(number, 0), SETTINGS.backward_limit)
            effort = self._efforts[number] = _Effort(limit)
        done = 0
        while done < len(entries) and number not in self._remembered:
            expected = effort.expected(len(entries) - done)
            if expected > effort.limit:
                self._enumerate(clause, expected)
                effort.limit = _GROWTH * expected
                continue
            some = entries[done : done + SETTINGS.backward_chunk]
            try:
                rows = backward.of_entries(setting, some, SURVIVING, sink, effort.limit - effort.rows)
            except TooManyRows:
                self._enumerate(clause, effort.limit)
                effort.rows = effort.limit
                effort.limit *= _GROWTH
            else:
                effort.rows += rows
                effort.heads += len(some)
                done += len(some)
        if done < len(entries):
            self._remembered[number].hand_on(entries[done:], sink)

    def _enumerate(self, clause: Clause, limit: int) -> None:
        """Remembers the derivations of a clause if enumerating them goes through few more than `limit` rows."""
        setting = self._setting(self._plan.flat)
        machine = setting.workspace.machine
        for whole in self._plan.everything(clause):
            relation = whole.variant.gather.relation
            start_rows = 1 if relation is None else setting.relations[relation].used
            if start_rows > limit:
                continue
            found = RememberedDerivations(clause, setting.relations, self._own, setting.watch)

            def remember(block: Matrix, used: int, found: RememberedDerivations = found) -> None:
                machine.work += _REMEMBERING * used
                found.remember(block, used)

            try:
                # What it took the last time is a guess.
                rows = whole.of_rows(setting, (0, start_rows), remember, SURVIVING, limit + limit // 4)
            except TooManyRows:
                continue
            self._remembered[clause.number] = found
            self._plan.rows_of_everything[clause.number] = rows
            return


_MOST = 1 << 25
"""Words that are remembered of one clause."""


@operator(INT, INT, MATRIX, INT, INT)
def keep_surviving(address, block, used, word):
    """Keeps the rows of a block in which one word is the row of a fact that survives."""
    facts = facts_of(relation_descriptor_at(address, 0))
    kept = 0
    for i in range(used):
        if is_seen(VIEWS[SURVIVING, 0], facts, int64(block[i, word])):
            kept = keep_row(block, kept, i)
    return kept


class RememberedDerivations:
    """The derivations of a clause; those are handed on whose body facts in the stratum survive."""

    def __init__(
        self, clause: Clause, relations: Mapping[str, KernelRelation], own: Sequence[str], watch: Watch
    ) -> None:
        self._watch = watch
        self._head = relations[clause.head]
        scans = [(i, relations[scan.relation]) for i, scan in enumerate(clause.scans) if scan.relation in own]
        self._bodies = [(i + 1, relation) for i, relation in scans]
        self._words = [self._head.width + i for i, _ in scans]
        self._known = KernelRelation("", 1 + len(scans), is_annotated=False)
        self._out_width = 1 + len(clause.scans) + LEVELS

    def remember(self, block: Matrix, used: int) -> None:
        """A sink: takes derivations that begin with the words of the head, followed by the row of each scan's fact if
        the clause is recursive. Raises TooManyRows when they need too much memory."""
        if (self._known.used + used) * self._known.width > _MOST:
            raise TooManyRows
        heads = self._head.find(block[:used])
        found = np.column_stack((heads, block[:used, self._words]))[heads >= 0]
        if self._bodies:
            self._known.append(found)
        else:
            self._known.insert(found, 0, len(found), 0)
        self._watch.derived(used)

    def hand_on(self, entries: Vector, sink: Sink) -> None:
        """Gives the derivations of some heads to a sink, laid out as backward variants with body facts do: the entry,
        then the row of each scan's fact, as far as it is of the stratum; no levels."""
        for start in range(0, len(entries), SETTINGS.backward_chunk):
            some = entries[start : start + SETTINGS.backward_chunk]
            places, rows = rows_by_key(self._known, (0,), self._head.touched[some, ROW].reshape(-1, 1))
            block = np.zeros((len(rows), self._out_width), np.int32)
            block[:, 0] = some[places]
            for column, (word, _) in enumerate(self._bodies, 1):
                block[:, word] = self._known.rows[rows, column]
            used = len(block)
            for word, relation in self._bodies:
                used = keep_surviving(relation.home, block, used, word)
            if used:
                sink(block, used)
