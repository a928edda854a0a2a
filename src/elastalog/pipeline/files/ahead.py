"""Reading ahead: while one part of the facts is encoded, the parts behind it are read and parsed in threads.

Parts are encoded in their order whatever the number of threads, so that ids do not depend on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

Read = TypeVar("Read")


def read_ahead(reads: Iterable[Callable[[], Read]], threads: int) -> Generator[Read, None, None]:
    """What reads give, in order, this thread among those that read; at most `threads` have been done, or are being
    done, that are not used yet. What one raises is raised in its turn. Limits are those of whoever asks (see
    `allowance`), who closes this if the rest is not wanted."""
    if threads < 2:
        yield from (read() for read in reads)
        return
    pool = ThreadPoolExecutor(threads - 1, "elastalog reading")
    coming: deque[tuple[Callable[[], Read], Future[Read]]] = deque()

    def next_one() -> Read:
        read, future = coming.popleft()
        # What nobody has begun yet is quicker done than waited for.
        return read() if future.cancel() else future.result()

    try:
        for read in reads:
            coming.append((read, pool.submit(copy_context().run, read)))
            if len(coming) > threads:
                yield next_one()
        while coming:
            yield next_one()
    finally:
        pool.shutdown(cancel_futures=True)


__all__ = ["read_ahead"]
