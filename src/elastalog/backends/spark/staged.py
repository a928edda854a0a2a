"""Rounds of an exchange as stages of Spark, for clusters where tasks cannot all run at the same time: in barrier mode
Spark waits for slots that dynamic allocation, or a small cluster, does not give.

A stage is one round. Its tasks do what exchanging tasks do, over the same code: what they were given in rounds before
they read from the files that the driver names, and where they would wait for this round they end. So a task that is
repeated, or runs twice, does no harm: only files that a finished stage has named are read. An evaluation goes on from
the state that its task has saved in the stage before; an update is gone through again from its beginning, since its
rounds are few, and most of the time of a stage is not its tasks'.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elastalog.backends.spark.messages import Message, Messages, Outgoing
from elastalog.backends.spark.results import RoundWritten, SavedState
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, put


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that are over: of each, the file of every share; none of those that states have already. `states`:
    what the tasks of the last stage have saved, by share; None if they save nothing."""

    files: tuple[tuple[str, ...], ...] = ()
    states: tuple[SavedState | None, ...] = ()

    def followed_by(self, written: Iterable[RoundWritten]) -> Rounds:
        """One more stage is over."""
        ordered = sorted(written, key=lambda result: result.share)
        is_saved = all(result.state is not None for result in ordered)
        earlier: tuple[tuple[str, ...], ...] = ((),) * len(self.files) if is_saved else self.files
        return Rounds((*earlier, tuple(r.location for r in ordered)), tuple(r.state for r in ordered))

    @property
    def locations(self) -> set[str]:
        """All files that the next stage may read."""
        saved = {file.path for state in self.states if state is not None for file in state.files.values()}
        return saved.union(*self.files)


class RoundEnded(Exception):
    """The task has given what it has to give in this round; where, says `location`. `state`: what it has saved."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location
        self.state: SavedState | None = None


class StagedMessages(Messages):
    """The rounds of one task within a stage."""

    def __init__(self, folder: str, share: int, shares: int, rounds: Rounds) -> None:
        super().__init__(folder, share, shares)
        self.rounds = rounds

    @property
    def state(self) -> SavedState | None:
        """What this task has saved in the stage before."""
        return self.rounds.states[self.share] if self.rounds.states else None

    def go_on(self) -> None:
        """The state, from which the task goes on, has all rounds but the last."""
        self._round = len(self.rounds.files) - 1

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Message]:
        self._round += 1
        if self._round > len(self.rounds.files):
            packed = {address: self._packed(out) for address, out in outgoing.items() if len(out.rows)}
            location = inside(self.folder, f"round-{uuid.uuid4().hex}")
            put(location, *self._content(packed, note, self._everybody()))
            raise RoundEnded(location)
        self.notes = []
        messages = []
        for location in self.rounds.files[self._round - 1]:
            with files_at(location).opened(location) as file:
                given = self._read(file, self._everybody())
            messages += [Message(address, rows, self.notes[-1]) for address, rows in given.items()]
        return messages

    def give_up(self) -> None:
        """The driver hears of it, and starts no other stage."""

    def _everybody(self) -> Sequence[int]:
        """A task forgets what it gives itself: that is in its file too."""
        return range(self.shares + 1)
