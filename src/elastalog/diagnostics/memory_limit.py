"""How much memory the work of a thread may take: who begins it says so, and who is about to make a large array asks."""

from __future__ import annotations

import os
from contextvars import ContextVar

from elastalog.diagnostics import quota
from elastalog.diagnostics.diagnostic import Diagnostic, LimitReached

LEAST = 1 << 20
"""Bytes that are worth asking for: what is less is seen when the limit is next looked at."""

LIMIT: ContextVar[int | None] = ContextVar("memory of the work", default=None)
"""Bytes of this process."""


def ask(size: int, replaced: int = 0) -> None:
    """Raises LimitReached if so many bytes more would go beyond a limit of the work that is under way: that of the
    process, or what the work itself may allocate. The bytes that are `replaced` are free afterwards."""
    quota.take(size - replaced)
    if size >= LEAST:
        require(size, LIMIT.get())


def require(size: int, limit: int | None) -> None:
    """The same for a limit that is known."""
    if limit is None:
        return
    needed = resident_bytes() + size
    if needed > limit:
        message = f"the memory limit was reached: {needed >> 20} MiB of {limit >> 20} MiB"
        advice = "allow more: `--max-memory`, in Python `limits=Limits(memory=…)`; or evaluate on Spark"
        raise LimitReached([Diagnostic("E0604", message, help=advice)])


def resident_bytes() -> int:
    """The memory of this process, 0 where the system does not say."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)  # a tenth of what `open` takes, which updates notice
        try:
            return int(os.read(file, 256).split()[1]) * os.sysconf("SC_PAGE_SIZE")
        finally:
            os.close(file)
    except (OSError, ValueError, IndexError):
        return 0
