"""Where a stratum is evaluated: in the driver or by tasks, and why. One line of the log for every stratum says so."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import Literal

from elastalog.planning.decompose import SharePlan
from elastalog.planning.logical import LogicalProgram, LogicalStratum

log = logging.getLogger("elastalog.placement")

Where = Literal["driver", "tasks", "exchanging tasks"]

SHARE_OF_MACHINE = 0.5
_BYTES_A_FACT = 28  # set table, annotations and an index, beside the words
_GROWTH_OF_RECURSION = 8


@dataclass(frozen=True, slots=True)
class Placement:
    """Where, in words why, and the plan of tasks if there are any."""

    where: Where
    why: str
    plan: SharePlan | None = None

    def tell(self, stratum: LogicalStratum) -> None:
        """Logs the choice."""
        log.info("stratum %d (%s): %s: %s", stratum.number, ", ".join(stratum.relations), self.where, self.why)


def working_set(program: LogicalProgram, stratum: LogicalStratum, sizes: dict[str, int]) -> int:
    """An estimate of the bytes that evaluating a stratum takes: its inputs, and as much again for what follows from
    them, eight times as much under recursion. A rule of thumb: the result is not known beforehand."""
    inputs = sum(size * (_BYTES_A_FACT + 4 * program.relations[name].width) for name, size in sizes.items())
    return inputs * (1 + (_GROWTH_OF_RECURSION if stratum.is_recursive else 1))


def memory_allowed(memory: int | None) -> int:
    """What the driver may use: the limit of the user, or half of the machine."""
    if memory is not None:
        return memory
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE_OF_MACHINE)
    except (ValueError, OSError):
        return 4 << 30
