"""Looking one ahead in a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def with_next(items: Iterable[T]) -> Iterator[tuple[T, T | None]]:
    """Each item with the one after it, None after the last. At most one item is read ahead."""
    iterator = iter(items)
    try:
        present = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield present, following
        present = following
    yield present, None
