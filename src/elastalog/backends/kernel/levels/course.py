"""The update of one stratum: a drive that ends after it."""

from __future__ import annotations

from elastalog.backends.kernel.levels.drive import UpdateDrive
from elastalog.backends.kernel.store.impulse import Impulse
from elastalog.backends.kernel.store.memory import Vector
from elastalog.settings import SETTINGS


class StratumCourse:
    """Losses, recovery and gains of the stratum at a place (see `machine.course`). If a drive has come to it, or is
    within it, it goes on from there."""

    def __init__(self, impulse: Impulse, place: int, drive: UpdateDrive) -> None:
        self.own = impulse.stratum.relations
        self._drive = drive
        self._watch = impulse.watch
        self._is_alone = not drive.is_at(place)
        if self._is_alone:
            drive.set_out(impulse.below, max(self._watch.allowance(SETTINGS.work_between_checks), 1), place)
        drive.give(place, impulse.deleted, impulse.inserted)
        drive.admit(place)

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        drive = self._drive
        if drive.is_within:
            drive.check()
        while drive.go_on(is_single=True) is not None:
            drive.check()
        for _, _, derivations, rows, *_ in drive.driven():
            self._watch.count(derivations, rows)

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        changed = self._drive.changed
        if self._is_alone:
            self._drive.end()
        return {name: changed[name] for name in self.own if name in changed}

    def abandon(self) -> None:
        """Forgets what is under way; the marks of this stratum are taken off the relations below it."""
        self._drive.abandon()
        if self._is_alone:
            self._drive.end()
