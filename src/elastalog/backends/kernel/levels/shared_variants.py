"""Variants of an update that start at many facts, run by all threads of a crew (see `machine.heads`).

The machine of a drive leaves off when it has gathered a block of facts. If they are enough to be worth it, every thread
takes some of them at a time, until there is none left; then the machine goes on.
"""

from __future__ import annotations

from collections.abc import Set
from ctypes import addressof
from functools import cached_property
from typing import Final

from elastalog.backends.kernel.machine import heads, layout, stratum_update
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.machine.shares import Shared, SharedTask, share_block
from elastalog.backends.kernel.machine.together import work_together
from elastalog.backends.kernel.store.crew import Crew
from elastalog.backends.kernel.store.inserting import give_out, turn_for
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

FANOUT = 16
"""Rows that are expected to be looked at for each fact that a variant starts at, as long as nothing is known."""

_MOST_WORK = 1 << 24
"""Rows that are expected to be looked at before a budget is looked at."""

UNTIL_GATHERED: Final = 0
"""Work that is allowed to a machine which is to leave off when it has gathered something."""


class SharedVariants:
    """The machines of the threads, and what they have done together. There are so many `relations`."""

    def __init__(self, crew: Crew, watch: Watch, relations: int) -> None:
        self._crew = crew
        self._watch = watch
        self._relations = relations
        self._runs: list[MachineRun] = []
        self._derived = self._looked = 0

    @cached_property
    def _shared(self) -> Shared:
        return Shared(self._crew.number, self._relations)

    @cached_property
    def _places(self) -> list[tuple[Workspace, SharedTask]]:
        """Where the machine of each thread works, and what it is told."""
        address = self._shared.address
        return [(Workspace(), SharedTask(sharing=address, thread=thread)) for thread in range(self._crew.number)]

    def help(self, served: MachineRun, looked: int) -> None:
        """The machine of a drive has left off after looking at `looked` rows. If it has gathered enough, all threads
        do what is left of that, and the machine leaves off again when it has gathered more."""
        workspace = served.workspace
        machine, frame = workspace.machine, workspace.frames[0]
        is_asked, machine.work_allowed = machine.work_allowed == UNTIL_GATHERED, SETTINGS.work_between_checks
        if machine.stage != layout.RUNNING or machine.at < 0 or not self._can_share(served):
            return
        # The first row may have been joined with some rows already.
        first, stop = frame.begun + (frame.within > 0), frame.end
        variant = served.plan.code.variants[machine.variant]
        if first >= stop:
            if is_asked and machine.depth == 0:
                machine.work_allowed = UNTIL_GATHERED
            return
        known = variant.looked // variant.started if variant.started else FANOUT
        fanout = max(known, looked // frame.begun if frame.begun else 0, 1)
        if (stop - first) * fanout < SETTINGS.share_update_from or not self._crew.is_free:
            return
        # The last ones: the machine goes on with those before.
        first = max(first, stop - max(_MOST_WORK // fanout, 1))
        self._derived = self._looked = 0
        self._share(served, variant, first, stop)
        frame.end = first
        if not variant.probes and not frame.end:  # there is nothing left to hand on
            machine.step = layout.GO
        machine.work_before += self._looked
        variant.started += stop - first
        variant.looked += self._looked
        machine.work_allowed = UNTIL_GATHERED
        self._watch.derived(self._derived, self._looked, self._crew.number**-SETTINGS.update_thread_gain)

    def _can_share(self, served: MachineRun) -> bool:
        """Whether nothing is missing that a thread would have to make."""
        plan, machine = served.plan, served.workspace.machine
        variant = plan.code.variants[machine.variant]
        if not variant.is_shared or plan.relations[variant.head].vectors:
            return False
        ways = [variant, plan.code.variants[variant.fork - 1]] if variant.fork else [variant]
        return not any(map(plan.missing, ways))

    def _share(self, served: MachineRun, variant: VariantCode, first: int, stop: int) -> None:
        """Has the variant run from some rows of the block on."""
        threads, machine, head, shared = self._crew.number, served.workspace.machine, variant.head, self._shared
        if not self._runs or self._runs[0].plan is not served.plan:
            self._runs = [MachineRun(served.plan, place, served.relations, self._watch) for place, _ in self._places]
        shared.record.frame = addressof(served.workspace.frames[0])
        share_block(shared.address, machine.variant, first, stop)
        for workspace, task in self._places:
            workspace.attach(served.plan, task)
            workspace.clear()
            other = workspace.machine
            other.phase, other.variant, other.sought, other.at = machine.phase, machine.variant, machine.sought, -1
            other.derived = other.work = 0
        turn = turn_for(stop, threads)

        def open_head() -> None:
            relation, more = served.relations[served.plan.names[head]], 2 * threads * turn
            if machine.phase != layout.RECOVERING:
                relation.reserve_touched(more)
                if machine.phase == layout.GAINING:
                    relation.reserve(relation.used + more)
                relation.lay_out()
            give_out(shared.entries, relation.touched_used, turn)
            give_out(shared.turns[head], relation.used, turn)

        def close_head() -> None:
            heads.close_gaps(served.workspace.address, shared.address, head)

        def make_room(_: Set[str]) -> None:
            close_head()
            self._take_over(served.workspace)
            open_head()

        open_head()
        try:
            work_together(self._crew, self._runs, shared, stratum_update.advance, self._count_together, make_room)
        finally:
            close_head()
        self._take_over(served.workspace)

    def _take_over(self, workspace: Workspace) -> None:
        """Takes over what all threads have noted."""
        machine = workspace.machine
        for each, _ in self._places:
            if machine.nodes_used + each.machine.nodes_used > machine.nodes_room:
                workspace.reserve_nodes(each.machine.nodes_used)
            if each.machine.levels_room > machine.levels_room:
                workspace.reserve_levels(each.machine.levels_room - 1)
            heads.take_over(workspace.address, each.address)
            each.clear()

    def _count_together(self, derived: int, work: int) -> None:
        self._derived += derived
        self._looked += work
        self._watch.check()
