"""A fixpoint that somebody else has begun: another place may evaluate a stratum for the kernel, to its end or to where
the rounds get so small that the kernel is faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from elastalog.backends.kernel.execution.aggregates import Folded
from elastalog.backends.protocol import Placed, StratumElsewhere
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.facts import FactWords


@dataclass(frozen=True, slots=True)
class Begun:
    """The facts of a stratum after so many rounds, in the order of their levels, explicit ones first. `is_done`: there
    are no others. `is_complete`: no `.limitsize` has cut it short."""

    relations: Mapping[str, FactWords]
    rounds: int
    derivations: int
    is_done: bool
    is_complete: bool

    def before_last_round(self, relation: str) -> int:
        """How many facts of a relation were there before the last round."""
        level = self.relations[relation].level
        assert level is not None
        return int(np.searchsorted(level, self.rounds))


class OtherPlace(Protocol):
    """Where strata may be evaluated for the kernel. `costs`: what the last evaluation of a stratum there cost, by its
    number; `placed`: where it was evaluated, and why."""

    @property
    def costs(self) -> Mapping[int, StratumElsewhere]: ...
    @property
    def placed(self) -> Mapping[int, Placed]: ...

    def evaluate(
        self,
        stratum: LogicalStratum,
        facts: Mapping[str, npt.NDArray[np.int32]],
        limits: Mapping[str, int],
        levels: Mapping[str, npt.NDArray[np.int32]] | None = None,
    ) -> Begun | None:
        """What follows from facts: the explicit ones of the stratum's relations, all of those that it reads. `levels`:
        those of the latter, if levels are global; then it goes to the end. None: it is better evaluated here, or could
        not be there."""

    def fold(
        self, stratum: LogicalStratum, members: npt.NDArray[np.int32], levels: npt.NDArray[np.int32] | None
    ) -> Folded | None:
        """What an aggregate makes of all members of its groups; with their levels, if these are global. None: it is
        better folded here, or could not be there."""
