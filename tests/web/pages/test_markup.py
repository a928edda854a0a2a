"""Values in pages, and addresses of states."""

from __future__ import annotations

import pytest

from elastalog.web.pages.markup import Address, bytes_html, fact_html, html, seconds_html, value_html


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
