from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.diagnostics import excerpt
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label, Severity, render_json, render_text
from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.highlight import DatalogLexer


def label(text: str, part: str, message: str = "", primary: bool = True, occurrence: int = 1) -> Label:
    start = -1
    for _ in range(occurrence):
        start = text.index(part, start + 1)
    return Label(Span(start, start + len(part)), message, primary)


def render(text: str, *labels: Label, severity: Severity = "error", name: str = "test.dl") -> list[str]:
    diagnostic = Diagnostic("E0110", "message", labels, severity=severity, source=Source(name, text))
    return render_text(diagnostic).split("\n")


def test_the_example_of_the_style_guide() -> None:
    text = "\n" * 11 + "reach(x, y) :- edge(x, y), ok(y).\n\nok(y) :- node(y), !reach(y, y).\n"
    diagnostic = Diagnostic(
        "E0412",
        "relation `reach` depends on its own negation",
        (
            label(text, "!reach(y, y)", "`ok` uses the negation of `reach` here"),
            label(text, "ok(y)", "`reach` uses `ok` here", primary=False),
        ),
        ("a negated relation must be complete before it is read",),
        "split the rule so that `ok` negates a relation outside this cycle",
        source=Source("rules/reach.dl", text),
    )
    assert render_text(diagnostic) == (
        "error[E0412]: relation `reach` depends on its own negation\n"
        "  --> rules/reach.dl:14:19\n"
        "12 | reach(x, y) :- edge(x, y), ok(y).\n"
        "   |                            ----- `reach` uses `ok` here\n"
        "14 | ok(y) :- node(y), !reach(y, y).\n"
        "   |                   ^^^^^^^^^^^^ `ok` uses the negation of `reach` here\n"
        "   = note: a negated relation must be complete before it is read\n"
        "   = help: split the rule so that `ok` negates a relation outside this cycle"
    )


def test_several_labels_on_one_line() -> None:
    text = "p(x) :- q(y), r(z)."
    labels = label(text, "x", "first"), label(text, "y", "second", primary=False), label(text, "r(z)", "third")
    assert render(text, *labels) == [
        "error[E0110]: message",
        " --> test.dl:1:3",
        "1 | p(x) :- q(y), r(z).",
        "  |   ^       -   ^^^^ third",
        "  |   |       |",
        "  |   |       second",
        "  |   first",
    ]


def test_labels_that_overlap_get_rows_of_their_own() -> None:
    text = "p(x) :- q(y)."
    assert render(text, label(text, "q(y)", "atom"), label(text, "y", "variable", primary=False))[2:] == [
        "1 | p(x) :- q(y).",
        "  |         ^^^^ atom",
        "  |           - variable",
    ]


def test_a_label_over_several_lines_is_marked_at_both_ends() -> None:
    text = "p(x) :-\n    q(x),\n    r(x).\n"
    assert render(text, Label(Span(5, text.index(").\n") + 1), "body"))[1:] == [
        " --> test.dl:1:6",
        "1 | p(x) :-",
        "  |      ^^",
        "3 |     r(x).",
        "  |     ^^^^ body",
    ]


def test_a_label_at_the_end_of_the_file() -> None:
    assert render("p(x)", Label(Span(4, 4), "here"))[2:] == ["1 | p(x)", "  |     ^ here"]
    assert render("", Label(Span(0, 0), "here"))[2:] == ["1 |", "  | ^ here"]
    assert render("p\n", Label(Span(2, 2), "here"))[1:] == [" --> test.dl:2:1", "2 |", "  | ^ here"]


def test_tabs_and_wide_characters_keep_the_underline_in_place() -> None:
    text = '\tp("日本e\u0301", x).'
    assert render(text, label(text, "x", "here"))[2:] == ['1 |     p("日本e\u0301", x).', "  |                ^ here"]
    assert render(text, label(text, "日本"))[3] == "  |        ^^^^"


def test_control_and_bidirectional_characters_are_escaped() -> None:
    text = "a\x1b[31m\u202eb\x00c\r\n"
    lines = render(text, label(text, "c", "\x1b"), name="x\u202e.dl")
    assert lines[1] == " --> x\\u{202e}.dl:1:10"
    assert lines[2] == "1 | a\\x1b[31m\\u{202e}b\\0c"
    assert lines[3] == "  |                     ^ \\x1b"


def test_carriage_returns_are_not_shown() -> None:
    assert render("p(x)\r\nq(y)\r\n", Label(Span(0, 1)))[2:] == ["1 | p(x)", "  | ^"]


def test_long_lines_are_cropped_around_the_label() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    assert render(text, label(text, "HERE", "text"))[1:] == [
        " --> test.dl:1:501",
        "1 | …" + "a" * 40 + "HERE" + "b" * 76 + "…",
        "  | " + " " * 41 + "^^^^ text",
    ]
    assert render(text, Label(Span(0, 1000)))[2:] == ["1 | " + "a" * 120 + "…", "  | " + "^" * 121]


def test_labels_far_apart_on_a_long_line_are_shown_each() -> None:
    text = "X" + "a" * 500 + "Y"
    assert render(text, label(text, "X", "one"), label(text, "Y", "two"))[2:] == [
        "1 | X" + "a" * 119 + "…",
        "  | ^ one",
        "1 | …" + "a" * 40 + "Y",
        "  | " + " " * 41 + "^ two",
    ]


def test_a_place_outside_program_texts() -> None:
    diagnostic = Diagnostic("E0500", "bad row", help="mend it", location="edge.facts:17")
    assert render_text(diagnostic) == "error[E0500]: bad row\n --> edge.facts:17\n  = help: mend it"


def test_no_place_at_all() -> None:
    assert render_text(Diagnostic("E0117", "too many", severity="note")) == "note[E0117]: too many"


def test_lines_of_a_note_are_aligned() -> None:
    assert render_text(Diagnostic("E0117", "m", notes=("a\nb",))).split("\n")[1:] == ["  = note: a", "          b"]


@pytest.mark.parametrize("severity", ["error", "warning", "note"])
def test_the_severity_is_named(severity: Severity) -> None:
    assert render("p", Label(Span(0, 1)), severity=severity)[0] == f"{severity}[E0110]: message"


def test_the_text_of_an_exception_is_what_is_rendered() -> None:
    first, second = Diagnostic("E0101", "one"), Diagnostic("E0102", "two")
    assert str(ElastalogError([first, second])) == "error[E0101]: one\n\nerror[E0102]: two"


def test_colours_change_nothing_but_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    lexer = DatalogLexer(stripnl=False, ensurenl=False)
    monkeypatch.setattr(excerpt, "find_lexer", lambda: lexer)
    text = '\tp("日本", 5) :- q(x). // note'
    labels = (label(text, "5", "five"), label(text, "q(x)", "atom", primary=False))
    diagnostic = Diagnostic("E0110", "message", labels, ("n",), "h", source=Source("test.dl", text))
    coloured = render_text(diagnostic, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(diagnostic)
    assert "\x1b[1;31merror[E0110]\x1b[0m" in coloured
    assert "\x1b[36m5\x1b[0m" in coloured
    assert "\x1b[33mq\x1b[0m" in coloured


def test_colours_without_a_registered_lexer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excerpt, "find_lexer", lambda: None)
    diagnostic = Diagnostic("E0110", "message", (Label(Span(0, 1)),), source=Source("test.dl", "p(5)."))
    assert "p(5)." in render_text(diagnostic, color=True)


@given(st.text(max_size=60), st.integers(-5, 70), st.integers(-5, 70), st.integers(0, 70), st.integers(0, 70))
def test_any_text_and_spans_render_to_harmless_lines(text: str, a: int, b: int, c: int, d: int) -> None:
    labels = (Label(Span(a, b), text), Label(Span(c, d), "x", False))
    output = render_text(Diagnostic("E0110", text, labels, (text,), text, source=Source(text, text)))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]", output)


def test_an_empty_list() -> None:
    assert json.loads(render_json([])) == []


def test_every_field() -> None:
    source = Source("a.dl", "p(x) :-\n q(y).\n")
    labels = (Label(Span(9, 13), "here"), Label(Span(2, 10), "there", False))
    diagnostic = Diagnostic("E0110", "message", labels, ("one", "two"), "help", "warning", source)
    assert json.loads(render_json([diagnostic])) == [
        {
            "code": "E0110",
            "severity": "warning",
            "message": "message",
            "location": None,
            "labels": [
                {
                    "file": "a.dl",
                    "line": 2,
                    "column": 2,
                    "end_line": 2,
                    "end_column": 6,
                    "text": "here",
                    "primary": True,
                },
                {
                    "file": "a.dl",
                    "line": 1,
                    "column": 3,
                    "end_line": 2,
                    "end_column": 3,
                    "text": "there",
                    "primary": False,
                },
            ],
            "notes": ["one", "two"],
            "help": "help",
        }
    ]


def test_a_place_outside_program_texts_as_json() -> None:
    (entry,) = json.loads(render_json([Diagnostic("E0500", "bad row", location="edge.facts:17")]))
    assert (entry["location"], entry["labels"], entry["help"]) == ("edge.facts:17", [], None)


def test_lone_surrogates_do_not_break_the_output() -> None:
    render_json([Diagnostic("E0101", "\ud800")]).encode("utf-8")
