"""Variants of an update that start at many facts, run by all threads of a crew (see `machine.heads`).

The machine of a drive leaves off when it has gathered a block of facts. If they are enough to be worth it, every thread
takes some of them at a time, until there is none left; then the machine goes on.
"""

from __future__ import annotations

import threading
from ctypes import addressof
from typing import Final

import numpy as np

from elastalog.backends.kernel.compile.signatures import address_of
from elastalog.backends.kernel.machine import heads, layout, stratum_update
from elastalog.backends.kernel.machine.layout import BLOCK, VariantCode
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.crew import Crew, Stopped
from elastalog.backends.kernel.store.inserting import give_out, size_of_turns, turn_for
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

_SHARES = 32
"""Shares of a block per thread: some facts lead to a hundred times as many as others."""

FANOUT = 16
"""Rows that are expected to be looked at for each fact that a variant starts at, as long as nothing is known."""

_MOST_WORK = 1 << 24
"""Rows that are expected to be looked at before a budget is looked at."""

UNTIL_GATHERED: Final = 0
"""Work that is allowed to a machine which is to leave off when it has gathered something."""

_NOW: Final = -1
"""Work that is allowed to a machine which is to leave off."""


class SharedVariants:
    """The machines of the threads, and what they share."""

    def __init__(self, crew: Crew, watch: Watch) -> None:
        self._crew = crew
        self._watch = watch
        self._lock = threading.Lock()
        self._taken: Vector = np.zeros(1, np.int64)
        self._entries: Vector = np.zeros(size_of_turns(crew.number), np.int64)
        self._rows: Vector = np.zeros(size_of_turns(crew.number), np.int64)
        self._shares = heads.StartShares(
            taken=address_of(self._taken), entries=address_of(self._entries), rows=address_of(self._rows),
            threads=crew.number,
        )  # fmt: skip
        shares = addressof(self._shares)
        self._tasks = [heads.SharedTask(shares=shares, thread=thread) for thread in range(crew.number)]
        self._workspaces: list[Workspace] = []
        self._derived = self._looked = 0
        self._is_full = self._is_stopped = False

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
        self._prepare(served, variant, first, stop)
        self._share(served, variant.head)
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
        return all(self._has_indexes(served, variant)) and (
            not variant.fork or all(self._has_indexes(served, plan.code.variants[variant.fork - 1]))
        )

    def _has_indexes(self, served: MachineRun, variant: VariantCode) -> list[bool]:
        plan = served.plan
        probes = (
            plan.code.probes[number] for number in range(variant.first_probe, variant.first_probe + variant.probes)
        )
        return [not plan.indexes[probe.index].is_missing for probe in probes if probe.kind == layout.INDEXED]

    def _prepare(self, served: MachineRun, variant: VariantCode, first: int, stop: int) -> None:
        """All machines are at the variant, and take rows from the first on."""
        while len(self._workspaces) < self._crew.number:
            self._workspaces.append(Workspace())
        shares, machine, threads = self._shares, served.workspace.machine, self._crew.number
        shares.frame, shares.stop, shares.head = addressof(served.workspace.frames[0]), stop, variant.head
        shares.size = min((stop - first) // (_SHARES * threads) + 1, BLOCK)
        self._taken[0] = first
        for workspace, task in zip(self._workspaces, self._tasks, strict=True):
            workspace.attach(served.plan, task)
            workspace.clear()
            other = workspace.machine
            other.phase, other.variant, other.sought, other.at = machine.phase, machine.variant, machine.sought, -1
            other.derived = other.work = 0

    def _share(self, served: MachineRun, head: int) -> None:
        """Has the variant run. When the head is full all threads leave off, and go on when it has room."""
        workspace, machine, shares = served.workspace, served.workspace.machine, addressof(self._shares)
        relation = served.relations[served.plan.names[head]]
        turn = turn_for(self._shares.stop, self._crew.number)
        self._is_full = self._is_stopped = False
        while True:
            more = 2 * self._crew.number * turn
            if machine.phase != layout.RECOVERING:
                relation.reserve_touched(more)
                if machine.phase == layout.GAINING:
                    relation.reserve(relation.used + more)
                relation.lay_out()
            give_out(self._entries, relation.touched_used, turn)
            give_out(self._rows, relation.used, turn)
            try:
                self._crew.do(self._work, self._stop)
            finally:
                heads.close_gaps(workspace.address, shares)
            for each in self._workspaces:
                if machine.nodes_used + each.machine.nodes_used > machine.nodes_room:
                    workspace.reserve_nodes(each.machine.nodes_used)
                if each.machine.levels_room > machine.levels_room:
                    workspace.reserve_levels(each.machine.levels_room - 1)
                heads.take_over(workspace.address, each.address)
                each.clear()
            if not self._is_full:
                return
            self._is_full = False

    def _work(self, thread: int) -> None:
        """What one thread does of a variant, until all is done or the head is full."""
        workspace = self._workspaces[thread]
        machine = workspace.machine
        while True:
            # Before it is looked whether the head is full: who finds that after it takes it away again.
            machine.work_allowed = SETTINGS.work_between_checks
            machine.derived_allowed = SETTINGS.work_between_checks
            if self._is_full:
                return
            reason = stratum_update.advance(workspace.address)
            if self._is_stopped:
                raise Stopped
            self._count(machine)
            match reason:
                case layout.DONE:
                    return
                case layout.NO_ROOM:
                    self._is_full = True
                    self._call_back()
                case layout.NO_NODES:
                    workspace.reserve_nodes(BLOCK)
                case layout.NO_LEVELS:
                    workspace.reserve_levels(machine.highest)

    def _stop(self) -> None:
        """A thread has failed: the others leave off."""
        self._is_stopped = True
        self._call_back()

    def _call_back(self) -> None:
        """All machines leave off as soon as they can."""
        for workspace in self._workspaces:
            workspace.machine.work_allowed = _NOW

    def _count(self, machine: layout.Machine) -> None:
        """Counts what a thread has done since it was last counted, and looks at limits."""
        derived, work = machine.derived, machine.work
        machine.derived = machine.work = 0
        with self._lock:
            self._derived += derived
            self._looked += work
            self._watch.check()
