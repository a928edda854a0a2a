"""The update of one stratum that hears of changes below it and of nothing else: a drive that ends after it."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.levels.drive import UpdateDrive
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS


class StratumCourse:
    """Losses, recovery and gains as in `StratumMaintenance`, which is for strata whose own explicit facts change. If a
    drive has come to the stratum, or is within it, it goes on from there. `below`: what changed in relations that the
    stratum reads."""

    def __init__(
        self, own: tuple[str, ...], place: int, drive: UpdateDrive, below: Mapping[str, Vector], watch: Watch
    ) -> None:
        self.own = own
        self._drive = drive
        self._watch = watch
        self._is_alone = not drive.is_at(place)
        if self._is_alone:
            drive.set_out(dict(below), max(watch.allowance(SETTINGS.work_between_checks), 1), place)
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
