"""The first epoch of a small program in one compiled call: what sessions of a program that another one has evaluated do
when they are opened, over facts that are about as many.

Which plans are good, and the code of all strata, is known from the session before; what differs is where relations are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from ctypes import addressof
from typing import Final

import numpy as np

from elastalog.backends.kernel.bootstrap.rounds import NO_LIMIT, give_workspace_back, spare_workspace
from elastalog.backends.kernel.compile.signatures import Table, address_of
from elastalog.backends.kernel.machine import drive as machine_drive
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.plan import UNIT, MachinePlan, unit
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import Clause, LogicalStratum
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

_MOST_FOUND: Final = 4096
"""Facts that a stratum may find before it is left to rounds that look at sizes and have threads."""

ClauseCosts = list[tuple[Clause, int, float]]
"""Clauses with the derivations that they made, and seconds."""


@dataclass(frozen=True, slots=True)
class StratumCode:
    """A stratum with rules, and the clauses of its bodies in the order in which their code is in a plan."""

    stratum: LogicalStratum
    clauses: Sequence[Sequence[Clause]]
    plan: MachinePlan


class FirstEpoch:
    """The code of the strata with rules, in their order. One session at a time has it."""

    def __init__(
        self,
        strata: Sequence[tuple[LogicalStratum, Sequence[Sequence[Clause]], MachinePlan]],
        relations: Mapping[str, KernelRelation],
    ) -> None:
        """`relations`: those of a session in which all strata have been evaluated."""
        self._strata = [StratumCode(*each) for each in strata]
        keys = {key for each in self._strata for key in each.plan.keys}
        made = {(name, columns): relations[name].index_to_extend(columns) for name, columns in keys}
        self._patterns = {key: index.successor() for key, index in made.items() if index is not None}
        own = (name for stratum, *_ in strata for name in stratum.relations)
        self._sizes = {name: min(relations[name].used, _MOST_FOUND) for name in own}
        self._table = Table(machine_drive.Stratum, len(strata))
        self._numbers: Vector = np.zeros((2, len(strata)), np.int64)
        self._numbers[0] = 1  # all strata are reached, and none is barred
        for each, row in zip(self._strata, self._table, strict=True):
            row.laid_out = 0
            machine_drive.lay_out(row, each.plan)
        self._drive = machine_drive.Drive(
            stamp=0, strata=self._table.address, strata_number=len(strata), reached=address_of(self._numbers[0]),
            barred=address_of(self._numbers[1]), work_allowed=SETTINGS.work_between_checks,
        )  # fmt: skip
        # Where each relation and index is to be written down, so that a run looks for it once.
        self._homes: dict[str, list[layout.Relation]] = {}
        self._indexes: list[tuple[str, tuple[int, ...], layout.IndexPlace]] = []
        for plan in (each.plan for each in self._strata):
            for name, place in zip(plan.names, plan.relations, strict=True):
                self._homes.setdefault(name, []).append(place)
            self._indexes += [(*key, place) for key, place in zip(plan.keys, plan.indexes, strict=True)]
        self._counted = [[*zip(each.clauses, each.plan.code.variants, strict=True)] for each in self._strata]
        self._task = growth.GrowthTask(until=NO_LIMIT, most_work=NO_LIMIT, allowed=_MOST_FOUND)

    def run(
        self, relations: Mapping[str, KernelRelation], dictionary: Dictionary, watch: Watch
    ) -> list[tuple[LogicalStratum, ClauseCosts]]:
        """Brings strata, whose relations hold their explicit facts, to their fixpoints. Returns them with what their
        clauses cost: all, or those up to one that has become too large, and is where it was left off (`begun`)."""
        drive, workspace = self._drive, spare_workspace()
        machine, began = workspace.machine, time.perf_counter()
        for name, size in self._sizes.items():
            relations[name].expect(size)
        for each in self._strata:
            each.plan.code.belong_to(dictionary)
            workspace.make_ready(each.plan)
        for name, places in self._homes.items():
            home = unit().home if name == UNIT else relations[name].home
            for place in places:
                place.home = home
        for name, columns, index_place in self._indexes:
            index_place.home = self._index_home(relations[name], columns)
        drive.at = drive.derivations = drive.rows = 0
        drive.derived_allowed = max(watch.allowance(SETTINGS.work_between_checks), 1)
        machine.drive, machine.task, machine.part = addressof(drive), addressof(self._task), layout.TO_ENTER
        while (reason := growth.grow(workspace.address)) != layout.DONE:
            each = self._strata[drive.at]
            if reason == layout.LARGE:
                watch.count(machine.derived, machine.work)
                break
            MachineRun(each.plan, workspace, relations, watch, has_entries=False).serve(reason)
        watch.count(drive.derivations, drive.rows)
        watch.rounds += drive.at
        give_workspace_back(workspace)
        watch.step()
        return self._costs(drive.at, time.perf_counter() - began, relations)

    def _index_home(self, relation: KernelRelation, columns: tuple[int, ...]) -> int:
        """Where an index is: one without rows, as large as that of an earlier session, which compiled code fills."""
        index = relation.index_to_extend(columns)
        if index is None:
            pattern = self._patterns.get((relation.name, columns))
            if pattern is None:
                return 0
            index = pattern.successor()
            relation.index_ahead(columns, index)
        return addressof(index.lay_out())

    @property
    def begun(self) -> tuple[LogicalStratum, int] | None:
        """The stratum that has become too large in the last run, and the iteration that comes next."""
        at = self._drive.at
        return (self._strata[at].stratum, self._task.iteration) if at < len(self._strata) else None

    def _costs(
        self, done: int, seconds: float, relations: Mapping[str, KernelRelation]
    ) -> list[tuple[LogicalStratum, ClauseCosts]]:
        found = []
        share = seconds / max(done, 1)
        for each, counted in zip(self._strata, self._counted, strict=True):
            part = share / len(counted)
            found.append((each.stratum, [(clause, code.made, part) for clauses, code in counted for clause in clauses]))
            for _, code in counted:
                code.made = code.looked = code.started = 0
            for name in each.stratum.relations:
                relations[name].trim()
        return found[: done + 1]
