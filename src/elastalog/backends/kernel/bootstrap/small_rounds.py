"""Handing the small iterations of a bootstrap to the machine (see `machine.growth`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.execution.join_levels import LEVELS
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.plan import MachinePlan
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.relations.words import Dictionary

FEW = 512
"""Facts of a small iteration."""

PATIENCE = 200
"""Small iterations in a row after which it pays to lay the rest out for the machine, and to load it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where an evaluation is: the delta of each relation, the iteration that comes next, whether there is one."""

    start: dict[str, int]
    stop: dict[str, int]
    iteration: int
    is_done: bool


class GlobalLevels(NamedTuple):
    """What global levels need: the relations whose facts count as level 0, and the workspace whose queue is the
    calendar, filed under the relations' places among those of the stratum."""

    flat: frozenset[str]
    workspace: Workspace


def run_small_iterations(
    stratum: int,
    own: Sequence[str],
    variants: Sequence[BoundVariant],
    relations: Mapping[str, KernelRelation],
    dictionary: Dictionary,
    watch: Watch,
    start: Mapping[str, int],
    stop: Mapping[str, int],
    iteration: int,
    most_found: int,
    global_levels: GlobalLevels | None = None,
) -> Progress:
    """Runs iterations, from the one of the given number on, until the fixpoint, a large one, or `most_found` facts.
    With `global_levels`, iterations are levels, and facts of lower relations have theirs. Not every iteration is told
    the watch, but where it is whenever limits are looked at, and at the end."""
    carried, flat, workspace = (0, frozenset[str](), Workspace()) if global_levels is None else (LEVELS, *global_levels)
    plan = MachinePlan(own, flat, variants, [], [], dictionary, carried)
    plan.refresh(relations)
    task = growth.GrowthTask(iteration, most_found, carried)
    workspace.attach(plan, task)
    for name, row in zip(plan.names, plan.relations, strict=True):
        row.is_checked = not relations[name].is_settled
        if name in stop:
            row.delta, row.delta_end = start[name], stop[name]
    told = sum(stop.values())

    def tell() -> None:
        nonlocal told
        now = sum(relations[name].used for name in own)
        watch.iteration(stratum, task.iteration, now - told)
        told = now

    began = time.perf_counter()
    reason = MachineRun(plan, workspace, relations, own, watch, tell).run(growth.grow)
    seconds = time.perf_counter() - began
    tell()
    # Nobody has measured the variants one by one; derivations are the best measure of their shares.
    made = [code.made for code in plan.code.variants]
    for variant, derivations in zip(variants, made, strict=True):
        variant.derivations += derivations
        variant.seconds += seconds * derivations / max(sum(made), 1)
    rows = {name: plan.relations[plan.number[name]] for name in own}
    return Progress(
        {name: row.delta for name, row in rows.items()},
        {name: row.delta_end for name, row in rows.items()},
        task.iteration,
        reason == layout.DONE,
    )
