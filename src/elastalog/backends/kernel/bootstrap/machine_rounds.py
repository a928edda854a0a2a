"""Handing the rounds of a bootstrap to the machine (see `machine.growth`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies
from elastalog.backends.kernel.bootstrap.workers import NO_LIMIT, Progress
from elastalog.backends.kernel.execution.level_views import LEVELS
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.plan import MachinePlan, MachineVariants
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.watch import Watch


class GlobalLevels(NamedTuple):
    """What global levels need: the relations whose facts count as level 0, and the workspace whose queue is the
    calendar, filed under the relations' places among those of the stratum."""

    flat: frozenset[str]
    workspace: Workspace


class MachineRounds:
    """The bodies of a stratum, laid out for the machine. `expected`: facts that the first round is expected to find, by
    relation, where it is not about as many as the one before. With `global_levels`, of one variant each, iterations are
    levels, and facts of lower relations have theirs."""

    def __init__(self, stratum: StratumBodies, watch: Watch, global_levels: GlobalLevels | None = None) -> None:
        own, relations = stratum.own, stratum.relations
        self.bodies = stratum.bodies
        self._stratum = stratum.number
        self._own = own
        self._relations = relations
        self._watch = watch
        carried, flat, workspace = (
            (0, frozenset[str](), Workspace()) if global_levels is None else (LEVELS, *global_levels)
        )
        variants = MachineVariants([body.variant for body in stratum.bodies])
        self._plan = MachinePlan(own, flat, variants, stratum.dictionary, carried)
        self._rows = {name: self._plan.relations[self._plan.number[name]] for name in own}
        self._task = growth.GrowthTask(carried=carried)
        workspace.attach(self._plan, self._task)
        self._run = MachineRun(self._plan, workspace, relations, own, watch, self._tell)
        self._told = 0
        self.expected: Mapping[str, int] = {}

    def run(self, progress: Progress, most_found: int, most_work: int = NO_LIMIT) -> Progress:
        """Runs iterations, from where the evaluation is, until the fixpoint, `most_found` facts, or one that took more
        than `most_work`. Not every iteration is told the watch, but where it is whenever limits are looked at, and at
        the end."""
        start, stop = progress.start, progress.stop
        plan, task = self._plan, self._task
        plan.refresh(self._relations)
        for name, row in zip(plan.names, plan.relations, strict=True):
            row.is_checked = not self._relations[name].is_settled
            row.delta, row.delta_end = start.get(name, 0), stop.get(name, 0)
        task.iteration, task.most_found, task.most_work = progress.iteration, most_found, most_work
        self._told = sum(stop[name] for name in self._own)
        began = time.perf_counter()
        try:
            reason = self._go_on()
        finally:
            self._note(time.perf_counter() - began)
        return Progress(
            {name: row.delta for name, row in self._rows.items()},
            {name: row.delta_end for name, row in self._rows.items()},
            task.iteration,
            reason == layout.DONE,
        )

    def _go_on(self) -> int:
        """Runs iterations; returns DONE, or LARGE if there are others."""
        return self._alone()

    def _alone(self) -> int:
        """Runs iterations in this thread."""
        machine = self._run.workspace.machine
        machine.served = 0
        self._task.opened = machine.work_before
        reason = self._run.run(growth.grow)
        self._tell()
        return reason

    def _tell(self) -> None:
        now = sum(self._relations[name].used for name in self._own)
        if self._stratum >= 0:
            self._watch.tell(self._stratum, self._task.iteration, now - self._told)
        self._told = now

    def _codes(self) -> Sequence[Sequence[VariantCode]]:
        """Where it is written what variants have done, by thread."""
        return [list(self._plan.code.variants)]

    def _note(self, seconds: float) -> None:
        """Tells bodies what they have come to. The time of each was not measured; rows are the best measure of their
        shares."""
        threads = self._codes()
        looked = max(sum(code.looked for codes in threads for code in codes), 1)
        for codes in threads:
            for body, code in zip(self.bodies, codes, strict=True):
                for member in body.members:
                    member.derivations += code.made
                    member.rows += code.looked
                    member.start_rows += code.started
                    member.seconds += seconds * code.looked / looked / len(body.members)
                code.made = code.looked = code.started = 0
