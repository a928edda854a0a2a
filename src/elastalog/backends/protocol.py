"""What a backend does: hold relations, bring strata to their fixpoint, and maintain them through updates.

An update is a transaction. `begin` takes the explicit changes; then, stratum by stratum from below, whoever directs the
update (a strategy) has each affected stratum maintained, refolded or rebuilt; `commit` or `rollback` ends it. Until
then the previous epoch is intact. All facts are words (see `relations.words`); a relation is a matrix, one row a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from elastalog.backends.watch import Watch
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords

Matrix: TypeAlias = npt.NDArray[np.int32]
Vector: TypeAlias = npt.NDArray[Any]
ChangedWords: TypeAlias = dict[str, tuple[Matrix, Matrix]]
"""By relation: the facts inserted, and the facts deleted."""
T = TypeVar("T")


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

    def lose(self) -> None:
        """Takes away the old derivations through deleted facts and what changed below; heads left without any are lost
        in their turn."""

    def recover(self) -> None:
        """Looks for the lost facts in what is left."""

    def gain(self) -> None:
        """Offers the derivations through what came to their heads, which settle in the order of their levels."""


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
    def derivations(
        self, relation: str, words: Matrix, is_sought: Callable[[Clause], bool] | None = None
    ) -> list[ClauseDerivations]: ...
    def bootstrap(self, stratum: LogicalStratum) -> int: ...
    def prepare(self, stratum: LogicalStratum) -> None: ...
    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None: ...
    def begin(
        self, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix], anew: frozenset[str] = frozenset()
    ) -> tuple[int, int]: ...
    def must_rebuild(self, stratum: LogicalStratum) -> bool: ...
    def is_affected(self, stratum: LogicalStratum) -> bool: ...
    def input_size(self, stratum: LogicalStratum) -> int: ...
    def delegate(self, stratum: LogicalStratum, procedure: Callable[[Any], T]) -> list[T] | None:
        """Has a stratum maintained where its facts are, if that is not in this process: there `procedure`, a function
        of a module, gets what `maintain` or `maintain_sets` would give. Returns what it returned, once for every share
        of the facts. None: nothing has been done, and the facts are at hand. Raises BudgetExceeded when the budget is
        spent, and then nothing has been done either."""

    def maintain(self, stratum: LogicalStratum) -> Maintenance: ...
    def finish(self, maintenance: Any) -> None: ...
    def maintain_sets(self, stratum: LogicalStratum) -> Any: ...
    def finish_sets(self, maintenance: Any) -> None: ...
    def abandon(self, maintenance: Any) -> None: ...
    def refold(self, stratum: LogicalStratum) -> None: ...
    def rebuild(self, stratum: LogicalStratum) -> int: ...
    def pretend(self, relation: str, absent: Matrix | None, present: Matrix | None) -> None: ...
    def explicit_changes(self) -> tuple[dict[str, Matrix], dict[str, Matrix]]: ...
    def changes(self, with_hidden: bool = False) -> ChangedWords: ...
    def state(self, relation: str) -> FactWords: ...
    def state_changes(self) -> dict[str, StateChanges]: ...
    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None: ...
    def commit(self) -> None: ...
    @property
    def has_shifts(self) -> bool: ...
    def shift_back(self, most: int | None = None) -> Any | None: ...
    def can_shift(self, shift: Any) -> bool: ...
    def shift(self, shift: Any) -> None: ...
    def depart(self) -> None: ...
    def arrive(self) -> None: ...
    def rollback(self) -> None: ...
