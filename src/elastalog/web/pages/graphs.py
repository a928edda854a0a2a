"""Graphs drawn as SVG, laid out here: nothing is loaded from elsewhere, and every node is a link.

Every edge goes down at least one layer: a node is below all its predecessors, and there are no cycles. Within layers,
nodes are ordered by their neighbours (barycentres, a few sweeps up and down); long edges pass through a place of their
own in every layer; nodes then move towards their neighbours as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from html import escape
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

from elastalog.diagnostics.display import show_text, width

MOST_NODES = 200
"""Larger graphs are not drawn: nobody could read them."""
LEAST = 0.7
"""The smallest scale of a drawing."""
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
_LETTER = 7.6
_MOST_LETTERS = 46


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node: its text, a note below it, its style (`explicit`, `goal`, `recursive`, …), and its link."""

    text: str
    note: str = ""
    kind: str = ""
    href: str = ""


def draw(nodes: Sequence[Drawn], edges: Sequence[tuple[int, int]], *, title: str, weak: Sequence[int] = ()) -> str:
    """The graph, with edges going down or to the right, whichever is narrower. `weak`: positions of the edges that are
    dashed. It is scaled down to the available width, but not below what is legible."""
    sizes = [_size(node) for node in nodes]
    layout, across = lay_out(sizes, edges), lay_out_across(sizes, edges)
    is_across = across.width < layout.width
    if is_across:
        layout = across
    margin = 8
    wide, high = layout.width + 2 * margin, layout.height + 2 * margin
    dashed = set(weak)
    size = f'style="width:clamp({LEAST * wide:.0f}px,100%,{wide:.0f}px)"'
    view = f'viewBox="{-margin} {-margin} {wide:.0f} {high:.0f}" xmlns="http://www.w3.org/2000/svg"'
    parts = [f'<svg role="img" aria-label="{escape(title)}" {size} {view}>{_TIP}']
    for number, points in enumerate(layout.routes):
        look = "edge weak" if number in dashed else "edge"
        parts.append(f'<path class="{look}" d="{_curve(points, is_across)}" marker-end="url(#tip)"/>')
    parts += [_box(node, box) for node, box in zip(nodes, layout.boxes, strict=True)]
    return "".join([*parts, "</svg>"])


def _cut(text: str) -> str:
    text = show_text(text[: 2 * _MOST_LETTERS])
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"


def _size(node: Drawn) -> tuple[float, float]:
    letters = max(width(_cut(node.text)), 0.86 * width(_cut(node.note)))
    return 22 + _LETTER * letters, 48.0 if node.note else 32.0


def _curve(points: Sequence[tuple[float, float]], is_across: bool) -> str:
    """A smooth curve through points, going down, or to the right, at each of them."""
    x, y = points[0]
    parts = [f"M{x:.1f} {y:.1f}"]
    for to_x, to_y in points[1:]:
        half = (x + to_x) / 2 if is_across else (y + to_y) / 2
        bends = (half, y, half, to_y) if is_across else (x, half, to_x, half)
        parts.append("C" + " ".join(f"{number:.1f}" for number in (*bends, to_x, to_y)))
        x, y = to_x, to_y
    return " ".join(parts)


def _box(node: Drawn, box: Box) -> str:
    middle = box.x + box.width / 2
    first = box.y + (20 if node.note else box.height / 2 + 4.5)
    below = f'x="{middle:.1f}" y="{box.y + 38:.1f}" text-anchor="middle"'
    note = f'<text class="note" {below}>{escape(_cut(node.note))}</text>'
    inner = (
        f'<g class="{node.kind}"><title>{escape(show_text(node.text[:400]))}</title>'
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"/>'
        f'<text x="{middle:.1f}" y="{first:.1f}" text-anchor="middle">{escape(_cut(node.text))}</text>'
        f"{note if node.note else ''}</g>"
    )
    return f'<a href="{escape(node.href)}">{inner}</a>' if node.href else inner


SWEEPS = 8
GAP_ACROSS = 26.0
GAP_BETWEEN = 14.0
GAP_DOWN = 54.0
_BEND = 6.0
"""The room that a long edge takes in a layer that it passes through."""

Edge: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Box:
    """The position of a node: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes of nodes, and the points of every edge from top to bottom."""

    boxes: tuple[Box, ...]
    routes: tuple[tuple[tuple[float, float], ...], ...]
    width: float
    height: float


def layers_of(number: int, edges: Sequence[Edge]) -> list[int]:
    """The layer of every node, from 0: one more than the deepest of its predecessors."""
    above: dict[int, list[int]] = {node: [] for node in range(number)}
    for source, target in edges:
        above[target].append(source)
    layer = [0] * number
    for node in TopologicalSorter(above).static_order():
        layer[node] = max((layer[other] + 1 for other in above[node]), default=0)
    return layer


def lay_out(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], gap: float = GAP_ACROSS) -> Layout:
    """The layout of a graph whose nodes have the given widths and heights, layers from top to bottom. `gap`: the space
    between nodes of a layer."""
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
    """Like `lay_out`, with layers from left to right."""
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
    """The edges as chains of nodes, one in each layer from top to bottom, with added nodes in the layers that they pass
    through."""
    widths = [width for width, _ in sizes]
    layer = list(layer)
    chains: list[list[int]] = []
    for source, target in edges:
        between = range(layer[source] + 1, layer[target])
        chains.append([source, *range(len(layer), len(layer) + len(between)), target])
        layer += between
        widths += [_BEND] * len(between)
    return chains, widths, layer


def _sweeps(rows: list[list[int]]) -> Iterator[tuple[list[int], int]]:
    """The layers, downwards and upwards in turns, each with where the layer is that it follows."""
    for sweep in range(SWEEPS):
        beside = 1 if sweep % 2 else -1
        yield from ((row, beside) for row in rows[::-beside])


def _drawn_to(
    row: list[int], beside: int, place: Sequence[float], neighbours: list[list[int]], layer: list[int]
) -> list[float]:
    """Where the nodes of a layer would be if each were in the middle of its neighbours in the layer beside."""
    near = ([place[other] for other in neighbours[node] if layer[other] == layer[node] + beside] for node in row)
    return [fmean(places) if places else place[node] for node, places in zip(row, near, strict=True)]


def _sort(rows: list[list[int]], neighbours: list[list[int]], layer: list[int]) -> None:
    """Orders every layer by the positions of neighbours in the layer before, alternately downwards and upwards."""
    place = [0.0] * len(layer)
    for row in rows:
        for i, node in enumerate(row):
            place[node] = float(i)
    for row, beside in _sweeps(rows):
        wanted = dict(zip(row, _drawn_to(row, beside, place, neighbours, layer), strict=True))
        row.sort(key=wanted.__getitem__)
        for i, node in enumerate(row):
            place[node] = float(i)


def _across(rows: list[list[int]], neighbours: list[list[int]], room: list[float], layer: list[int]) -> list[float]:
    """The centres of all nodes: first side by side, then moved towards their neighbours in the same order. `room`: the
    width that a node takes in its layer."""
    centre = [0.0] * len(layer)
    for row in rows:
        x = -sum(room[node] for node in row) / 2
        for node in row:
            centre[node] = x + room[node] / 2
            x += room[node]
    for row, beside in _sweeps(rows):
        wanted = _drawn_to(row, beside, centre, neighbours, layer)
        for node, x in zip(row, _apart(wanted, [room[node] for node in row]), strict=True):
            centre[node] = x
    return centre


def _apart(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The positions nearest to the desired ones, in the same order and without overlap: touching blocks are moved as
    one."""
    blocks: list[tuple[float, float, int]] = []  # sum of wanted left edges, width so far, members
    for x, wide in zip(wanted, widths, strict=True):
        total, size, members = x - wide / 2, wide, 1
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
