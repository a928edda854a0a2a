"""Trials in the kernel: shifts between two epochs, and facts that strata are told of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.annotations import ABSENT
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.shifts import Shift

if TYPE_CHECKING:
    from elastalog.backends.kernel.holding import KernelFacts
    from elastalog.backends.kernel.updating import KernelUpdates


class KernelShifts:
    """See `backends.protocol.Shifts`."""

    def __init__(self, held: KernelFacts, updates: Callable[[], KernelUpdates]) -> None:
        self._held = held
        self._updates = updates

    def back(self, most: int | None = None, instead_of: Shift | None = None) -> Shift | None:
        """What `make` will need to go back, and forth again, once the update under way is committed."""
        done = self._updates().transaction
        if not done.replaced:
            is_reused = instead_of is not None and instead_of.is_small
            done.shift = instead_of if is_reused else Shift(sys.maxsize if most is None else most)
        return done.shift

    def can_make(self, shift: Shift) -> bool:
        """Whether a shift can still be made."""
        return shift.is_usable(self._held.relations)

    def make(self, shift: Shift) -> None:
        """Goes from the state before a committed update to the one after it, or back, outside an update."""
        shift.toggle()
        self._updates().evaluation.forget_ranks()

    def depart(self) -> None:
        """From now on, until `arrive`, rows keep their numbers, so that a shift stays possible."""
        self._updates().departures += 1

    def arrive(self) -> None:
        """See `depart`."""
        self._updates().departures -= 1

    def pretend(self, relation: str, absent: Matrix | None, present: Matrix | None) -> None:
        """Strata above a finished relation are told that some facts are absent and others present."""
        stored, changed = self._held.relations[relation], self._updates().transaction.changed
        self._updates().transaction.is_told = False
        if absent is not None and len(absent):
            entries = transaction.touch(stored, transaction.add_rows(stored, absent))
            transaction.set_annotation(stored, entries, ABSENT, is_present=False)
        if present is not None and len(present):
            entries = transaction.touch(stored, transaction.add_rows(stored, present))
            transaction.set_annotation(stored, entries, max(stored.lowest, 1), is_present=True)
        found = transaction.changed_entries(stored, self._held.annotation.is_global)
        if len(found):
            changed[relation] = found
        else:
            changed.pop(relation, None)
            self._updates().reach.follow_again()
