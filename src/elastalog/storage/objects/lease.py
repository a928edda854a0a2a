"""The lease of the process that writes a store at an address, for the time being; and `CURRENT` there: the manifest in
force, and behind it the token of the writer, and from which object of the journal on. What another process puts behind
that does not count.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from typing import Any, ClassVar

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.folders.addresses import without_secrets
from elastalog.folders.remote import UnreachableError
from elastalog.storage.fetching import WRITER, manifest_line
from elastalog.storage.manifest import POINTER
from elastalog.storage.objects.client import Object, Objects, Tag, Taken, cannot_write

log = logging.getLogger("elastalog.storage")

LEASE = "LEASE"


class Lease:
    """Held from construction to `release`, renewed by a thread. Raises ElastalogError when another writer has it, and
    where the server does not keep two writers apart. `is_lost`: another has taken it over."""

    seconds: ClassVar[float] = 30.0

    def __init__(self, objects: Objects, token: str) -> None:
        self.is_lost = False
        self._objects = objects
        self._token = token
        self._turn = 0
        self._tag = self._taken()
        self._require_conditions()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="elastalog-lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Lets others write. Calling it again is no error."""
        if not self._end.is_set():
            self._end.set()
            self._thread.join()
            try:
                self._objects.replace(LEASE, self._content(is_released=True), self._tag)
            except (Taken, UnreachableError):
                log.info("the lease of %s was not released: it runs out", without_secrets(self._objects.address))

    def _content(self, *, is_released: bool = False) -> bytes:
        self._turn += 1
        written = {
            "writer": self._token, "host": socket.gethostname(), "pid": os.getpid(), "seconds": self.seconds,
            "turn": self._turn, "released": is_released,
        }  # fmt: skip
        return json.dumps(written).encode()

    def _taken(self) -> Tag:
        content = self._content()
        try:
            return self._objects.create(LEASE, content)
        except Taken:
            pass
        found = self._objects.get(LEASE)
        if found is None:
            raise _held(self._objects, "another process", 0) from None
        self._refuse_if_held(found)
        try:
            return self._objects.replace(LEASE, content, found.tag)
        except Taken:  # by one that was quicker
            raise _held(self._objects, "another process", self.seconds) from None

    def _refuse_if_held(self, found: Object) -> None:
        try:
            holder: dict[str, Any] = json.loads(found.data)
            seconds, who = float(holder["seconds"]), f"process {holder['pid']} on {holder['host']}"
            is_released = bool(holder["released"])
        except (ValueError, KeyError, TypeError):
            seconds, who, is_released = self.seconds, "another process", False
        if is_released:
            return
        left = seconds - self._age_of(found)
        if left > 0:
            raise _held(self._objects, who, left)
        log.warning("the lease of %s has run out, and is taken over", who)

    def _age_of(self, found: Object) -> float:
        """The age of an object by the server's clock, which has written it and writes another one now; it may round to
        seconds."""
        name = f"{LEASE}.{self._token}"
        self._objects.create(name, b"")
        now = self._objects.get(name)
        self._objects.remove(name)
        return 0.0 if now is None else (now.written - found.written).total_seconds() - 1.0

    def _require_conditions(self) -> None:
        """Raises ElastalogError if the server lets an existing object be created: it would not refuse a second writer
        either."""
        try:
            self._objects.put_once(LEASE, self._content())
        except Taken:
            return
        self._objects.remove(LEASE)
        raise cannot_write(self._objects.address, "its server does not heed the conditions of a put (If-None-Match)")

    def _renew(self) -> None:
        while not self._end.wait(self.seconds / 3):
            try:
                try:
                    self._tag = self._objects.replace(LEASE, self._content(), self._tag)
                except Taken:
                    found = self._objects.get(LEASE)
                    if found is None or self._token.encode() not in found.data:
                        self.is_lost = True
                        return
                    self._tag = found.tag  # ours, from a renewal whose answer was lost
            except UnreachableError as error:
                log.warning("the lease could not be renewed: %s", error)


def _held(objects: Objects, who: str, left: float) -> ElastalogError:
    seconds = max(1, round(left)) if left else None
    return error("E0804", location=without_secrets(objects.address), holder=who, seconds=seconds)


def overtaken(address: str) -> ElastalogError:
    """The error that another writer has opened the store meanwhile."""
    return error("E0878", location=without_secrets(address))


class Pointer:
    """The pointer as its writer has left it. Its tag tells whether another writer has changed it since."""

    def __init__(self, objects: Objects, token: str) -> None:
        self._objects = objects
        self._writer = f"{WRITER} {token}\n".encode()
        self._token = token
        self._tag = self._claimed()

    @property
    def is_there(self) -> bool:
        """Whether there is a store."""
        return self._tag is not None

    @property
    def is_ours(self) -> bool:
        """Whether it has not been changed since."""
        return self._objects.tag(POINTER) == self._tag

    def settle(self, pieces: int) -> None:
        """From now on only our own objects count behind those of the journal that were read."""
        self._writer = f"{WRITER} {self._token} {pieces}\n".encode()
        found = self._objects.get(POINTER)
        if found is None or found.tag != self._tag:
            raise overtaken(self._objects.address)
        self.move(manifest_line(found.data))

    def move(self, pointer: bytes) -> None:
        """Puts another manifest in force. Raises ElastalogError if another writer has changed the pointer."""
        content = pointer + self._writer
        try:
            if self._tag is None:
                self._tag = self._objects.create(POINTER, content)
            else:
                self._tag = self._objects.replace(POINTER, content, self._tag)
        except Taken:
            raise overtaken(self._objects.address) from None

    def _claimed(self) -> Tag | None:
        """The tag of the pointer with our token, None if there is none."""
        while True:
            found = self._objects.get(POINTER)
            if found is None:
                return None
            try:
                return self._objects.replace(POINTER, manifest_line(found.data) + self._writer, found.tag)
            except Taken:
                continue  # by the writer before, which has just moved it
