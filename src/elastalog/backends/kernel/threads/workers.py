"""Workers that share the runs of a round, and the indexes of a stratum, among several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

from elastalog.backends.kernel.bootstrap.bodies import Body, StratumBodies
from elastalog.backends.kernel.bootstrap.workers import Run, Task, Workers
from elastalog.backends.kernel.execution.bound_variant import Bounds, Scratch
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew
from elastalog.backends.kernel.threads.shareable import is_shareable
from elastalog.backends.kernel.threads.shared_round import SharedRound, expected_work
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds


class ParallelWorkers(Workers):
    """Runs rounds in several threads, this one among them; small ones and actions on texts in this one only."""

    shares_strata: ClassVar[bool] = True

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch, jobs: int) -> None:
        super().__init__(relations, watch)
        self._crew = Crew(jobs)
        self._scratch = [self.scratch, *(Scratch(watch) for _ in range(1, jobs))]
        self._shareable: WeakKeyDictionary[Body, bool] = WeakKeyDictionary()

    def run_round(self, runs: Sequence[Run], bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs all that is to be run in a round; what is derived goes into the relations of the heads."""
        is_small = sum(map(expected_work, runs)) < SETTINGS.share_round_from
        ordered = runs if is_small else [run for run in runs if not self._is_shareable(run.body)]
        missing = self._missing_indexes(runs)
        # Others make indexes while this thread runs what is for one, but none that it needs or inserts into.
        concerned = {member.clause.head for run in ordered for member in run.body.members}
        concerned.update(probe.relation for run in ordered for probe in run.body.variant.probes)
        self.do_all([self._to_make(*key) for key in missing if key[0] in concerned])
        others = [self._to_make(*key) for key in missing if key[0] not in concerned]
        self.do_all(others, partial(super().run_round, ordered, bounds, counted))
        if len(ordered) < len(runs):
            shared = [run for run in runs if run not in ordered]
            SharedRound(self._crew, self._scratch, shared, self.relations, bounds, counted, self.watch).run()

    def _is_shareable(self, body: Body) -> bool:
        known = self._shareable.get(body)
        if known is None:
            known = self._shareable[body] = is_shareable(body.variant)
        return known

    def in_machine(self, stratum: StratumBodies) -> MachineRounds:
        """Bodies of a stratum, for rounds in compiled code that all threads share."""
        from elastalog.backends.kernel.threads.shared_growth import SharedGrowth

        return SharedGrowth(self._crew, len(self._scratch), stratum, self.watch)

    def _missing_indexes(self, runs: Sequence[Run]) -> Iterable[tuple[str, tuple[int, ...]]]:
        """The indexes that runs would otherwise make one by one, when they first need them; few are never needed."""
        return dict.fromkeys(
            (probe.relation, probe.key_columns)
            for run in runs
            for probe in run.body.variant.probes
            if not probe.is_member and probe.key_columns and self.relations[probe.relation].lacks(probe.key_columns)
        )

    def _to_make(self, name: str, columns: tuple[int, ...]) -> Task:
        """An index that is to be made."""
        relation = self.relations[name]
        return relation.used, partial(relation.index, columns)

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

    def do_all(self, tasks: list[Task], own: Callable[[], None] | None = None) -> None:
        """Does what is to be done, several at a time, the largest first; this thread begins with something `own`."""
        tasks.sort(key=itemgetter(0))
        number = len(tasks) + (own is not None)
        is_much = number > 1 and sum(rows for rows, _ in tasks) >= SETTINGS.share_indexes_from

        def work(thread: int) -> None:
            if own is not None and thread == 0:
                own()
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
