"""Graphs drawn as SVG, laid out here: nothing is loaded from anywhere, and every node is a link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from elastalog.diagnostics.display import show_text, width
from elastalog.web.pages.layout import Box, lay_out, lay_out_across

MOST_NODES = 200
"""More are not drawn: nobody could read them."""
LEAST = 0.7
"""How far a drawing is shrunk at most."""
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)
_LETTER = 7.6
_MOST_LETTERS = 46


@dataclass(frozen=True, slots=True)
class Drawn:
    """A node: its text, a note under it, how it looks (`explicit`, `goal`, `recursive`, …), where it leads."""

    text: str
    note: str = ""
    kind: str = ""
    href: str = ""


def draw(nodes: Sequence[Drawn], edges: Sequence[tuple[int, int]], *, title: str, weak: Sequence[int] = ()) -> str:
    """The graph, edges going down or to the right, whichever is narrower. `weak`: the edges, by position, that are
    dashed. It may be shrunk to the width that there is, but not so far that it cannot be read any more."""
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
    for number, ((source, target), points) in enumerate(zip(edges, layout.routes, strict=True)):
        if source != target:
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
    """A smooth way through points, going down, or to the right, at each of them."""
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
