"""Finds the name that was probably meant."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_LONGEST = 64
MOST_WORK = 1_000_000
"""Comparisons of letters that looking for one name may take: a fraction of a second."""


class Effort:
    """What searches for names may still cost, in comparisons of letters. When it is used up, nothing is found."""

    __slots__ = ("left",)

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left


def nearest(name: str, candidates: Iterable[str], effort: Effort | None = None) -> str | None:
    """The candidate most like `name`, or None when none is near: at most a third of its letters may differ, one of two
    or three, and of a single letter only its case. Ties go to the first in alphabetical order, so that messages do not
    depend on the order of the candidates. `effort` bounds the work of several calls together."""
    effort = effort or Effort()
    if len(name) > _LONGEST or effort.left <= 0:
        return None
    best: str | None = None
    allowed = max(len(name) > 1, len(name) // 3)
    folded = name.casefold()
    near = {candidate for candidate in candidates if abs(len(candidate) - len(name)) <= allowed and candidate != name}
    for candidate in sorted(near):
        effort.left -= len(name) * (2 * allowed + 1)
        if effort.left < 0:
            return None  # a suggestion that depends on where the search ended would be a guess
        distance = _distance(folded, candidate.casefold(), allowed)
        if distance <= allowed:
            best, allowed = candidate, distance - 1
            if allowed < 0:
                break
    return best


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The help line with the name that was probably meant; None if nothing is near. Editors recognise its wording."""
    near = nearest(name, candidates)
    return None if near is None else f"did you mean `{near}`?"


def path_near(path: str | Path) -> str | None:
    """The help line with the path that was probably meant by one that does not exist; None if nothing is near."""
    path = Path(path)
    try:
        return None if path.exists() else did_you_mean(path.name, os.listdir(path.parent))
    except (OSError, ValueError):
        return None


def _distance(left: str, right: str, most: int) -> int:
    """The number of insertions, deletions, replacements and swaps of neighbours that turn one word into the other;
    `most + 1` if it exceeds `most`. Only the band around the diagonal is examined: outside it, the number is always
    larger."""
    beyond = most + 1
    before: list[int] = []
    row = [min(j, beyond) for j in range(len(right) + 1)]
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [beyond] * (len(right) + 1)
        if i <= most:
            row[0] = i
        least = row[0]
        for j in range(max(1, i - most), min(len(right), i + most) + 1):
            b = right[j - 1]
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            if cost < beyond:
                row[j] = cost
                least = min(least, cost)
        if least > most and (i < 2 or min(before) >= most):
            return beyond  # a swap may still reach back one row
    return row[-1]
