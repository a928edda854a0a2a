"""*Failpoints*: the instants before, in the middle of and after every write, fsync, rename and removal of a store. They
are recorded in a block, or the process is stopped at one, at once, as if it had been killed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import pytest

from elastalog.storage.filesystem import FileSystem

Action: TypeAlias = Literal["exit", "raise"]

_BEGIN: Final = {
    "FORMAT": "format", "program": "program", "dictionary/": "dictionary", "facts/": "relation", "journal-": "journal",
    "manifest-": "manifest", "CURRENT": "pointer",
}  # fmt: skip
PURPOSES: Final = tuple(_BEGIN.values())
"""What is written, by how its path in the store begins."""

_MOMENTS: Final = ("write.before", "write.middle", "write.after", "fsync.before", "fsync.after")

POINTS: Final = (
    *(f"{kind}.{moment}" for kind in PURPOSES for moment in _MOMENTS),
    "pointer.rename.before", "pointer.rename.after", "folder.fsync.before", "folder.fsync.after",
    "journal.truncate.before", "journal.truncate.after", "garbage.remove.before", "garbage.remove.after",
)  # fmt: skip
"""Every failpoint of a store: purpose, operation, moment."""

EXIT_CODE: Final = 86
"""With which the process ends at a failpoint."""


class Stopped(BaseException):
    """Raised at a failpoint. No `Exception`, so that nothing mistakes it for a fault it can handle."""


@contextmanager
def reaching(reach: Callable[[str], None]) -> Iterator[None]:
    """Calls a function at every failpoint in the block, with its name."""

    def around(operation: str, name: str, purpose_of: Callable[[Any], str]) -> None:
        plain = getattr(FileSystem, operation)

        def marked(self: FileSystem, what: Any, *rest: Any) -> None:
            reach(f"{purpose_of(what)}.{name}.before")
            plain(self, what, *rest)
            reach(f"{purpose_of(what)}.{name}.after")

        patch.setattr(FileSystem, operation, marked)

    def write(self: FileSystem, descriptor: int, data: bytes | memoryview) -> None:
        kind, middle = purpose(descriptor), len(data) // 2
        reach(f"{kind}.write.before")
        plain_write(self, descriptor, data[:middle])
        reach(f"{kind}.write.middle")
        plain_write(self, descriptor, data[middle:])
        reach(f"{kind}.write.after")

    plain_write = FileSystem._write_all
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileSystem, "_write_all", write)
        around("_fsync", "fsync", purpose)
        around("_truncate", "truncate", purpose)
        around("_rename", "rename", lambda path: "pointer")
        around("remove", "remove", lambda path: "garbage")
        yield


def purpose(descriptor: int) -> str:
    """What a file is written for."""
    path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    if path.is_dir():
        return "folder"
    names = (path.name, f"{path.parent.name}/")
    return next(kind for begin, kind in _BEGIN.items() if any(name.startswith(begin) for name in names))


@contextmanager
def recording() -> Iterator[list[str]]:
    """The failpoints reached in the block, in order."""
    reached: list[str] = []
    with reaching(reached.append):
        yield reached


@contextmanager
def stop_at(occurrence: int, name: str | None = None, action: Action = "raise") -> Iterator[None]:
    """Stops in the block when failpoints (those of a name, or all) have been reached that often."""
    assert name is None or name in POINTS
    left, lock = [occurrence], Lock()  # a snapshot is written in a thread of its own

    def reach(reached: str) -> None:
        if name in (None, reached):
            with lock:
                left[0] -= 1
                is_here = left[0] == 0
            if is_here:
                if action == "exit":
                    os._exit(EXIT_CODE)
                raise Stopped(reached)

    with reaching(reach):
        yield
