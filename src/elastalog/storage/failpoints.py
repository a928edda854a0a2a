"""*Failpoints*: the instants around every write, fsync, rename and removal of a `FileSystem` at which a test can stop
the process; `POINTS` lists those of a store, to which a backup adds its own. Nothing happens at them unless a test says
so, or the environment variable `ELASTALOG_FAILPOINT`:

    ELASTALOG_FAILPOINT=journal.write.middle          the process ends there, at once, as if it had been killed
    ELASTALOG_FAILPOINT=journal.write.middle:3        the third time
    ELASTALOG_FAILPOINT=journal.fsync.before:1:raise  raises `Stopped` instead
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Final, Literal, TypeAlias

Action: TypeAlias = Literal["exit", "raise"]

PURPOSES: Final = ("format", "program", "dictionary", "relation", "journal", "manifest", "pointer")
"""What is written."""

_MOMENTS: Final = ("write.before", "write.middle", "write.after", "fsync.before", "fsync.after")

POINTS: Final = (
    *(f"{purpose}.{moment}" for purpose in PURPOSES for moment in _MOMENTS),
    "pointer.rename.before", "pointer.rename.after", "folder.fsync.before", "folder.fsync.after",
    "journal.truncate.before", "journal.truncate.after", "garbage.remove.before", "garbage.remove.after",
)  # fmt: skip
"""Every failpoint of a store: purpose, operation, moment."""

EXIT_CODE: Final = 86
"""With which the process ends at a failpoint."""

VARIABLE: Final = "ELASTALOG_FAILPOINT"


class Stopped(BaseException):
    """Raised at a failpoint. No `Exception`, so that nothing mistakes it for a fault it can handle."""


class _Plan:
    """What to do at failpoints: `left` counts down to the one that stops."""

    def __init__(self, name: str | None, occurrence: int, action: Action) -> None:
        self.name = name
        self.left = occurrence
        self.action = action
        self.lock = Lock()  # a snapshot is written in a thread of its own

    def reach(self, name: str) -> None:
        if self.name is not None and self.name != name:
            return
        with self.lock:
            self.left -= 1
            is_here = self.left == 0
        if is_here:
            if self.action == "exit":
                os._exit(EXIT_CODE)
            raise Stopped(name)


_plan: _Plan | None = None
_record: list[str] | None = None


def is_active() -> bool:
    """Whether anything listens: writes are then done in two halves, with a failpoint between them."""
    return _plan is not None or _record is not None


def reach(name: str) -> None:
    """Marks an instant. Ends the process or raises if a test asked for it."""
    if _record is not None:
        _record.append(name)
    if _plan is not None:
        _plan.reach(name)


def _from_environment() -> None:
    global _plan
    written = os.environ.get(VARIABLE)
    if not written:
        return
    name, _, rest = written.partition(":")
    occurrence, _, action = rest.partition(":")
    if name not in POINTS or not (occurrence or "1").isdigit() or action not in ("", "exit", "raise"):
        raise ValueError(f"{VARIABLE}={written}: not NAME[:OCCURRENCE[:exit|raise]] with a name of failpoints.POINTS")
    _plan = _Plan(name, int(occurrence or 1), "raise" if action == "raise" else "exit")


_from_environment()
