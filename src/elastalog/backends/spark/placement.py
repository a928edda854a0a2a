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
from elastalog.backends.spark.values import may_agree, shows_numbers_of_texts
from elastalog.planning.decompose import SharePlan, exchanging_plan, share_plan, whole_plan
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


FALLEN_BACK = Placement("driver", "a task met an error, which is shown best where the program is")


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
    can_agree: bool = False,
) -> Placement:
    """Where a stratum is best evaluated; its relations and those it reads have these sizes. `has_made_values`: several
    tasks have made new ones, and could not go on. `can_agree`: where tasks exchange, they may agree on the numbers of
    these."""
    if annotation.support is Support.VECTORS:
        return Placement("driver", "the strategy keeps vectors of counts, which files of tasks do not hold")
    if stratum.aggregate is not None and stratum.aggregate.operator[0] == "@":
        return Placement("driver", f"`@{stratum.aggregate.operator}` is folded by a function of the user")
    functor = stays_here((*stratum.clauses, *stratum.dominance), functions)
    if functor is not None:
        return Placement("driver", f"functor `@{functor}` cannot be sent to tasks")
    needed = working_set(program, stratum, sizes)
    if is_elastic and needed <= memory:
        return Placement("driver", f"an estimated {needed >> 20:,} MiB of {memory >> 20:,} MiB")
    least = least_rows * (1 if stratum.is_recursive else _ONE_PASS)
    if not is_elastic and sum(sizes.values()) < least:
        return Placement("driver", f"fewer than {least:,} input facts")
    plan = share_plan(stratum, program)
    if not plan.is_for_one:
        is_hindered = has_made_values and not (can_agree and may_agree(stratum))
        why = _why_whole(plan, annotation, has_made_values, is_hindered)
        plan = plan if why is None else whole_plan(stratum, why)
    if plan.is_for_one:
        return Placement("tasks", f"one task: {plan.obstacle}", plan)
    if plan.decomposes:
        told = ", ".join(f"argument {column + 1} of {name}" for name, column in (plan.arguments or {}).items())
        return Placement("tasks", f"decomposes by {told}", plan)
    agreed = "; they agree on the numbers of new values" if has_made_values else ""
    return Placement("exchanging tasks", f"{plan.obstacle}{agreed}", plan)


def _why_whole(plan: SharePlan, annotation: Annotation, has_made_values: bool, is_hindered: bool) -> str | None:
    """Why several tasks cannot do a stratum by their plan, which one can, by the kernel; None if they can.
    `is_hindered`: by values that have been made."""
    if has_made_values and any(shows_numbers_of_texts(clause) for clause in plan.stratum.clauses):
        return "rules make texts that have no number yet, and look at their numbers"
    if plan.decomposes:
        return None
    if annotation.is_global:
        return f"levels are global, and {plan.obstacle}"
    if annotation.support is not Support.LEVELS:
        return f"the strategy keeps other things than levels, and {plan.obstacle}"
    return f"rules make values that have no number yet, and {plan.obstacle}" if is_hindered else None


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
