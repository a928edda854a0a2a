"""Where the nodes of a directed graph stand when it is drawn in layers.

Every edge goes down at least one layer: a node stands below all that lead to it, edges that close a cycle set aside.
Within layers, nodes are put near their neighbours (barycentres, a few sweeps up and down), long edges run through a
place of their own in every layer, and nodes are then moved towards their neighbours as far as there is room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

SWEEPS = 8
GAP_ACROSS = 26.0
GAP_BETWEEN = 14.0
GAP_DOWN = 54.0
_BEND = 6.0
"""The room that a long edge takes in a layer that it passes."""

Edge: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    """Where a node stands: its upper left corner, and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Boxes of nodes, and for every edge the points that it goes through, from top to bottom."""

    boxes: tuple[Box, ...]
    routes: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layers_of(number: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of every node, from 0: one more than the deepest of those that lead to it."""
    below: list[list[int]] = [[] for _ in range(number)]
    for source, target in _acyclic(number, edges):
        below[source].append(target)
    layer = [0] * number
    waiting = [0] * number
    for targets in below:
        for target in targets:
            waiting[target] += 1
    ready = [node for node in range(number) if not waiting[node]]
    for node in ready:
        for target in below[node]:
            layer[target] = max(layer[target], layer[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return layer


def _acyclic(number: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges without those that lead back on the way of a search in depth."""
    below: list[list[int]] = [[] for _ in range(number)]
    for source, target in edges:
        if source != target:
            below[source].append(target)
    state = [0] * number  # 0 not seen, 1 on the way, 2 done
    kept: list[Edge] = []
    for root in range(number):
        if state[root]:
            continue
        state[root] = 1
        trail = [(root, iter(below[root]))]
        while trail:
            node, targets = trail[-1]
            following = next(targets, None)
            if following is None:
                state[node] = 2
                trail.pop()
            elif state[following] != 1:
                kept.append((node, following))
                if state[following] == 0:
                    state[following] = 1
                    trail.append((following, iter(below[following])))
    return kept


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], gap: float = GAP_ACROSS) -> Layout:
    """The layout of a graph whose nodes have the given widths and heights, layers from top to bottom. `gap`: what is
    left free between nodes of a layer."""
    layer = layers_of(len(sizes), edges)
    chains, widths, layer = _with_bends(sizes, edges, layer)
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, depth in enumerate(layer):
        rows[depth].append(node)
    neighbours: list[list[int]] = [[] for _ in layer]
    for chain in chains:
        for one, other in pairwise(chain):
            neighbours[one].append(other)
            neighbours[other].append(one)
    _sort(rows, neighbours, layer)
    centre = _across(rows, neighbours, [width + gap for width in widths], layer)
    left = min((centre[node] - widths[node] / 2 for node in range(len(layer))), default=0.0)
    centre = [x - left for x in centre]
    heights = [max((sizes[node][1] for node in row if node < len(sizes)), default=0.0) for row in rows]
    tops = [sum(heights[:depth]) + GAP_DOWN * depth for depth in range(len(rows))]
    boxes = tuple(
        Box(centre[n] - w / 2, tops[layer[n]] + (heights[layer[n]] - h) / 2, w, h) for n, (w, h) in enumerate(sizes)
    )
    routes = tuple(_route(chain, boxes, centre, layer, tops, heights) for chain in chains)
    right = max((box.x + box.width for box in boxes), default=0.0)
    return Layout(boxes, routes, right, (tops[-1] + heights[-1]) if rows else 0.0)


def lay_out_across(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge]) -> Layout:
    """The same, layers from left to right."""
    down = lay_out([(height, width) for width, height in sizes], edges, GAP_BETWEEN)
    return Layout(
        tuple(Box(box.y, box.x, box.height, box.width) for box in down.boxes),
        tuple(tuple((y, x) for x, y in route) for route in down.routes),
        down.height,
        down.width,
    )


def _with_bends(
    sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], layer: list[int]
) -> tuple[list[list[int]], list[float], list[int]]:
    """The edges as chains of nodes, one in each layer from top to bottom, with nodes added for those that they pass."""
    widths = [width for width, _ in sizes]
    layer = list(layer)
    chains: list[list[int]] = []
    for source, target in edges:
        top, bottom = (source, target) if layer[source] <= layer[target] else (target, source)
        chain = [top]
        for depth in range(layer[top] + 1, layer[bottom]):
            chain.append(len(layer))
            layer.append(depth)
            widths.append(_BEND)
        chain.append(bottom)
        chains.append(chain)
    return chains, widths, layer


def _sort(rows: list[list[int]], neighbours: list[list[int]], layer: list[int]) -> None:
    """Orders every layer by where the neighbours in the layer before it stand, down and up in turn."""
    place = {node: float(i) for row in rows for i, node in enumerate(row)}
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for row in rows if is_down else reversed(rows):
            beside = -1 if is_down else 1
            mean = {}
            for node in row:
                near = [place[other] for other in neighbours[node] if layer[other] == layer[node] + beside]
                mean[node] = sum(near) / len(near) if near else place[node]
            row.sort(key=lambda node: mean[node])
            for i, node in enumerate(row):
                place[node] = float(i)


def _across(rows: list[list[int]], neighbours: list[list[int]], room: list[float], layer: list[int]) -> list[float]:
    """The centres of all nodes: side by side at first, then moved towards their neighbours, order kept. `room`: what a
    node takes in its layer."""
    centre = [0.0] * len(layer)
    for row in rows:
        x = -sum(room[node] for node in row) / 2
        for node in row:
            centre[node] = x + room[node] / 2
            x += room[node]
    for sweep in range(SWEEPS):
        beside = -1 if sweep % 2 == 0 else 1
        for row in rows if beside < 0 else reversed(rows):
            wanted = []
            for node in row:
                near = [centre[other] for other in neighbours[node] if layer[other] == layer[node] + beside]
                wanted.append(sum(near) / len(near) if near else centre[node])
            for node, x in zip(row, _apart(wanted, [room[node] for node in row]), strict=True):
                centre[node] = x
    return centre


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """Places nearest to the wanted ones, in the same order and without overlap: blocks that touch are moved as one."""
    blocks: list[tuple[float, float, int]] = []  # sum of wanted left edges, width so far, members
    for x, width in zip(wanted, widths, strict=True):
        total, size, members = x - width / 2, width, 1
        while blocks and blocks[-1][0] / blocks[-1][2] + blocks[-1][1] > total / members:
            before, room, others = blocks.pop()
            total, size, members = before + total - room * members, room + size, others + members
        blocks.append((total, size, members))
    found: list[float] = []
    for total, _, members in blocks:
        left = total / members
        for _ in range(members):
            width = widths[len(found)]
            found.append(left + width / 2)
            left += width
    return found


def _route(
    chain: list[int],
    boxes: tuple[Box, ...],
    centre: list[float],
    layer: list[int],
    tops: list[float],
    heights: list[float],
) -> tuple[tuple[float, float], ...]:
    first, *between, last = chain
    points = [(centre[first], boxes[first].y + boxes[first].height)]
    for node in between:
        top = tops[layer[node]]
        points += [(centre[node], top), (centre[node], top + heights[layer[node]])]
    points.append((centre[last], boxes[last].y))
    return tuple(points)
