"""What a backend does: hold relations, bring strata to their fixpoint, and maintain them through updates.

An update is a transaction. `begin` takes the explicit changes; then, stratum by stratum from below, whoever directs the
update (a strategy) has each affected stratum maintained, refolded or rebuilt; `commit` or `rollback` ends it. Until
then the previous epoch is intact. All facts are words (see `relations.words`); a relation is a matrix, one row a fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.backends.watch import Watch
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]
ChangedWords: TypeAlias = dict[str, tuple[Matrix, Matrix]]
"""By relation: the facts inserted, and the facts deleted."""


GONE = -1
"""The level of an absent fact, outside a backend."""


@dataclass(frozen=True, slots=True)
class StateChanges:
    """Facts of one relation whose annotation an update has changed: the level before, and level and count now. GONE:
    absent."""

    words: Matrix
    was: Vector
    level: Vector
    count: Vector

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, slots=True)
class ClauseDerivations:
    """Derivations by one clause: for each, which of the facts asked for is its head (`heads`), and the fact it uses for
    each scan of the clause, in order (`bodies`, rows in parallel)."""

    clause: Clause
    heads: Vector
    bodies: tuple[FactWords, ...]


class Maintenance(Protocol):
    """The delta-driven update of one stratum, under way."""

    def begin_losses(self) -> None:
        """The deleted explicit facts and the changes of lower relations become the delta."""

    def propagate_losses(self) -> bool:
        """Takes away the old derivations through the delta; heads left without any become the next. False: there are
        none."""

    def begin_gains(self) -> None:
        """Looks for the lost facts backwards; what came becomes the delta."""

    def propagate_gains(self) -> None:
        """Offers the derivations through the delta to their heads."""

    def settle_next(self) -> int | None:
        """Facts waiting for the lowest level become the delta; None if none waits."""


class Backend(Protocol):
    """`is_complete`: no `.limitsize` has cut an evaluation short."""

    program: LogicalProgram
    is_complete: bool
    watch: Watch

    def load(self, relation: str, words: Matrix) -> None: ...
    def size(self, relation: str) -> int: ...
    def facts(self, relation: str) -> FactWords: ...
    def contains(self, relation: str, words: Matrix) -> Vector: ...
    def is_explicit(self, relation: str, words: Matrix) -> Vector: ...
    def select(self, relation: str, columns: tuple[int, ...], key: Vector) -> FactWords: ...
    def derivations(self, relation: str, words: Matrix) -> list[ClauseDerivations]: ...
    def bootstrap(self, stratum: LogicalStratum) -> int: ...
    def prepare(self, stratum: LogicalStratum) -> None: ...
    def begin(self, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix]) -> tuple[int, int]: ...
    def is_affected(self, stratum: LogicalStratum) -> bool: ...
    def input_size(self, stratum: LogicalStratum) -> int: ...
    def maintain(self, stratum: LogicalStratum) -> Maintenance: ...
    def finish(self, maintenance: Any) -> None: ...
    def maintain_sets(self, stratum: LogicalStratum) -> Any: ...
    def finish_sets(self, maintenance: Any) -> None: ...
    def abandon(self, maintenance: Any) -> None: ...
    def refold(self, stratum: LogicalStratum) -> None: ...
    def rebuild(self, stratum: LogicalStratum) -> int: ...
    def explicit_changes(self) -> tuple[dict[str, Matrix], dict[str, Matrix]]: ...
    def changes(self, with_hidden: bool = False) -> ChangedWords: ...
    def state(self, relation: str) -> FactWords: ...
    def state_changes(self) -> dict[str, StateChanges]: ...
    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
