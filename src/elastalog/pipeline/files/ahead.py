"""Reading ahead: while one file's facts are encoded, the next file is read and parsed in a thread of its own.

Facts are encoded in the order of the files whatever the number of threads, so that ids do not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Read = TypeVar("Read")


def read_ahead(reads: Iterable[Callable[[], Read]]) -> Iterator[Read]:
    """What reads give, in order; at most one has been done that is not used yet. What one raises is raised in its
    turn. Limits are those of whoever asks (see `allowance`)."""
    pool = ThreadPoolExecutor(1, "elastalog reading")
    try:
        coming: Future[Read] | None = None
        for read in reads:
            following = pool.submit(copy_context().run, read)
            if coming is not None:
                yield coming.result()
            coming = following
        if coming is not None:
            yield coming.result()
    finally:
        pool.shutdown(cancel_futures=True)


__all__ = ["read_ahead"]
