"""Keys of updates: one update, however often it is sent."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict

from elastalog.web import faults

MOST = 10_000
"""Keys of which it is known what came with them."""


class Keys:
    """Which update came with which key lately. That an update was done is remembered by the session, for good."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def batch(self, key: str, what: object) -> str:
        """The batch that a key stands for. Raises ElastalogError if it came with something else before."""
        told = hashlib.sha256(repr(what).encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if self._known.setdefault(key, told) != told:
                raise faults.other_update(key)
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return f"key {key}"  # never a number and a step, which a stream would have
