"""Links between tasks: each task listens, and every two of them are linked by a socket.

Where a task listens, the others read from a file in the folder of their attempt: Spark's own barrier takes a second. A
task that connects shows the token of the job, which tasks get from the driver by Spark's own way, never through that
folder; without it a connection is closed. If any two cannot be linked, since a port is closed between their machines,
all tasks know it.
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

from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at, put

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
        put(inside(folder, f"{share}.place"), place.encode())
        places = {other: _told(folder, f"{other}.place") for other in others}
        links = {}
        if listening is not None and all(places.values()):
            links = _links(listening, places, share, token.encode())
    is_linked = len(links) == len(others)
    put(inside(folder, f"{share}.linked"), b"yes" if is_linked else b"no")
    if is_linked and all(_told(folder, f"{other}.linked") == "yes" for other in others):
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


_PAUSES = (0.0002, 0.02)
_PAUSES_AT_AN_ADDRESS = (0.02, 0.5)
"""The shortest and the longest time between two looks for a file."""


def _told(folder: str, name: str) -> str:
    """The text in a file of another task in the folder of the attempt, as soon as it is there. If that task dies, Spark
    hears of it and ends this one too."""
    location, files = inside(folder, name), files_at(folder)
    pause, longest = _PAUSES_AT_AN_ADDRESS if is_address(folder) else _PAUSES
    while True:
        with suppress(FileNotFoundError):
            return files.content(location).decode()
        if not files.is_folder(folder):
            raise RuntimeError("the driver has given this attempt up")
        time.sleep(pause)
        pause = min(pause * 1.5, longest)
