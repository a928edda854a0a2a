"""Where a stratum is evaluated: in the driver or by tasks, and why. One line of the log for every stratum says so."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from elastalog.backends.annotation import Annotation, Support
from elastalog.backends.protocol import Placed
from elastalog.backends.spark.user_functions import Functions, stays_here
from elastalog.planning.decompose import (
    FOLDED_IN_ONE_PLACE,
    NUMBERED_IN_ONE_PLACE,
    SharePlan,
    exchanging_plan,
    share_plan,
    whole_plan,
)
from elastalog.planning.logical import LogicalProgram, LogicalStratum

log = logging.getLogger("elastalog.placement")

Where = Literal["driver", "tasks", "exchanging tasks"]

SHARE_OF_MACHINE = 0.5
_BYTES_A_FACT = 28  # set table, annotations and an index, beside the words
_GROWTH_OF_RECURSION = 8

_ONE_PASS = 20
"""A stratum without recursion takes one pass over what it reads: so many times more facts are needed to pay."""


_MANY_SHARES = 4
_TOO_MUCH = 1.5
"""With so many tasks, one that has so many times its part of the work is worth an exchange."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where, in words why, and the plan of tasks if there are any."""

    where: Where
    why: str
    plan: SharePlan | None = None

    def placed(self, stratum: LogicalStratum) -> Placed:
        """The choice for a stratum, as all backends tell it."""
        where, why = ("kernel", self.why) if self.where == "driver" else ("spark", f"{self.where}: {self.why}")
        return Placed(stratum.number, stratum.relations, where, why)

    def tell(self, stratum: LogicalStratum) -> None:
        """Logs the choice."""
        log.info("stratum %d (%s): %s: %s", stratum.number, ", ".join(stratum.relations), self.where, self.why)


LIMITED = Placement("driver", "a relation is limited in size")

FALLEN_BACK = Placement("driver", "a task made values whose numbers a rule shows, or met an error")


def choose(
    program: LogicalProgram,
    stratum: LogicalStratum,
    sizes: Mapping[str, int],
    *,
    annotation: Annotation,
    is_elastic: bool,
    least_rows: int,
    memory: int,
    functions: Functions,
    has_made_values: bool = False,
) -> Placement:
    """Where a stratum is best evaluated; its relations and those it reads have these sizes. `has_made_values`: tasks
    that exchanged have made new ones."""
    if annotation.support is Support.VECTORS:
        return Placement("driver", "the strategy keeps vectors of counts, which files of tasks do not hold")
    reason = reason_for_driver(program, stratum, functions)
    if reason is not None:
        return Placement("driver", reason)
    needed = working_set(program, stratum, sizes)
    if is_elastic and needed <= memory:
        return Placement("driver", f"an estimated {needed >> 20:,} MiB of {memory >> 20:,} MiB")
    least = least_rows * (1 if stratum.is_recursive else _ONE_PASS)
    if not is_elastic and sum(sizes.values()) < least:
        return Placement("driver", f"fewer than {least:,} input facts")
    plan = share_plan(stratum)
    if plan is None:
        return Placement("driver", NUMBERED_IN_ONE_PLACE)
    if plan.is_for_one:
        return Placement("tasks", f"one task: {FOLDED_IN_ONE_PLACE}", plan)
    if plan.decomposes and not stratum.dominance:
        told = ", ".join(f"argument {column + 1} of {name}" for name, column in (plan.arguments or {}).items())
        return Placement("tasks", f"decomposes by {told}", plan)
    whole = _why_whole(stratum, annotation, plan.obstacle, has_made_values)
    if whole is not None:
        return Placement("tasks", f"one task: {whole}", whole_plan(stratum))
    return Placement("exchanging tasks", plan.obstacle or "", plan)


def _why_whole(
    stratum: LogicalStratum, annotation: Annotation, obstacle: str | None, has_made_values: bool
) -> str | None:
    """Why several tasks cannot do a stratum, which one can, by the kernel; None if they can."""
    if stratum.dominance:
        return "subsumption compares facts wherever they are"
    if annotation.is_global:
        return f"levels are global, and {obstacle}"
    if annotation.support is not Support.LEVELS:
        return f"the strategy keeps other things than levels, and {obstacle}"
    return f"rules make values that have no number yet, and {obstacle}" if has_made_values else None


def reason_for_driver(program: LogicalProgram, stratum: LogicalStratum, functions: Functions) -> str | None:
    """Why a stratum has to be evaluated in one place, whatever its size; None if it need not."""
    if any(program.relations[name].choices for name in (*stratum.relations, *stratum.reads)):
        return "a choice domain keeps the fact that was derived first"
    functor = stays_here((*stratum.clauses, *stratum.dominance), functions)
    return None if functor is None else f"functor `@{functor}` is of a library, or cannot be sent to tasks"


def spared(placement: Placement, stratum: LogicalStratum, part: float, shares: int) -> Placement:
    """The same, or, where one value makes up too large a part of what it reads, exchanging tasks: in a stratum that
    decomposes facts with the same value stay together, and one task would have most of the work."""
    if shares < _MANY_SHARES or part <= _TOO_MUCH / shares:
        return placement
    why = f"one value is in {part:.0%} of the facts of an input, too many for one of {shares} tasks"
    return Placement("exchanging tasks", why, exchanging_plan(stratum, why))


def working_set(program: LogicalProgram, stratum: LogicalStratum, sizes: Mapping[str, int]) -> int:
    """An estimate of the bytes that evaluating a stratum takes: what it reads, and as much again for what follows from
    that, eight times as much under recursion. A rule of thumb: the result is not known beforehand."""
    read = sum(size * (_BYTES_A_FACT + 4 * program.relations[name].width) for name, size in sizes.items())
    return read * (1 + (_GROWTH_OF_RECURSION if stratum.is_recursive else 1))


def memory_allowed(memory: int | None) -> int:
    """What the driver may use: the limit of the user, or half of the machine."""
    if memory is not None:
        return memory
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE_OF_MACHINE)
    except (ValueError, OSError):
        return 4 << 30
