"""Delta debugging (ddmin): the baseline, and the way out when nothing better ends in time.

It knows nothing about derivations; it tries smaller and smaller parts. The result is such that no single element can be
left out, if the test is monotone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise


def minimise(
    elements: Sequence[int], is_enough: Callable[[Sequence[int]], bool], deadline: float | None = None
) -> tuple[list[int], bool]:
    """A small part of elements that is still enough, when all of them are; and whether it was reached before the
    deadline."""
    kept = list(elements)
    parts = 2
    while len(kept) >= 2:
        pieces = _split(kept, parts)
        smaller: list[int] | None = None
        following = parts
        for piece in pieces:
            if _is_over(deadline):
                return kept, False
            if is_enough(piece):
                smaller, following = piece, 2
                break
        if smaller is None and parts > 2:
            for piece in pieces:
                if _is_over(deadline):
                    return kept, False
                left = set(piece)
                rest = [element for element in kept if element not in left]
                if is_enough(rest):
                    smaller, following = rest, max(parts - 1, 2)
                    break
        if smaller is not None:
            kept, parts = smaller, following
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return kept, True


def _split(elements: list[int], parts: int) -> list[list[int]]:
    ends = [len(elements) * i // parts for i in range(parts + 1)]
    return [elements[a:b] for a, b in pairwise(ends) if b > a]


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
