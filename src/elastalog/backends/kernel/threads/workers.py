"""Workers that share the runs of a round, and the indexes of a stratum, among several threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

from elastalog.backends.kernel.bootstrap.bodies import Body, StratumBodies
from elastalog.backends.kernel.bootstrap.workers import Run, Task, Workers, expected_work
from elastalog.backends.kernel.execution.bound_variant import Bounds
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew
from elastalog.backends.kernel.threads.shareable import is_shareable
from elastalog.backends.watch import Watch
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.backends.kernel.threads.shared_growth import SharedGrowth

MOST_EXPECTED = 1 << 19
"""Facts for which there is room from the start in the first round of a stratum, at most."""


class ParallelWorkers(Workers):
    """Runs rounds in several threads, this one among them; small ones and actions on texts in this one only."""

    shares_strata: ClassVar[bool] = True

    def __init__(
        self, relations: Mapping[str, KernelRelation], watch: Watch, jobs: int, dictionary: Dictionary
    ) -> None:
        super().__init__(relations, watch)
        self._crew = Crew(jobs)
        self._dictionary = dictionary
        self._jobs = jobs
        self._shareable: WeakKeyDictionary[Body, bool] = WeakKeyDictionary()

    def run_round(self, runs: Sequence[Run], bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs all that is to be run in a round; what is derived goes into the relations of the heads."""
        is_small = sum(map(expected_work, runs)) < SETTINGS.share_round_from
        ordered = runs if is_small else [run for run in runs if not self._is_shareable(run.body)]
        super().run_round(ordered, bounds, counted)
        if len(ordered) < len(runs):
            self._run_together([run for run in runs if run not in ordered], bounds)

    def _run_together(self, runs: Sequence[Run], bounds: Bounds) -> None:
        """One round in compiled code, in all threads."""
        start, stop = dict(bounds.start), dict(bounds.stop)
        expected: Counter[str] = Counter()
        for run in runs:
            name = run.body.variant.gather.relation
            assert name is not None
            start[name], stop[name] = run.start, run.stop
            expected.update(dict.fromkeys((member.clause.head for member in run.body.members), run.stop - run.start))
        bodies = StratumBodies(-1, list(bounds.stop), [run.body for run in runs], self.relations, self._dictionary)
        rounds = self.in_machine(bodies)
        rounds.expected = {
            # About as many facts as in the round before; in the first, as there are rows to start at, for all we know.
            name: bounds.stop[name] - bounds.start[name] if bounds.start[name] else min(rows, MOST_EXPECTED)
            for name, rows in expected.items()
        }
        rounds.run(start, stop, 0, -1)
        # The machine also counts rows that it starts at.
        self.watch.rows -= sum(run.stop - run.start for run in runs)

    def _is_shareable(self, body: Body) -> bool:
        known = self._shareable.get(body)
        if known is None:
            known = self._shareable[body] = is_shareable(body.variant)
        return known

    def in_machine(self, stratum: StratumBodies) -> SharedGrowth:
        """Bodies of a stratum, for rounds in compiled code that all threads share."""
        from elastalog.backends.kernel.threads.shared_growth import SharedGrowth

        return SharedGrowth(self._crew, self._jobs, stratum, self.watch)

    def extend_indexes(self, relations: list[KernelRelation]) -> None:
        """Adds the latest rows to the indexes, several at a time."""
        waiting: list[Task] = [
            (relation.used - index.done, partial(index.extend, relation.rows, relation.used))
            for relation in relations
            for index in relation.outdated_indexes()
        ]
        try:
            self.do_all(waiting)
        except BaseException:
            # Nobody knows which rows they hold now.
            for relation in relations:
                relation.drop_outdated_indexes()
            raise

    def do_all(self, tasks: list[Task]) -> None:
        """Does what is to be done, several at a time, the largest first."""
        tasks.sort(key=itemgetter(0))
        is_much = len(tasks) > 1 and sum(rows for rows, _ in tasks) >= SETTINGS.share_indexes_from

        def work(thread: int) -> None:
            while tasks:
                try:
                    _, task = tasks.pop()
                except IndexError:  # another thread was faster
                    return
                task()

        if is_much:
            self._crew.do(work, tasks.clear)
        else:
            work(0)
