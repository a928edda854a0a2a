"""Messages over the network, between machines: each task listens, and every two of them are linked by a socket.

Where a task listens, the others read from a file in the folder of their attempt. A task that connects shows the token
of the job, which tasks get from the driver by Spark's own way, never through that folder; without it a connection is
closed. If any two cannot be linked, since a port is closed between their machines, all tasks say so and go on through
files.
"""

from __future__ import annotations

import hmac
import queue
import socket
import struct
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np

from elastalog.backends.spark.messages import Message, Messages, Outgoing, TaskFailed, round_name, tell, told
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, put
from elastalog.folders.local import ReadInto

_LENGTH = struct.Struct("<Q")
_SHARE = struct.Struct("<I")
_SECONDS = 5.0
"""How long a connection may take to be made."""

_CHUNK = 1 << 20


class Unlinked(RuntimeError):
    """The task at the other end is gone."""


class Link:
    """A connection with another task. What arrives is taken from it at once, so that no two tasks can wait for each
    other while both send."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._arrived: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        threading.Thread(target=self._take, name="elastalog-link", daemon=True).start()

    def send(self, *parts: bytes | memoryview) -> None:
        """Gives the other task a block."""
        size = sum(memoryview(part).nbytes for part in parts)
        try:
            self._connection.sendall(_LENGTH.pack(size))
            for part in parts:
                self._connection.sendall(part)
        except OSError as error:
            raise Unlinked(f"a task of this stratum is gone: {error}") from None

    def receive(self) -> bytearray:
        """The next block of the other task, when it is there."""
        found = self._arrived.get()
        if found is None:
            raise Unlinked("a task of this stratum is gone")
        return found

    def close(self) -> None:
        """Ends the connection."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _take(self) -> None:
        try:
            while True:
                (size,) = _LENGTH.unpack(received(self._connection, _LENGTH.size))
                self._arrived.put(received(self._connection, size))
        except OSError:
            self._arrived.put(None)


def received(connection: socket.socket, size: int) -> bytearray:
    """The next `size` bytes from a connection. Raises ConnectionError if it ends before."""
    block = bytearray(size)
    room = memoryview(block)
    while room:
        done = connection.recv_into(room, min(len(room), _CHUNK))
        if not done:
            raise ConnectionError("the connection has ended")
        room = room[done:]
    return block


def linked(folder: str, share: int, shares: int, token: str, host: str) -> dict[int, Link] | None:
    """The links of a task with all others; None, for all tasks, if two of them cannot be linked."""
    others = [other for other in range(shares) if other != share]
    with ExitStack() as stack:
        place, listening = "", None
        with suppress(OSError):  # there may be no port to be had
            listening = stack.enter_context(socket.create_server((host, 0), backlog=shares))
            place = f"{host} {listening.getsockname()[1]}"
        tell(folder, f"{share}.place", place)
        places = {other: told(folder, f"{other}.place") for other in others}
        links = {}
        if listening is not None and all(places.values()):
            links = _links(listening, places, share, token.encode())
    is_linked = len(links) == len(others)
    tell(folder, f"{share}.linked", "yes" if is_linked else "no")
    if is_linked and all(told(folder, f"{other}.linked") == "yes" for other in others):
        return links
    for link in links.values():
        link.close()
    return None


def _links(listening: socket.socket, places: Mapping[int, str], share: int, secret: bytes) -> dict[int, Link]:
    """Connects to the tasks before this one and, in a thread, accepts the connections of those behind it: all tasks do
    both at once. Links that cannot be made are left out."""
    links: dict[int, Link] = {}
    awaited = {other for other in places if other > share}
    accepting = threading.Thread(target=_accept, args=(listening, awaited, secret, links), daemon=True)
    accepting.start()
    for other, place in places.items():
        if other < share:
            with suppress(OSError):
                links[other] = Link(_connected(place, secret, share))
    accepting.join()
    return links


def _connected(place: str, secret: bytes, share: int) -> socket.socket:
    host, _, port = place.partition(" ")
    connection = socket.create_connection((host, int(port)), timeout=_SECONDS)
    connection.sendall(secret + _SHARE.pack(share))
    if not hmac.compare_digest(bytes(received(connection, len(secret))), secret[::-1]):
        connection.close()
        raise ConnectionError("another program answers there")
    return connection


def _accept(listening: socket.socket, awaited: set[int], secret: bytes, links: dict[int, Link]) -> None:
    until = time.monotonic() + 2 * _SECONDS
    while awaited and (left := until - time.monotonic()) > 0:
        listening.settimeout(left)
        with suppress(OSError):
            connection, _ = listening.accept()
            connection.settimeout(_SECONDS)
            shown = bytes(received(connection, len(secret) + _SHARE.size))
            (share,) = _SHARE.unpack(shown[len(secret) :])
            if hmac.compare_digest(shown[: len(secret)], secret) and share in awaited:
                connection.sendall(secret[::-1])
                links[share] = Link(connection)
                awaited.discard(share)
            else:
                connection.close()


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
        return self._read(_reading(self._links[sender].receive()), (self.share, self.shares))

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


def _reading(block: bytearray) -> ReadInto:
    """Reads a block that has arrived as a file."""

    def read_into(room: memoryview, offset: int) -> None:
        stretch = memoryview(block)[offset : offset + len(room)]
        if len(stretch) < len(room):
            raise EOFError("a message is too short")
        room[:] = stretch

    return read_into
