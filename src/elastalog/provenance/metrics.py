"""Metrics, which say what makes one proof better than another, and the best values of facts under a metric.

A metric gives explicit facts a value, and computes the value of a derivation from those of its body. It is right to
keep one value for each fact only if (1) values are totally ordered without infinite descent, (2) the function does not
decrease when a body value grows, (3) its result is above every body value. Natural numbers give (1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass(slots=True)
class Hypergraph:
    """Facts by number and the derivations between them: `heads[d]` from `bodies[d]`. `values`: of the facts whose value
    is given, the explicit ones and those outside the part that is looked at."""

    heads: list[int]
    bodies: list[tuple[int, ...]]
    values: dict[int, int]


@dataclass(frozen=True, slots=True)
class Best:
    """The best value of every fact that has one, and the order in which they were found: a fact's best derivation
    rests on facts found before it."""

    values: dict[int, int]
    order: dict[int, int]


def best_values(graph: Hypergraph, metric: Metric, look: Callable[[], None] = lambda: None) -> Best:
    """Knuth's generalisation of Dijkstra's algorithm: facts in the order of their best values. `look` is called for
    every fact, and may raise."""
    values: dict[int, int] = {}
    order: dict[int, int] = {}
    waiting = [len(set(body)) for body in graph.bodies]
    uses: dict[int, list[int]] = {}
    for number, body in enumerate(graph.bodies):
        for fact in set(body):
            uses.setdefault(fact, []).append(number)
    heap = [(value, fact) for fact, value in graph.values.items()]
    heap += [(metric.derived(()), graph.heads[d]) for d, body in enumerate(graph.bodies) if not body]
    heap.sort()
    while heap:
        value, fact = heappop(heap)
        if fact in values:
            continue
        look()
        values[fact] = value
        order[fact] = len(order)
        for number in uses.get(fact, ()):
            waiting[number] -= 1
            head = graph.heads[number]
            if not waiting[number] and head not in values:
                heappush(heap, (metric.derived([values[b] for b in graph.bodies[number]]), head))
    return Best(values, order)


def metric_named(name: str) -> Metric:
    """A metric by its name. Raises E0612."""
    require_one_of("metric", name, tuple(METRICS))
    return METRICS[name]
