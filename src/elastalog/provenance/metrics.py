"""Metrics, which say what makes one proof better than another, and the best values of facts under a metric.

A metric gives explicit facts a value, and computes the value of a derivation from those of its body. It is right to
keep one value for each fact only if (1) values are totally ordered without infinite descent, (2) the function does not
decrease when a body value grows, (3) its result is above every body value. Natural numbers give (1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from elastalog.diagnostics.arguments import require_one_of
from elastalog.late import dataclass

MOST = (1 << 63) - 1
"""Where values stop growing."""


@dataclass(frozen=True, slots=True)
class Metric:
    """`explicit`: the value of an explicit fact; `derived`: that of a derivation, from the values of its body facts."""

    name: str
    explicit: int
    derived: Callable[[Sequence[int]], int]


def _height(values: Sequence[int]) -> int:
    return 1 + max(values, default=0)


def _size(values: Sequence[int]) -> int:
    # Shared sub-proofs count wherever they stand, so sizes can double with every level.
    return min(1 + sum(values), MOST)


HEIGHT = Metric("height", 0, _height)
SIZE = Metric("size", 1, _size)
METRICS = {metric.name: metric for metric in (HEIGHT, SIZE)}


def best_values(
    metric: Metric,
    heads: Sequence[int],
    bodies: Sequence[tuple[int, ...]],
    given: Iterable[int],
    look: Callable[[], None] = lambda: None,
) -> dict[int, int]:
    """The best value of every fact that has one, in the order in which they are found: a fact's best derivation rests
    on facts found before it. Facts are numbered; derivation `d` leads to `heads[d]` from `bodies[d]`; those `given`
    have the value of an explicit fact. Knuth's generalisation of Dijkstra's algorithm. `look` is called for every fact,
    and may raise."""
    values: dict[int, int] = {}
    waiting = [len(set(body)) for body in bodies]
    uses: dict[int, list[int]] = {}
    for number, body in enumerate(bodies):
        for fact in set(body):
            uses.setdefault(fact, []).append(number)
    heap = [(metric.explicit, fact) for fact in given]
    heap += [(metric.derived(()), heads[d]) for d, body in enumerate(bodies) if not body]
    heap.sort()
    while heap:
        value, fact = heappop(heap)
        if fact in values:
            continue
        look()
        values[fact] = value
        for number in uses.get(fact, ()):
            waiting[number] -= 1
            head = heads[number]
            if not waiting[number] and head not in values:
                heappush(heap, (metric.derived([values[b] for b in bodies[number]]), head))
    return values


def metric_named(name: str) -> Metric:
    """A metric by its name. Raises E0612."""
    require_one_of("metric", name, tuple(METRICS))
    return METRICS[name]
