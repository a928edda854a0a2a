from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elastalog.diagnostics.source import Source, Span
from elastalog.syntax.tokens import tokenize


def tokens(text: str) -> str:
    """Kinds and texts."""
    found, diagnostics = tokenize(Source("test.dl", text))
    assert diagnostics == ()
    return " | ".join(f"{kind} {token}" for kind, token, _ in found)


def wrong(text: str) -> list[tuple[str, str, str, str]]:
    """Code, severity, message and underlined text."""
    return [
        (d.code, d.severity, d.message, text[d.labels[0].span.start : d.labels[0].span.end])
        for d in tokenize(Source("test.dl", text))[1]
    ]


def test_a_rule_is_cut_into_names_and_symbols() -> None:
    found = "name p | symbol ( | name x | symbol , | wildcard _ | symbol ) | symbol :- "
    assert tokens("p(x,_):-q(?x1).") == found + "| name q | symbol ( | name ?x1 | symbol ) | symbol ."


def test_spans_are_offsets_into_the_text() -> None:
    found, _ = tokenize(Source("test.dl", "a /* b */ cd"))
    assert [span for _, _, span in found] == [Span(0, 1), Span(10, 12)]


@pytest.mark.parametrize("text", ["", " \t\r\n", "// x", "// x\n", "/* x\n y */", "/**/", "/***/", "\ufeff"])
def test_trivia_gives_no_tokens(text: str) -> None:
    assert tokens(text) == ""


@pytest.mark.parametrize("text", ["0", "42", "42u", "0x2aF", "0b101", "0x1u", "192.168.0.1", "007"])
def test_integers(text: str) -> None:
    assert tokens(text) == f"integer {text}"


@pytest.mark.parametrize("text", ["1.5", "1e9", "1.5e-3", "2E+7"])
def test_floats(text: str) -> None:
    assert tokens(text) == f"float {text}"


@pytest.mark.parametrize("text", ["12ab", "0xZ", "0b12", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.5u", "0x"])
def test_malformed_numbers_are_reported_whole(text: str) -> None:
    assert wrong(f"p({text}).") == [("E0104", "error", f"`{text}` is not a number", text)]


def test_a_dot_behind_a_number_ends_the_clause() -> None:
    assert tokens("x=5.\n") == "name x | symbol = | integer 5 | symbol ."


@pytest.mark.parametrize("text", ['""', '"a"', r'"\""', r'"\\"', '"// no comment"', '"日本"'])
def test_strings(text: str) -> None:
    assert tokens(text) == f"string {text}"


@pytest.mark.parametrize("text", ['"abc', '"abc\\"', '"', '"\\'])
def test_a_string_ends_with_its_line(text: str) -> None:
    assert wrong(text) == [("E0102", "error", "a string is not closed on its line", text)]
    assert wrong(text + "\np().") == [("E0102", "error", "a string is not closed on its line", text)]


def test_directives_are_single_tokens() -> None:
    assert tokens(".decl .declare .type") == "directive .decl | symbol . | name declare | directive .type"


def test_reserved_words_are_keywords_but_longer_names_are_not() -> None:
    found = "keyword count | name counter | keyword band | name sum_ | keyword true"
    assert tokens("count counter band sum_ true") == found


def test_an_open_comment_is_reported_at_its_start() -> None:
    assert wrong("p(). /* x") == [("E0103", "error", "a comment is not closed", "/*")]
    assert wrong("/*/") == [("E0103", "error", "a comment is not closed", "/*")]


def test_stray_characters() -> None:
    assert wrong("p(\x00).") == [("E0101", "error", "unexpected character U+0000 NULL", "\x00")]
    assert wrong("p(x)`.") == [("E0101", "error", "unexpected character ```", "`")]
    assert wrong("p(\u00a0x).") == [("E0101", "error", "unexpected character U+00A0 NO-BREAK SPACE", "\u00a0")]
    assert wrong("'a'") == [("E0101", "error", "a string is written with double quotes", "'a'")]


def test_bidirectional_marks_are_errors_outside_strings_and_warnings_inside() -> None:
    message = "the text holds the invisible mark U+202E RIGHT-TO-LEFT OVERRIDE"
    assert wrong("// \u202e x") == [("E0107", "error", message, "\u202e")]
    assert wrong("p\u202e") == [("E0107", "error", message, "\u202e")]
    assert wrong('"a\u202eb"') == [("E0107", "warning", message, "\u202e")]


def test_preprocessor_lines_are_named_and_skipped() -> None:
    text = '#include "x.dl"\n  #line 3 \\\n more\np().'
    assert wrong(text) == [
        ("E0197", "error", "`#include` is for the preprocessor, which does not read this", '#include "x.dl"'),
        ("E0197", "error", "`#line` is for the preprocessor, which does not read this", "#line 3 \\\n more"),
    ]


def test_a_byte_order_mark_counts_only_at_the_start() -> None:
    found, diagnostics = tokenize(Source("test.dl", "\ufeffp"))
    assert list(found) == [("name", "p", Span(1, 2))]
    assert diagnostics == ()
    assert [code for code, *_ in wrong("p \ufeff")] == ["E0101"]


def test_names_with_foreign_letters_are_one_error() -> None:
    assert wrong("Größe(x)") == [("E0101", "error", "unexpected characters", "öße")]
    assert wrong("дом1(x)") == [("E0101", "error", "unexpected characters", "дом1")]


@given(st.text())
def test_tokens_lie_in_order_within_the_text(text: str) -> None:
    found, diagnostics = tokenize(Source("test.dl", text))
    assert len(found.texts) == len(found.kinds) == len(found.starts) == len(found.ends)
    end = 0
    for _, _, span in found:
        assert end <= span.start < span.end <= len(text)
        end = span.end
    for diagnostic in diagnostics:
        assert 0 <= diagnostic.labels[0].span.start < diagnostic.labels[0].span.end <= len(text)


def test_a_long_string_takes_a_few_times_its_size() -> None:
    text = '.decl a(x: symbol)\na("' + "xy\\n" * 1_000_000 + '").\n# ' + "x\\\n" * 1_000_000
    tracemalloc.start()
    try:
        tokenize(Source("test.dl", text))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 20 * len(text)
