"""Files of other tasks, waited for: on a disk by looking often, at an address, where a look is a request, seldom."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import OpenedFile, files_at

_PAUSES = (0.0002, 0.02)
_PAUSES_AT_AN_ADDRESS = (0.02, 0.5)
"""The shortest and the longest time between two looks for a file."""

_SECONDS_UNTIL_GIVEN_UP = 5.0
"""How often a task that waits looks whether the driver has given up, where that is a request."""

_MOST_TOLD = 256


@contextmanager
def opened_when_there(folder: str, name: str) -> Iterator[OpenedFile]:
    """A file of another task in the folder of the attempt, when it is there. If that task dies, Spark hears of it, and
    then ends this one too."""
    path, files = inside(folder, name), files_at(folder)
    is_far = is_address(folder)
    pause, longest = _PAUSES_AT_AN_ADDRESS if is_far else _PAUSES
    until_given_up = _SECONDS_UNTIL_GIVEN_UP if is_far else 0.0
    looked = time.monotonic()
    with ExitStack() as stack:
        while True:
            with suppress(FileNotFoundError):
                file = stack.enter_context(files.opened(path))
                break
            if time.monotonic() - looked >= until_given_up:
                looked = time.monotonic()
                if not files.is_folder(folder):
                    raise RuntimeError("the driver has given this attempt up")
            time.sleep(pause)
            pause = min(pause * 1.5, longest)
        yield file


def read_when_there(folder: str, name: str) -> bytes:
    """The content of a small file of another task, when it is there: it ends with a line break."""
    found = bytearray()
    with opened_when_there(folder, name) as file:
        while not found.endswith(b"\n"):
            assert len(found) < _MOST_TOLD
            room = bytearray(1)
            file.read_into(memoryview(room), len(found))
            found += room
    return bytes(found[:-1])
