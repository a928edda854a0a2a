"""Which strata the update under way reaches."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice

from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.store.transaction import Transaction
from elastalog.backends.protocol import Reach
from elastalog.planning.logical import LogicalProgram, LogicalStratum


class KernelReach:
    """Strata by what they hold and read. `done`: the update under way. `given`: the places of strata whose explicit
    facts it changes, or that it has evaluated anew."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self._evaluation = evaluation
        self.done = Transaction()
        self.follow(evaluation.program)

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self._reads = {stratum.number: stratum.reads for stratum in program.strata}
        self.place = {stratum.number: place for place, stratum in enumerate(program.strata)}
        self._owner = {name: place for place, stratum in enumerate(program.strata) for name in stratum.relations}
        self._readers: dict[str, list[int]] = {}
        for place, stratum in enumerate(program.strata):
            for name in stratum.reads:
                self._readers.setdefault(name, []).append(place)
        self.given: set[int] = set()
        self._concerned: set[int] = set()
        self._changes_followed = 0

    def begin(self, done: Transaction) -> None:
        """An update begins, for which there was nothing."""
        owner, given = self._owner, self.given
        for names in (done.deleted, done.inserted, done.anew):
            for name in names:
                if name in owner:
                    given.add(owner[name])
        self._concerned.update(given)

    def end(self) -> Transaction:
        """There is no update under way. Returns what is for the next one."""
        self._changes_followed = 0
        self.given.clear()
        self._concerned.clear()
        self.done = Transaction()
        return self.done

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How the update under way reaches a stratum: see `UpdateChanges.reached`."""
        done = self.done
        if len(done.changed) != self._changes_followed:
            self._follow_changes()
        place = self.place[stratum.number]
        if place not in self._concerned:
            return None
        if place not in self.given and self._reads[stratum.number].isdisjoint(done.changed):
            return None
        return Reach(self.size_of(stratum), self.must_rebuild(stratum))

    def size_of(self, stratum: LogicalStratum) -> int:
        """How many explicit facts of a stratum and facts that it reads have changed."""
        done, size = self.done, 0
        for name in stratum.relations:
            size += len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))
        for name in self._reads[stratum.number]:
            size += len(done.changed.get(name, ()))
        return size

    def one_by_one(self) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that the update under way reaches: see `UpdateChanges.affected`. Its time depends on their number,
        not on that of all strata."""
        strata, changed = self._evaluation.program.strata, self.done.changed
        places = list(self._concerned)
        heapify(places)
        known = set(places)
        followed = 0
        while places:
            stratum = strata[heappop(places)]
            reach = self.reached(stratum)
            if reach is not None:
                yield stratum, reach
            for name in islice(changed, followed, None):
                for place in self._readers.get(name, ()):
                    if place not in known:
                        known.add(place)
                        heappush(places, place)
            followed = len(changed)

    def follow_again(self) -> None:
        """Somebody has taken changes back."""
        self._changes_followed = 0

    def _follow_changes(self) -> None:
        """Finds the strata that read what has changed meanwhile: most do not, and are asked about all the same."""
        changed = self.done.changed
        for name in islice(changed, self._changes_followed, None):
            self._concerned.update(self._readers.get(name, ()))
        self._changes_followed = len(changed)

    def must_rebuild(self, stratum: LogicalStratum) -> bool:
        """Whether the stratum cannot be maintained in the update under way: its rules are others, it has a choice
        domain, or subsumption by which more than the best of every key matters, an equivalence in it depends on itself
        and nobody keeps levels, or a `.limitsize` may have to cut it short."""
        is_maintained = self._evaluation.kinds[stratum.number].is_maintained
        return not is_maintained or not self.done.anew.isdisjoint(stratum.relations)
