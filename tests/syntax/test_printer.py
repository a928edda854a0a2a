from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from elastalog.diagnostics.source import Source
from elastalog.syntax import tree as t
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_clause, print_item, print_literal, print_term, print_tree
from tests.syntax.reading import read_clean, read_item, read_literal, read_term
from tests.syntax.strip_spans import NOWHERE, strip_spans
from tests.syntax.trees import call, clauses, items, terms
from tests.tables import table

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.dl"))


@pytest.mark.parametrize("text", table(__file__, "terms are printed with no more parentheses than needed"))
def test_terms_are_printed_with_no_more_parentheses_than_needed(text: str) -> None:
    assert print_term(read_term(text)) == text


@pytest.mark.parametrize(
    "text", ["a(x, _)", "!a()", "x != y + 1", 'match("a.*", x)', "contains(x, y)", "true", "false", "(a(); b(), !c())"]
)
def test_literals(text: str) -> None:
    clause = read_item(f"p() :- q(), {text}.")
    assert print_literal(clause.body[1]) == text


def test_a_disjunction_alone_needs_no_parentheses() -> None:
    assert print_clause(read_item("p():-((a();b())).")) == "p() :- a(); b()."
    assert print_literal(read_literal("(a() ; b())")) == "(a(); b())"


def test_a_program() -> None:
    text = (
        ".decl edge(x: number, y: number) btree\n"
        ".type T = A | B\n"
        ".type U <: number\n"
        '.input edge(IO="file", delimiter="\\t")\n'
        '.pragma "a" "b"\n'
        "edge(1, 2), edge(2, 1).\n"
        "path(x, z) :- edge(x, y), path(y, z).\n"
        ".plan 0:(2, 1)\n"
    )
    assert print_tree(read_clean(text)) == text


@given(items)
@example(t.Clause((t.Atom("p", (call("neg", t.Integer(5, False, NOWHERE)),), NOWHERE, NOWHERE),), (), None, NOWHERE))
def test_what_is_printed_parses_to_the_same_item(item: t.Item) -> None:
    tree, diagnostics = parse(Source("printed.dl", print_item(item)))
    assert [found.message for found in diagnostics if found.severity == "error"] == []
    assert strip_spans(tree) == (item,)


@settings(max_examples=25)
@given(st.lists(clauses, max_size=4))
def test_what_is_printed_parses_to_the_same_tree(written: list[t.Clause]) -> None:
    source = Source("printed.dl", print_tree(t.Tree(Source("", ""), tuple(written))))
    assert strip_spans(parse(source)[0]) == tuple(written)


@given(terms)
def test_printing_is_stable(term: t.Term) -> None:
    text = print_term(term)
    assert print_term(read_term(text) if "\u202e" not in text else term) == text


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_survive_printing(path: Path) -> None:
    tree = read_clean(path.read_text())
    assert tree.items
    assert strip_spans(read_clean(print_tree(tree))) == strip_spans(tree)
