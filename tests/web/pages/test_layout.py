"""Graphs drawn in layers."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

from elastalog.web.pages.graphs import Drawn, draw, lay_out, layers_of


def test_a_node_stands_below_all_that_lead_to_it():
    assert layers_of(5, [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)]) == [0, 1, 2, 0, 3]


def test_an_edge_that_closes_a_cycle_is_set_aside():
    assert layers_of(3, [(0, 1), (1, 2), (2, 0), (1, 1)]) == [0, 1, 2]


def test_no_node_is_drawn_over_another_in_a_large_graph():
    chance = random.Random(7)
    sizes = [(chance.uniform(40, 380), 32.0) for _ in range(200)]
    edges = [(chance.randrange(node), node) for node in range(1, 200)] + [
        (chance.randrange(60), chance.randrange(60, 200)) for _ in range(60)
    ]
    layout = lay_out(sizes, edges)
    boxes = layout.boxes
    for number, one in enumerate(boxes):
        assert one.x >= -0.01
        assert one.x + one.width <= layout.width + 0.01
        for other in boxes[:number]:
            is_beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            is_above = one.y + one.height <= other.y or other.y + other.height <= one.y
            assert is_beside or is_above


def test_edges_go_down_from_box_to_box():
    layout = lay_out([(50, 30)] * 4, [(0, 1), (1, 2), (0, 2), (0, 3)])
    for (source, target), route in zip([(0, 1), (1, 2), (0, 2), (0, 3)], layout.routes, strict=True):
        top, bottom = layout.boxes[source], layout.boxes[target]
        assert route[0][1] == top.y + top.height
        assert route[-1][1] == bottom.y
        assert all(earlier[1] <= later[1] for earlier, later in pairwise(route))


def test_nothing_to_draw_is_drawn():
    assert lay_out([], []).boxes == ()
    ElementTree.fromstring(draw([], [], title="nothing"))


def test_hostile_texts_are_escaped_in_a_drawing():
    nodes = [Drawn('<script>alert("x")</script>', "a & b", href='/fact?fact="><script>'), Drawn("\u202egnp.exe")]
    drawing = draw(nodes, [(0, 1)], title='"<')
    tree = ElementTree.fromstring(drawing)
    assert not any(element.tag.endswith("script") for element in tree.iter())
    assert "\u202e" not in drawing
