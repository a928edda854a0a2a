"""Rounds over the network: every task sends every other what is for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from elastalog.backends.spark.links import Link, Unlinked
from elastalog.backends.spark.messages import Message, Messages, Outgoing, TaskFailed, round_name
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, put

_SECONDS_BETWEEN_NEWS = 1.0
_GIVEN_UP = "given-up"
"""The file by which tasks know that one has given up, and is not gone."""


class LinkedMessages(Messages):
    """The rounds of one task that is linked with all others."""

    def __init__(self, folder: str, share: int, shares: int, links: Mapping[int, Link]) -> None:
        super().__init__(folder, share, shares)
        self._links = links
        self._told = time.monotonic()

    def _write(self, packed: Any, note: Any) -> None:
        for share, link in self._links.items():
            content = self._content(packed, note, (share, self.shares))
            self.sent += sum(memoryview(part).nbytes for part in content)
            link.send(*content)

    def exchange(self, outgoing: Mapping[str, Outgoing], note: Any = None) -> list[Message]:
        try:
            return super().exchange(outgoing, note)
        except Unlinked:
            # A task that gives up ends its connections, maybe before what it has said is heard.
            given_up = inside(self.folder, _GIVEN_UP)
            if files_at(given_up).exists(given_up):
                raise TaskFailed from None
            raise

    def give_up(self) -> None:
        put(inside(self.folder, _GIVEN_UP))
        for share, link in self._links.items():
            with suppress(Unlinked):  # it has given up, too
                link.send(*self._content(None, None, (share, self.shares)))

    def _given_by(self, sender: int) -> dict[str, np.ndarray]:
        return self._read(_Received(self._links[sender].receive()), (self.share, self.shares))

    def _forget(self) -> None:
        """Nothing is left behind; but the driver, which sees no files of rounds, is told now and then how far tasks
        are."""
        now = time.monotonic()
        if self.share == 0 and now - self._told >= _SECONDS_BETWEEN_NEWS:
            self._told = now
            put(inside(self.folder, round_name(self.share, self._round)))

    def close(self) -> None:
        for link in self._links.values():
            link.close()


class _Received:
    """A block that has arrived, as a file; see `folders.files.OpenedFile`."""

    def __init__(self, block: bytearray) -> None:
        self._block = memoryview(block)

    def read_into(self, room: memoryview, offset: int) -> None:
        stretch = self._block[offset : offset + len(room)]
        if len(stretch) < len(room):
            raise EOFError("a message is too short")
        room[:] = stretch
