"""`CURRENT` at an address: the manifest in force, and behind it the token of who may write, and from which object of
the journal on. What another puts behind that does not count."""

from __future__ import annotations

from elastalog.storage.fetching import WRITER, manifest_line
from elastalog.storage.manifest import POINTER
from elastalog.storage.objects.client import Objects, Tag, Taken
from elastalog.storage.objects.lease import overtaken


class Pointer:
    """The pointer as its writer has left it: by the tag it is known whether another has changed it since."""

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
        """Whether nobody has changed it since."""
        return self._objects.tag(POINTER) == self._tag

    def settle(self, pieces: int) -> None:
        """The journal was read up to an object: those behind it are ours only."""
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
