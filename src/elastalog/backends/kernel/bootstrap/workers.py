"""Who runs the variants of a round, here in one thread; `threads.workers` are several."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from elastalog.backends.kernel.bootstrap.bodies import Body, StratumBodies
from elastalog.backends.kernel.execution.bound_variant import Bounds, BoundVariant, Scratch, Sink
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass

if TYPE_CHECKING:
    from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds


Task: TypeAlias = tuple[int, Callable[[], object]]
"""Something to be done, and the number of rows that it looks at."""


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


class Workers:
    """Runs variants in this thread. `is_plain`: what is derived is inserted and counted, and nothing else.
    `shares_strata`: a round is the faster the more there is to share in it, of several strata too."""

    is_plain: ClassVar[bool] = True
    shares_strata: ClassVar[bool] = False

    def __init__(self, relations: Mapping[str, KernelRelation], watch: Watch) -> None:
        self.relations = relations
        self.watch = watch
        self.scratch = Scratch(watch)

    def run_round(self, runs: Sequence[Run], bounds: Bounds, counted: Mapping[str, int]) -> None:
        """Runs all that is to be run in a round; what is derived goes into the relations of the heads. Facts of these
        from the rows `counted` on are of this round."""
        for run in runs:
            self.run(run, bounds, counted)

    def run(self, run: Run, bounds: Bounds, counted: Mapping[str, int]) -> None:
        """The same for one run."""
        body, scratch = run.body, self.scratch
        sinks = [self._sink(member, counted) for member in body.members]

        def insert(block: Matrix, used: int) -> None:
            for sink, facts in zip(sinks, body.facts(block, used, scratch), strict=True):
                sink(facts, used)

        sink = sinks[0] if body.variant is body.members[0] else insert
        began, derivations, rows = time.perf_counter(), scratch.derivations, scratch.rows
        body.variant.run(self.relations, run.start, run.stop, bounds, scratch, sink)
        note(run, scratch.derivations - derivations, scratch.rows - rows, time.perf_counter() - began, self.watch)

    def in_machine(self, stratum: StratumBodies) -> MachineRounds:
        """Bodies of a stratum, for rounds in compiled code."""
        from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds

        return MachineRounds(stratum, self.watch)

    def end_round(self) -> None:
        """What else there is to be found in a round, and before the first one."""

    def _sink(self, variant: BoundVariant, counted: Mapping[str, int]) -> Sink:
        head = self.relations[variant.clause.head]
        counted_from = counted[head.name]
        watch = self.watch

        def insert(block: Matrix, used: int) -> None:
            head.insert(block, 0, used, counted_from)
            watch.derived(used)

        return insert

    def do_all(self, tasks: list[Task]) -> None:
        """Does what is to be done, and takes it off the list."""
        while tasks:
            tasks.pop()[1]()

    def extend_indexes(self, relations: list[KernelRelation]) -> None:
        """Adds the latest rows to the indexes."""
        for relation in relations:
            relation.extend_indexes()


def note(run: Run, derivations: int, rows: int, seconds: float, watch: Watch) -> None:
    """Tells those who want to know what a run has come to: its derivations, and the rows that it looked at or made."""
    members = run.body.members
    for member in members:
        member.derivations += derivations
        member.rows += rows
        member.start_rows += run.stop - run.start
        member.seconds += seconds / len(members)
    watch.rows += rows
