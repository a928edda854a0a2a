"""How the kernel maintains strata: one by what its facts carry, and those that small changes reach in compiled code,
all that lie between two others in one call; the others are left to the caller."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from numpy import ascontiguousarray  # found more quickly than in its module

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.levels.plan import load_operators
from elastalog.backends.kernel.levels.scheduler import UpdateScheduler
from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.transaction import Sides, StratumDelta, Transaction
from elastalog.backends.protocol import Procedure, Reach, Small
from elastalog.backends.rows import are_in, distinct
from elastalog.backends.watch import BudgetExceeded
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.limits import WORD

if TYPE_CHECKING:
    from elastalog.backends.kernel.strata import AnyMaintenance

T = TypeVar("T")

_NONE_DRIVEN: Final[Mapping[str, tuple[int, int]]] = {}
_NONE: Final[Sides] = {}


class KernelMaintenance:
    """`scheduler` drives through strata that have rules."""

    def __init__(self, evaluation: KernelEvaluation, reach: KernelReach) -> None:
        self._evaluation = evaluation
        self._held = evaluation.held
        self._has_levels = evaluation.held.annotation.support is Support.LEVELS
        self._reach = reach
        self._under_way: AnyMaintenance | None = None
        self.follow(evaluation.program)

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        kinds, held = self._evaluation.kinds, self._held
        self.scheduler = UpdateScheduler(
            [kinds[stratum.number] for stratum in program.strata], held.homes, self._evaluation.watch,
            held.annotation.is_global, held.vectors, held.crew,
        )  # fmt: skip
        self._explicit = {
            name: (place, held.homes.numbers[name])
            for place, stratum in enumerate(program.strata)
            if kinds[stratum.number].is_explicit
            for name in stratum.relations
        }

    def prepare(self, stratum: LogicalStratum) -> None:
        """Plans updates of a stratum, makes the indexes they need and loads the operators."""
        others = self._evaluation.kinds[stratum.number].prepare()
        if self._held.annotation.support in (Support.LEVELS, Support.VECTORS):
            load_operators(*others)

    def affected(self, small: Small | None = None) -> Iterable[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `UpdateChanges.affected`. Drives to the first of them."""
        if small is None or not self._has_levels:
            self.normalise()
            return self._reach.one_by_one()
        began = time.perf_counter()
        reach, scheduler = self._reach, self.scheduler
        done = reach.done
        changed = done.known if done.collect is None else done.changed
        scheduler.set_out(changed, small.derivations, 0, done.is_asked)
        if done.is_asked:
            self.normalise(_NONE_DRIVEN if done.anew else self._explicit)
        for place in sorted(done.given) if done.given else ():
            self._give(place, small)
        if small.asked:
            for number in small.asked:
                if number in reach.place:
                    scheduler.bar(reach.place[number], is_reached=False)
        done.collect = scheduler.collect
        at = scheduler.drive(self._evaluation.program.strata, small.done, began)
        if at is not None:
            return self._from_stop_to_stop(at, small)
        done.is_told = True
        scheduler.is_under_way = False
        return ()

    def _give(self, place: int, small: Small) -> None:
        """Explicit facts of a stratum at a place change. A drive enters it, or stops there."""
        reach, stratum = self._reach, self._evaluation.program.strata[place]
        kind, is_anew = self._evaluation.kinds[stratum.number], not reach.done.anew.isdisjoint(stratum.relations)
        if kind.is_explicit and not is_anew:
            self._change_explicit(stratum, place)
        elif (
            kind.is_driven and not is_anew and stratum.number not in small.asked
            and reach.size_of(stratum) <= small.derivations
        ):  # fmt: skip
            self.scheduler.give(place, reach.done.deleted, reach.done.inserted)
        else:
            self.scheduler.bar(place, is_reached=True)

    def _from_stop_to_stop(self, at: int, small: Small) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that a drive stops at, the first of them at a place; drives on when the caller has seen to one."""
        strata, scheduler, done = self._evaluation.program.strata, self.scheduler, self._reach.done
        changed = done.changed
        try:
            stop: int | None = at
            while stop is not None:
                followed = len(changed)
                reached = self._reach.reached(strata[stop])
                if reached is not None:
                    yield strata[stop], reached
                scheduler.pass_by()
                scheduler.tell(islice(changed, followed, None))
                stop = scheduler.drive(strata, small.done, time.perf_counter())
            done.is_told = True
        finally:
            scheduler.end()

    def maintain(self, stratum: LogicalStratum, procedure: Procedure[T]) -> T:
        """Has a procedure bring a stratum to its new fixpoint: see `Backend.maintain`."""
        self.normalise()
        kind, place = self._evaluation.kinds[stratum.number], self._reach.place[stratum.number]
        if kind.is_explicit:
            self._change_explicit(stratum, place)
            self.scheduler.collect(self._reach.done.changed)
            return cast(T, None)  # as every procedure of this kind
        maintenance = kind.begin(self._stratum_delta(stratum), place, self.scheduler)
        self._under_way = maintenance
        try:
            outcome = cast(Any, procedure)(maintenance)
            changed = maintenance.end()
            self._reach.done.changed.update(changed)
            for name in maintenance.own:
                self._evaluation.watch.touched += self._held.relations[name].touched_used
        except BudgetExceeded:
            maintenance.abandon()
            for name in maintenance.own:
                transaction.rollback(self._held.relations[name])
            self._under_way = None
            raise
        self._under_way = None
        return cast(T, outcome)

    def _stratum_delta(self, stratum: LogicalStratum) -> StratumDelta:
        """What the update under way brings to a stratum."""
        done, own = self._reach.done, stratum.relations
        deleted, inserted = (
            {name: side[name] for name in own if name in side} for side in (done.deleted, done.inserted)
        )
        changed = done.changed
        below = {name: changed[name] for name in stratum.reads if name in changed}
        return StratumDelta(stratum, self._held.relations, below, deleted, inserted, self._evaluation.watch)

    def abandon(self) -> None:
        """What interrupted the maintenance of a stratum may have kept it from telling its relations how far they go."""
        if self._under_way is not None:
            self._under_way.abandon()
            self._under_way = None
        self.scheduler.end()

    def normalise(self, driven: Mapping[str, tuple[int, int]] = _NONE_DRIVEN) -> None:
        """Finds out which explicit facts go and come in the update that has begun, and the places of their strata, if
        that is not known. Those of relations that are `driven`, of which the place of the stratum, without rules, and
        the number are given, do so at once: all that an update means to these."""
        reach = self._reach
        done = reach.done
        if not done.is_asked:
            return
        done.is_asked = False
        if not driven:  # otherwise a drive has begun
            self.scheduler.begin_update()
        inserted = done.inserted
        if done.deleted:
            done.deleted = self._effective(done.deleted, inserted, driven, False)
        if inserted:
            done.inserted = self._effective(inserted, _NONE, driven, True)
        if done.anew:
            done.given.update(map(reach.owner.__getitem__, done.anew & reach.owner.keys()))

    def _effective(self, side: Sides, others: Sides, driven: Mapping[str, tuple[int, int]], is_present: bool) -> Sides:
        """Those facts of a side that do not come, or go, in vain: the side itself where these are all. Strata that are
        not `driven` will be told."""
        found = side
        for name, asked in side.items():
            facts = ascontiguousarray(asked if len(asked) == 1 else distinct(asked), WORD)
            if name in others:
                facts = facts[~are_in(facts, others[name])]
            if name in driven and len(facts):
                place, number = driven[name]
                facts = self.scheduler.change(place, number, facts, is_present)
            elif name not in driven:
                reach = self._reach
                is_other = (reach.done.is_explicit or self._held.is_explicit)(name, facts) != is_present
                if not is_other.all():
                    facts = facts[is_other]
                if len(facts) and name in reach.owner:
                    reach.done.given.add(reach.owner[name])
            if facts is not asked or not len(facts):
                found = {**found, name: facts}
                if not len(facts):
                    del found[name]
        return found

    def _change_explicit(self, stratum: LogicalStratum, place: int) -> None:
        """All that an update means to a stratum without rules, which is at a place: explicit facts go and come."""
        done = self._reach.done
        for name in stratum.relations:
            for side, is_present in ((done.deleted, False), (done.inserted, True)):
                if name in side:
                    self.scheduler.change(place, self._held.homes.numbers[name], side[name], is_present)


class KernelReach:
    """Strata by what they hold and read. `done`: the update under way; `owner`: the places of the strata of
    relations."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self._evaluation = evaluation
        self.done = Transaction()
        self.follow(evaluation.program)

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.place = {stratum.number: place for place, stratum in enumerate(program.strata)}
        self.owner = {name: place for place, stratum in enumerate(program.strata) for name in stratum.relations}
        self._readers: dict[str, list[int]] = {}
        for place, stratum in enumerate(program.strata):
            for name in stratum.reads:
                self._readers.setdefault(name, []).append(place)

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How the update under way reaches a stratum: see `UpdateChanges.reached`."""
        if self.place[stratum.number] not in self.done.given and self.done.changed.keys().isdisjoint(stratum.reads):
            return None
        return Reach(self.size_of(stratum), self.must_rebuild(stratum))

    def size_of(self, stratum: LogicalStratum) -> int:
        """How many explicit facts of a stratum and facts that it reads have changed."""
        done, size = self.done, 0
        for name in stratum.relations:
            size += len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))
        for name in stratum.reads:
            size += len(done.changed.get(name, ()))
        return size

    def one_by_one(self) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `UpdateChanges.affected`. Its time depends on their number,
        not on that of all strata."""
        strata = self._evaluation.program.strata
        places = sorted(self.done.given)
        known = set(places)
        followed = 0
        while places:
            stratum = strata[heappop(places)]
            reach = self.reached(stratum)
            if reach is not None:
                yield stratum, reach
            changed = self.done.changed
            for name in islice(changed, followed, None):
                for place in self._readers.get(name, ()):
                    if place not in known:
                        known.add(place)
                        heappush(places, place)
            followed = len(changed)

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        """Whether the stratum cannot be maintained in the update under way: its rules changed, it has a choice
        domain, or subsumption by which more than the best of every key matters, an equivalence in it depends on itself
        and levels are not kept, or a `.limitsize` may have to cut it short."""
        is_maintained = self._evaluation.kinds[stratum.number].is_maintained
        return not is_maintained or not self.done.anew.isdisjoint(stratum.relations)
