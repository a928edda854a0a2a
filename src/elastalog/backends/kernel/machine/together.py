"""Machines that work together, one in each thread of a crew (see `shares`): in the rounds of a bootstrap, or on a block
of an update."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence, Set
from typing import Final

from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.shares import Shared, wake
from elastalog.backends.kernel.store.crew import Crew, Stopped
from elastalog.settings import SETTINGS

_NOW: Final = -1
"""Work that is allowed to a machine which is to leave off."""


def work_together(
    crew: Crew,
    runs: Sequence[MachineRun],
    shared: Shared,
    advance: Callable[[int], int],
    count: Callable[[int, int], None],
    make_room: Callable[[Set[str]], None],
) -> None:
    """Has machines run on, by `advance`, until all are done. What they derive, and work for it, is counted now and then
    (`count`, which looks at limits), in one thread at a time. When one finds a relation full, all leave off where they
    are, and go on when there is room; when one fails, the others end."""
    full: set[str] = set()
    lock, is_stopped = threading.Lock(), threading.Event()

    def call_back() -> None:
        for machine_run in runs:
            machine_run.workspace.machine.work_allowed = _NOW
        wake(shared.address)

    def stop() -> None:
        is_stopped.set()
        call_back()

    def count_work(machine: layout.Machine) -> None:
        derived, work = machine.derived, machine.work
        machine.derived = machine.work = 0
        machine.work_before += work
        with lock:
            count(derived, work)

    def work(thread: int) -> None:
        machine_run = runs[thread]
        machine, address = machine_run.workspace.machine, machine_run.workspace.address
        while True:
            # Before it is looked whether a relation is full: who finds one full after that takes it away again.
            machine.work_allowed = machine.derived_allowed = SETTINGS.work_between_checks
            if full:
                return
            reason = advance(address)
            if is_stopped.is_set():
                raise Stopped
            if reason == layout.DONE or shared.record.reason != layout.GO_ON:
                break
            match reason:
                case layout.NO_ROOM:
                    full.add(machine_run.plan.names[machine.full])
                    call_back()
                case layout.CHECK:
                    count_work(machine)
                case layout.NO_INDEX if machine.stage == layout.REOPENING:
                    _give_room(machine_run, machine.full_index)
                case _:
                    machine_run.serve(reason)
        count_work(machine)

    crew.do(work, stop)
    while full:
        make_room(full)
        full.clear()
        crew.do(work, stop)


def _give_room(machine_run: MachineRun, place: int) -> None:
    """An index is full that all threads extend, which wait now."""
    name, columns = machine_run.plan.keys[place]
    relation = machine_run.relations[name]
    index = relation.index_to_extend(columns)
    assert index is not None
    if not index.make_room(relation.rows, relation.used):
        index.extend(relation.rows, relation.used)
    index.lay_out()
