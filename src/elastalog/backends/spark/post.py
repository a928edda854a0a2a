"""How tasks that run at the same time give each other rows: through files, in rounds.

In a round every task writes what it has for others, ordered by the share that wants it, and then a *notice* that names
its files. A task goes on when it has the notices of all. Spark's own barrier takes a second, the notices take
milliseconds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elastalog.backends.spark.routing import EVERYWHERE

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.02


class TaskFailed(Exception):
    """Another task cannot go on, so this one need not."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Rows for an address, and the share that wants each (EVERYWHERE: all do)."""

    rows: np.ndarray
    shares: np.ndarray


@dataclass(frozen=True, slots=True)
class Parcel:
    """Rows of so many words for an address, in a file of one task, ordered by the share that wants them: those of share
    s are rows bounds[s] to bounds[s + 1], the last ones are for everybody. `note`: what the sender says about them."""

    address: str
    path: str
    width: int
    bounds: tuple[int, ...]
    note: Any


class Post:
    """The rounds of one task. `folder` is that of the attempt, the same for all tasks."""

    def __init__(self, folder: Path, share: int, shares: int) -> None:
        self.folder = folder
        self.share = share
        self.shares = shares
        self._round = 0

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Parcel]:
        """Gives and takes: all tasks must call it equally often. Returns the parcels of all tasks, this one included.
        Raises TaskFailed if a task has failed."""
        self._round += 1
        parcels = [self._packed(address, out, i) for i, (address, out) in enumerate(outgoing.items()) if len(out.rows)]
        self._notify({"parcels": parcels, "note": note, "failed": False})
        notices = self._await_notices()
        if any(notice["failed"] for notice in notices):
            raise TaskFailed
        # Who has written a notice has read what came in the round before.
        for path in self.folder.glob(f"{self._round - 1}-{self.share}-*.words"):
            path.unlink(missing_ok=True)
        self.notes = [notice["note"] for notice in notices]
        return [
            Parcel(address, path, width, tuple(bounds), notice["note"])
            for notice in notices
            for address, path, width, bounds in notice["parcels"]
        ]

    def give_up(self) -> None:
        """Tells the others, in the next round, that this task cannot go on."""
        self._round += 1
        self._notify({"parcels": [], "note": None, "failed": True})

    def opened(self, parcel: Parcel) -> np.ndarray:
        """The rows of a parcel that are for this task."""
        block: np.ndarray = np.memmap(parcel.path, np.int32, "r", shape=(parcel.bounds[-1], parcel.width))
        own = block[parcel.bounds[self.share] : parcel.bounds[self.share + 1]]
        everywhere = block[parcel.bounds[-2] :]
        return np.concatenate((own, everywhere)) if len(everywhere) else own

    def _packed(self, address: str, out: Outgoing, number: int) -> tuple[str, str, int, tuple[int, ...]]:
        # Numbers of 16 bits are sorted by their digits, in linear time.
        wanted = np.where(out.shares == EVERYWHERE, self.shares, out.shares).astype(np.uint16)
        rows = out.rows[np.argsort(wanted, kind="stable")].astype(np.int32, copy=False)
        bounds = (0, *np.cumsum(np.bincount(wanted, minlength=self.shares + 1)).tolist())
        path = self.folder / f"{self._round}-{self.share}-{number}.words"
        rows.tofile(path)
        return address, str(path), rows.shape[1], bounds

    def _notify(self, notice: dict[str, Any]) -> None:
        """Says that everything of this round is written. A notice appears whole."""
        path = self._notice(self.share)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(json.dumps(notice), encoding="utf-8")
        os.replace(fresh, path)

    def _await_notices(self) -> list[dict[str, Any]]:
        """The notices of all tasks. A task that dies is noticed by Spark, which then ends this one too."""
        notices = []
        for share in range(self.shares):
            path, pause = self._notice(share), _SHORTEST_PAUSE
            while not path.exists():
                if not self.folder.exists():
                    raise RuntimeError("the driver has given this attempt up")
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            notices.append(json.loads(path.read_text(encoding="utf-8")))
        return notices

    def _notice(self, share: int) -> Path:
        return self.folder / f"{self._round}-{share}.json"
