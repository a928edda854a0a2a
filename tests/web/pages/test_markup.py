"""Values in pages, and addresses of states; graphs drawn in layers."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from elastalog.diagnostics.diagnostic import finding
from elastalog.diagnostics.source import Source, Span
from elastalog.web.pages.graphs import Drawn, draw, lay_out, layers_of
from elastalog.web.pages.markup import Address, bytes_html, fact_html, fault_html, html, seconds_html, value_html


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '" onmouseover="alert(1)', "' onclick='x", "&lt;b&gt;"])
def test_a_text_never_becomes_markup(text):
    shown = value_html(text)
    assert "<script" not in shown
    assert '"' not in shown
    assert "'" not in shown


def test_marks_that_reorder_a_line_are_made_visible():
    shown = html("abc\u202edef\u2066\x1b[31m")
    assert "\u202e" not in shown
    assert "\u2066" not in shown
    assert "\x1b" not in shown
    assert shown.count('class="wb-odd"') == 3
    assert "\\u{202e}" in shown


def test_a_newline_in_a_value_is_written_as_the_language_does():
    assert value_html("a\nb") == "&quot;a\\nb&quot;"


def test_a_long_text_is_cut_and_says_how_long_it_is():
    shown = value_html("x" * 1_000_000)
    assert len(shown) < 300
    assert "1,000,000 characters" in shown


def test_a_fact_is_written_as_in_the_language():
    assert fact_html("path", (1, "a<b", 2.5)) == "path(1, &quot;a&lt;b&quot;, 2.5)"


def test_an_address_is_read_as_it_is_written():
    address = Address.of(
        "/facts", relation="path", where='x = "a&b=c"', epoch=3, open=["0.1", "0.2"], levels=True, nothing=None
    )
    again = Address.read(str(address))
    assert again == address
    assert again.get("where") == 'x = "a&b=c"'
    assert again.all("open") == ("0.1", "0.2")
    assert again.epoch == 3
    assert again.get("nothing", "-") == "-"


def test_a_parameter_is_set_anew_or_left_out():
    address = Address.of("/facts", page=2, relation="path")
    assert str(address.with_(page=None)) == "/facts?relation=path"
    assert address.with_(page=3).number("page") == 3


@pytest.mark.parametrize("written", ["x", "-1", "1.5", "", "9" * 40, "٣"])
def test_what_is_no_number_is_none(written):
    assert Address.of("/", epoch=written).epoch is None


def test_durations_and_sizes_are_in_the_unit_that_suits_them():
    assert [seconds_html(s) for s in (0.0012, 0.25, 2.34, 75)] == ["1.2 ms", "250 ms", "2.3 s", "75 s"]
    assert [bytes_html(b) for b in (12, 2048, 3 << 20, 5 << 30)] == ["12 B", "2 KiB", "3 MiB", "5.0 GiB"]


def test_a_node_stands_below_all_that_lead_to_it():
    assert layers_of(5, [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)]) == [0, 1, 2, 0, 3]


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


@pytest.mark.parametrize(("name", "is_linked"), [("calls.dl", True), ("<given>", True), ("<query>", False)])
def test_only_a_line_of_the_program_leads_there(name, is_linked):
    found = fault_html(finding("E0618.empty", Span(0, 1), source=Source(name, "x")))
    assert "line 1, column 1" in found
    assert ("/program?line=1" in found) == is_linked


@pytest.mark.parametrize("key", ["E0625", "E0625.explicit"])
def test_advice_speaks_of_pages(key):
    found = fault_html(finding(key, facts="path(1, 2)", it="it", relation="path"))
    assert "its own page show" in found
    assert not any(other in found for other in ("explain", "why_not", "suggest", "command"))
