"""Trials: what an update would do, found by doing it and taking it back. No epoch is made, nothing is recorded or
stored.

The update is committed, so that all questions can be asked of its state as of any epoch. Then the annotations that it
changed are written back; where a state is more than annotations, the inverse of the update leads back to the very same
state, because what a strategy keeps for a state does not depend on the way there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from functools import partial
from typing import Any

from elastalog.backends.protocol import Backend, ChangedWords, Matrix, Shifts
from elastalog.backends.watch import BudgetExceeded
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, InternalError
from elastalog.evaluation import needed_groups
from elastalog.evaluation.changes import Update
from elastalog.evaluation.needed_groups import go_back
from elastalog.evaluation.strategies.elastic import Elastic, maintain
from elastalog.evaluation.strategies.protocol import Strategy
from elastalog.late import dataclass
from elastalog.storage.interrupts import uninterrupted


@dataclass(frozen=True, slots=True)
class Limits:
    """A trial of some strata only (by number), each maintained within a number of derivations and never evaluated anew.
    Strata above a relation are told that facts of it are absent or present, whatever its rules say. See `can_limit`."""

    strata: Collection[int]
    derivations: int
    absent: Mapping[str, Matrix] = field(default_factory=dict)
    present: Mapping[str, Matrix] = field(default_factory=dict)


class Trial:
    """Within a block the update is in force; the block gets what it changed, hidden relations included. The same trial
    can be made again in the same state: if nothing was committed meanwhile, it then costs only what it changed.

    Within the block of a trial with `limits`, only such trials may be made. Raises BudgetExceeded beyond them, and
    where a stratum cannot be maintained."""

    def __init__(self, backend: Backend, strategy: Strategy, update: Update, limits: Limits | None = None) -> None:
        self._backend = backend
        self._strategy = strategy
        self._update = update
        self._limits = limits
        self._changes: ChangedWords = {}
        self._inverse: Update | None = None
        self._shift: Any | None = None
        self._is_in_force = False

    @classmethod
    def of_past(cls, backend: Backend, strategy: Strategy, update: Update, shift: Any) -> Trial:
        """A trial of going back behind a committed update, by a shift. Blocks do not get what that changes."""
        trial = cls(backend, strategy, Update(update.inserted, update.deleted))
        trial._inverse = update
        trial._shift = shift
        return trial

    def __enter__(self) -> ChangedWords:
        try:
            if self._can_shift():
                with uninterrupted():
                    self._shifts.make(self._shift)
                    self._shifts.depart()
                    self._is_in_force = True
            else:
                self._evaluate()
        except BaseException:
            self.__exit__()
            raise
        return self._changes

    def __exit__(self, *_: object) -> None:
        # Neither Ctrl-C nor a limit of the user may leave a state that is no epoch.
        with uninterrupted():
            if self._is_in_force:
                self._is_in_force = False
                if self._can_shift():
                    self._shifts.make(self._shift)
                else:
                    self._evaluate_inverse()
                if self._shift is not None:
                    self._shifts.arrive()

    def _can_shift(self) -> bool:
        return self._shift is not None and self._shifts.can_make(self._shift)

    @property
    def _shifts(self) -> Shifts:
        """Where there is a shift, the backend has them."""
        shifts = self._backend.capabilities.shifts
        assert shifts is not None
        return shifts

    def _evaluate(self) -> None:
        """Applies the update. The backend stays as it was if that fails, or if a `.limitsize` cuts the new state short:
        from there no update leads back."""
        backend = self._backend
        was_complete = backend.is_complete
        try:
            backend.begin(self._update.deleted, self._update.inserted)
            if self._limits is None:
                needed_groups.update(backend, self._strategy)
            else:
                self._update_within(self._limits)
            deleted, inserted = backend.changes.explicit()
            if was_complete and not backend.is_complete:
                raise ElastalogError([Diagnostic("E0615", "`.limitsize` cuts the state that was tried short")])
            self._changes = backend.changes.facts(with_hidden=True)
            with uninterrupted():
                if backend.capabilities.shifts is not None:
                    self._shift = self._shifts.back()
                if self._shift is not None:
                    self._shifts.depart()
                backend.commit()
                self._inverse = Update(inserted, deleted)
                self._is_in_force = True
        except BaseException:
            if not self._is_in_force:
                with uninterrupted():
                    backend.rollback()
            raise

    def _evaluate_inverse(self) -> None:
        if self._limits is not None or self._inverse is None:
            raise InternalError("evaluation", "a trial with limits cannot be taken back")
        backend, taken_back = self._backend, self._inverse
        bring = partial(needed_groups.update, backend, self._strategy)
        go_back(backend, taken_back.inserted, taken_back.deleted, bring)

    def _update_within(self, limits: Limits) -> None:
        backend = self._backend
        backend.watch.allow(limits.derivations)
        try:
            for stratum in backend.program.strata:
                if stratum.number not in limits.strata:
                    continue
                reach = backend.changes.reached(stratum)
                if reach is not None:
                    if reach.must_rebuild or stratum.dominance or stratum.merges:
                        raise BudgetExceeded  # it is not monotone either, and whoever sets limits reckons with that
                    if stratum.is_folded:
                        backend.refold(stratum)
                    else:
                        backend.maintain(stratum, maintain, is_portable=False)
                for name in stratum.relations:
                    if name in limits.absent or name in limits.present:
                        self._shifts.pretend(name, limits.absent.get(name), limits.present.get(name))
        finally:
            backend.watch.allow(None)


def can_limit(backend: Backend, strategy: Strategy) -> bool:
    """Whether trials may have limits: where a state is levels and counts and nothing else, and one pass through the
    strata is enough."""
    has_levels_only = backend.capabilities.shifts is not None and isinstance(strategy, Elastic)
    return has_levels_only and not backend.program.needed
