"""Rounds over the network: every task sends every other what is for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from elastalog.backends.spark.links import Link
from elastalog.backends.spark.messages import Messages


class LinkedMessages(Messages):
    """The rounds of one task that is linked with all others."""

    def __init__(self, folder: str, share: int, shares: int, links: Mapping[int, Link]) -> None:
        super().__init__(folder, share, shares)
        self._links = links

    def _write(self, packed: Any, note: Any) -> None:
        for share, link in self._links.items():
            link.send(*self._content(packed, note, (share, self.shares)))

    def _given_by(self, sender: int) -> dict[str, np.ndarray]:
        return self._read(_Received(self._links[sender].receive()), (self.share, self.shares))

    def _forget(self) -> None:
        """Nothing is left behind."""

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
