"""Arrays that may be too large for memory: beyond a limit they lie in files of this process, which the system maps into
memory piece by piece, as they are looked at, and takes out again where it is short."""

from __future__ import annotations

import mmap
import os
from typing import Any, Final

import numpy as np

VARIABLE: Final = "ELASTALOG_TEXT_MEMORY"
"""The variable with the limit in bytes: larger arrays of the texts of a dictionary lie in files, below `TMPDIR`."""

_PART_OF_MACHINE = 8


def new_array(size: int, dtype: Any) -> np.ndarray:
    """An array of so many items, whatever they are; in a file if it is large. Forked processes share that one."""
    kind = np.dtype(dtype)
    bytes_needed = size * kind.itemsize
    if bytes_needed <= most_in_memory():
        return np.empty(size, kind)
    from tempfile import TemporaryFile  # which imports much else

    with TemporaryFile(prefix="elastalog-texts-") as file:  # nobody but its mapping knows it
        file.truncate(bytes_needed)
        return np.frombuffer(mmap.mmap(file.fileno(), bytes_needed), kind)


def zeros(size: int, dtype: Any) -> np.ndarray:
    """The same, with zeros."""
    if size * np.dtype(dtype).itemsize <= most_in_memory():
        return np.zeros(size, dtype)
    return new_array(size, dtype)  # a new file has nothing else


def is_mapped(array: np.ndarray) -> bool:
    """Whether an array lies in a file."""
    return isinstance(getattr(array.base, "obj", None), mmap.mmap)  # NumPy holds a memoryview of what it is given


def most_in_memory() -> int:
    """The bytes up to which an array is in memory: as the user has said, or an eighth of the machine's."""
    given = os.environ.get(VARIABLE, "")
    if given.isdecimal():
        return int(given)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _PART_OF_MACHINE
    except (ValueError, OSError):
        return 1 << 30
