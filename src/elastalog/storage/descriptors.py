"""Descriptors that belong to the process that opened them.

A forked child inherits every descriptor, and with it the lock on the file: closed by the parent, a store would stay
locked for as long as the child lives. So the child closes its copies before it does anything else, which leaves the
parent's lock alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable


class OwnDescriptor:
    """An open file. `number` is None once it is closed, and from the beginning in a forked child."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, opening: Callable[[], int]) -> None:
        with _OPENING:  # no other thread forks between the opening and the list
            self.number: int | None = opening()
            _OPEN.add(self)

    def close(self) -> None:
        """Gives up the file; again is no error."""
        number, self.number = self.number, None
        if number is not None:
            with contextlib.suppress(OSError):
                os.close(number)


_OPENING = threading.RLock()
_OPEN: weakref.WeakSet[OwnDescriptor] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for descriptor in list(_OPEN):
        descriptor.close()
    _OPENING.release()


os.register_at_fork(before=_OPENING.acquire, after_in_parent=_OPENING.release, after_in_child=_after_fork_in_child)
