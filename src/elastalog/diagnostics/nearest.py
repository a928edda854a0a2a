"""The name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 64


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like `name`, or None when none is near: at most a third of its letters may differ. Ties go to
    the first in alphabetical order, so that messages do not depend on the order of the candidates."""
    if len(name) > _LONGEST:
        return None
    best: str | None = None
    allowed = max(1, len(name) // 3)
    for candidate in sorted(set(candidates)):
        if candidate == name or abs(len(candidate) - len(name)) > allowed:
            continue
        distance = _distance(name.casefold(), candidate.casefold())
        if distance <= allowed:
            best, allowed = candidate, distance - 1
    return best


def _distance(left: str, right: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that turn one word into the other."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(right, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
