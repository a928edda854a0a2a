"""The derivations of given heads, for the strategies that maintain sets.

Going backwards from a head is cheap if the clause's atoms share few facts with it, and hopeless if they share many: the
head of `D(y, z1 + z2) :- D(x, z1), B(x, y, z2)` says next to nothing of `z1`, the target of a virtual call nothing of
its receiver. Then it is cheaper to enumerate the clause forwards, once, and to remember its derivations by head. Which
it is nobody knows before; so backward evaluation of a clause goes through a limited number of rows, then enumeration
may try with the same number, and if neither gets to the end the limit grows. What is lost is a factor, at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from elastalog.backends.kernel.execution.bound_variant import Scratch, Sink
from elastalog.backends.kernel.execution.delta_variant import DeltaVariant, Phase, Setting
from elastalog.backends.kernel.sets.remembered import RememberedDerivations
from elastalog.backends.kernel.sets.set_plan import SetPlan
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
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
    """Of one stratum, in one update. `phase` is surviving evaluation: what it sees of the stratum may shrink, and all
    else stays."""

    def __init__(
        self,
        plan: SetPlan,
        relations: Mapping[str, KernelRelation],
        own: Sequence[str],
        phase: Phase,
        scratch: Scratch,
        watch: Watch,
    ) -> None:
        self._plan = plan
        self._relations = relations
        self._own = own
        self._phase = phase
        self._scratch = scratch
        self._watch = watch
        self._efforts: dict[int, _Effort] = {}
        self._remembered: dict[int, RememberedDerivations] = {}

    @property
    def is_easy(self) -> bool:
        """Whether going backwards has been cheap for every clause so far."""
        return all(effort.limit == SETTINGS.backward_limit for effort in self._efforts.values())

    def run(self, variant: DeltaVariant, flat: frozenset[str], entries: Vector, sink: Sink) -> None:
        """Gives the derivations of heads, by the clause of a backward variant, to a sink that does not mind getting one
        again."""
        clause, setting = variant.clause, Setting(self._relations, flat, self._scratch)
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
            backwards = partial(variant.run, setting, some, self._phase, sink)
            rows = self._scratch.run_within(effort.limit - effort.rows, backwards)
            if rows is None:
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
        """Remembers the derivations of a clause if that goes through no more than so many rows."""
        setting = Setting(self._relations, self._plan.flat, self._scratch)
        for variant in self._plan.everything(clause):
            relation = variant.gather.relation
            if relation is not None and self._relations[relation].used > limit:
                continue
            found = RememberedDerivations(clause, self._relations, self._own, self._phase.sees, self._watch)
            sink = self._counting(found.remember)
            whole = partial(variant.run_seen, setting, self._phase, sink)
            # What it took the last time is a guess.
            rows = self._scratch.run_within(limit + limit // 4, whole)
            if rows is not None:
                self._remembered[clause.number] = found
                self._plan.rows_of_everything[clause.number] = rows
                return

    def _counting(self, sink: Sink) -> Sink:
        """A sink whose work counts as rows."""

        def take(block: Matrix, used: int) -> None:
            self._scratch.rows_left -= _REMEMBERING * used
            sink(block, used)

        return take
