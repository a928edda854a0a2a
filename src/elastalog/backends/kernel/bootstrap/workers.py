"""Who runs the variants of a round, and extends indexes: small rounds in this thread, large ones in all of a crew."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias
from weakref import WeakKeyDictionary

from elastalog.backends.kernel.bootstrap.bodies import Body, StratumBodies, is_shareable
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Enumeration, Scratch, Sink
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds


NO_LIMIT: Final = 1 << 62

Task: TypeAlias = tuple[int, Callable[[], object]]
"""Something to be done, and the number of rows that it looks at."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an evaluation is: the delta of each relation, the iteration that comes next, whether there is none."""

    start: Mapping[str, int]
    stop: Mapping[str, int]
    iteration: int
    is_done: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A body over the rows [start, stop) of the relation that it starts at."""

    body: Body
    start: int
    stop: int


def whole_run(variant: BoundVariant, relations: Mapping[str, KernelRelation]) -> Run:
    """A variant over all rows of the relation that it starts at, if there is one."""
    name = variant.gather.relation
    return Run(Body([variant]), 0, 1 if name is None else relations[name].used)


def expected_work(run: Run) -> int:
    """Rows that a run is expected to look at or make, judged by those so far; at first, one at every step."""
    size, member = run.stop - run.start, run.body.members[0]
    if not member.start_rows:
        return size * (1 + len(member.probes))
    made = member.rows + member.derivations * len(run.body.members)
    return size + made * size // member.start_rows


MOST_EXPECTED = 1 << 19
"""Facts for which there is room from the start in the first round of a stratum, at most."""


class Workers:
    """Runs rounds in the threads of a crew, this one among them; small ones and actions on texts in this one only.
    `is_plain`: what is derived is inserted and counted, and nothing else."""

    is_plain: ClassVar[bool] = True
    most_work: ClassVar[int] = NO_LIMIT
    """What an iteration in compiled code may cost before that is left."""

    def __init__(
        self,
        relations: Mapping[str, KernelRelation],
        watch: Watch,
        crew: Crew = ALONE,
        dictionary: Dictionary | None = None,
    ) -> None:
        self.relations = relations
        self.watch = watch
        self.crew = crew
        self._dictionary = dictionary
        self.scratch = Scratch(watch)
        self._shareable: WeakKeyDictionary[Body, bool] = WeakKeyDictionary()

    def run_round(self, runs: Sequence[Run], bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs all that is to be run in a round; what is derived goes into the relations of the heads. Facts of these
        from the rows `counted` on are of this round."""
        is_small = self.crew.number == 1 or sum(map(expected_work, runs)) < SETTINGS.share_round_from
        shared = [] if is_small else [run for run in runs if self._is_shareable(run.body)]
        for run in runs:
            if run not in shared:
                self.run(run, bounds, counted)
        if shared:
            self._run_together(shared, bounds)

    def _is_shareable(self, body: Body) -> bool:
        known = self._shareable.get(body)
        if known is None:
            known = self._shareable[body] = is_shareable(body.variant)
        return known

    def _run_together(self, runs: Sequence[Run], bounds: Bounds) -> None:
        """One round in compiled code, in all threads."""
        start, stop = dict(bounds.start), dict(bounds.stop)
        expected: Counter[str] = Counter()
        for run in runs:
            name = run.body.variant.gather.relation
            assert name is not None
            start[name], stop[name] = run.start, run.stop
            expected.update(dict.fromkeys((member.clause.head for member in run.body.members), run.stop - run.start))
        assert self._dictionary is not None
        bodies = StratumBodies(-1, list(bounds.stop), [run.body for run in runs], self.relations, self._dictionary)
        rounds = self.in_machine(bodies)
        rounds.expected = {
            # About as many facts as in the round before; in the first, as there are rows to start at, for all we know.
            name: bounds.stop[name] - bounds.start[name] if bounds.start[name] else min(rows, MOST_EXPECTED)
            for name, rows in expected.items()
        }
        rounds.run(Progress(start, stop, 0), -1)
        # The machine also counts rows that it starts at.
        self.watch.rows -= sum(run.stop - run.start for run in runs)

    def run(self, run: Run, bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs one body in this thread."""
        body, scratch = run.body, self.scratch
        sinks = [self._sink(member, counted) for member in body.members]

        def insert(block: Matrix, used: int) -> None:
            for sink, facts in zip(sinks, body.facts(block, used, scratch), strict=True):
                sink(facts, used)

        sink = sinks[0] if body.variant is body.members[0] else insert
        began, derivations, rows = time.perf_counter(), scratch.derivations, scratch.rows
        body.variant.run(Enumeration(self.relations, bounds, scratch, sink), run.start, run.stop)
        note(run, scratch.derivations - derivations, scratch.rows - rows, time.perf_counter() - began, self.watch)

    def in_machine(self, stratum: StratumBodies) -> MachineRounds:
        """Bodies of a stratum, for rounds in compiled code."""
        if self.crew.number > 1:
            from elastalog.backends.kernel.bootstrap.shared_growth import SharedGrowth

            return SharedGrowth(self.crew, stratum, self.watch)
        from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds

        return MachineRounds(stratum, self.watch)

    def settle(self, iteration: int, before: Mapping[str, int]) -> Mapping[str, int]:
        """What else there is to be found in a round, and before the first one (0). `before`: where relations ended
        before the round. Returns where its facts begin."""
        return before

    def next_iteration(self, iteration: int, found: int) -> int | None:
        """The one after an iteration that has found some facts; None: there is no further one."""
        return iteration + 1 if found else None

    def prefer_machine(self, found: int, steps: int) -> bool:
        """Whether further rounds should run in compiled code, after one that `found` so much, and `steps` in all."""
        return self.is_plain and (steps >= SETTINGS.machine_after or found >= SETTINGS.machine_from)

    def further_rounds(self, stratum: StratumBodies) -> MachineRounds:
        """The rounds that are left, in compiled code."""
        return self.in_machine(stratum)

    def stay_in_machine(self, progress: Progress) -> bool:
        """Whether compiled code that has been left, though there are further rounds, should go on."""
        return True

    def finish(self) -> None:
        """The fixpoint is reached."""

    def _sink(self, variant: BoundVariant, counted: Mapping[str, int]) -> Sink:
        head = self.relations[variant.clause.head]
        counted_from = counted[head.name]
        watch = self.watch

        def insert(block: Matrix, used: int) -> None:
            head.insert(block, 0, used, counted_from)
            watch.derived(used)

        return insert

    def do_all(self, tasks: list[Task]) -> None:
        """Does what is to be done, several at a time, the largest first, and takes it off the list."""
        tasks.sort(key=itemgetter(0))
        is_much = len(tasks) > 1 and sum(rows for rows, _ in tasks) >= SETTINGS.share_indexes_from

        def work(thread: int) -> None:
            while tasks:
                try:
                    _, task = tasks.pop()
                except IndexError:  # another thread was faster
                    return
                task()

        if is_much and self.crew.number > 1:
            self.crew.do(work, tasks.clear)
        else:
            work(0)

    def extend_indexes(self, relations: list[KernelRelation]) -> None:
        """Adds the latest rows to the indexes, several at a time."""
        waiting: list[Task] = [
            (relation.used - index.done, partial(index.extend, relation.rows, relation.used, relation.crew))
            for relation in relations
            for index in relation.outdated_indexes()
        ]
        try:
            self.do_all(waiting)
        except BaseException:
            # Which rows they hold now is not known.
            for relation in relations:
                relation.drop_outdated_indexes()
            raise


def note(run: Run, derivations: int, rows: int, seconds: float, watch: Watch) -> None:
    """Tells those who want to know what a run has come to: its derivations, and the rows that it looked at or made."""
    members = run.body.members
    for member in members:
        member.derivations += derivations
        member.rows += rows
        member.start_rows += run.stop - run.start
        member.seconds += seconds / len(members)
    watch.rows += rows
