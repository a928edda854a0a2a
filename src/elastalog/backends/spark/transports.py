"""Other ways of the messages than files: the network, between machines, and stages of Spark, where tasks cannot all run
at the same time, since Spark waits for slots that dynamic allocation, or a small cluster, does not give.

Network: each task listens, and every two of them are linked by a socket. Where a task listens, the others read from a
file in the folder of their attempt. A task that connects shows the token of the job, which tasks get from the driver by
Spark's own way, never through that folder; without it a connection is closed. If any two cannot be linked, since a port
is closed between their machines, all tasks say so and go on through files.

Stages: a stage is one round. Its tasks do what exchanging tasks do, over the same code: what they were given in rounds
before they read from the files that the driver names, and where they would wait for this round they end. So a task that
is repeated, or runs twice, does no harm: only files that a finished stage has named are read. An evaluation goes on
from the state that its task has saved in the stage before; an update is gone through again from its beginning, since
its rounds are few, and most of the time of a stage is not its tasks'.
"""

from __future__ import annotations

import hmac
import queue
import socket
import struct
import threading
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from elastalog.backends.spark.messages import Message, Messages, Outgoing, TaskFailed, round_name, tell, told
from elastalog.backends.spark.results import Result, SavedState
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, put
from elastalog.folders.local import ReadInto


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds that are over: the file of every share for each, none for rounds that the saved states contain
    already. `states`: what the tasks of the last stage have saved, by share; None if they save nothing."""

    files: tuple[tuple[str, ...], ...] = ()
    states: tuple[SavedState | None, ...] = ()

    def followed_by(self, results: Iterable[Result]) -> Rounds:
        """These rounds and that of one more stage."""
        ordered = sorted(results, key=lambda result: result.share)
        is_saved = all(result.state is not None for result in ordered)
        earlier: tuple[tuple[str, ...], ...] = ((),) * len(self.files) if is_saved else self.files
        return Rounds((*earlier, tuple(r.given for r in ordered if r.given)), tuple(r.state for r in ordered))

    @property
    def locations(self) -> set[str]:
        """All files that the next stage may read."""
        saved = {file.path for state in self.states if state is not None for file in state.files.values()}
        return saved.union(*self.files)


class RoundEnded(Exception):
    """The task has written what it gives in this round, to `location`. `state`: what it has saved."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location
        self.state: SavedState | None = None


class StagedMessages(Messages):
    """The rounds of one task within a stage. It knows nothing of earlier stages but what they have written."""

    remembers = False

    def __init__(self, folder: str, share: int, shares: int, rounds: Rounds) -> None:
        super().__init__(folder, share, shares)
        self.rounds = rounds

    @property
    def state(self) -> SavedState | None:
        """What this task has saved in the stage before."""
        return self.rounds.states[self.share] if self.rounds.states else None

    def go_on(self) -> None:
        """The task goes on from a state that contains all rounds but the last."""
        self._round = len(self.rounds.files) - 1

    def _write(self, packed: Any, note: Any) -> None:
        if self._round > len(self.rounds.files):
            location = inside(self.folder, f"round-{uuid.uuid4().hex}")
            put(location, *self._content(packed, note, range(self.shares + 1)))
            raise RoundEnded(location)

    def _given_by(self, sender: int) -> dict[str, np.ndarray]:
        location = self.rounds.files[self._round - 1][sender]
        with files_at(location).opened(location) as read_into:
            return self._read(read_into, range(self.shares + 1))

    def _forget(self) -> None:
        """The driver removes what no stage reads any more."""

    def give_up(self) -> None:
        """The driver hears of it, and starts no other stage."""


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
