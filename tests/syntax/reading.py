"""Short ways to read pieces of programs in tests."""

from __future__ import annotations

from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic
from elastalog.diagnostics.source import Source
from elastalog.syntax.parser import parse
from elastalog.syntax.printer import print_item
from elastalog.syntax.tree import Call, Clause, Comparison, Float, Integer, String, Term, Tree, Variable


def read(text: str) -> tuple[Tree, tuple[Diagnostic, ...]]:
    return parse(Source("test.dl", text))


def read_clean(text: str) -> Tree:
    tree, diagnostics = read(text)
    assert [found.message for found in diagnostics] == []
    return tree


def read_item(text: str) -> Any:
    (item,) = read_clean(text).items
    return item


def read_literal(text: str) -> Any:
    clause = read_item(f"p() :- {text}.")
    assert isinstance(clause, Clause)
    (literal,) = clause.body
    return literal


def read_term(text: str) -> Term:
    comparison = read_literal(f"v = {text}")
    assert isinstance(comparison, Comparison)
    return comparison.right


def findings(text: str) -> list[tuple[str, str, str]]:
    """Code, message and the underlined text of each finding."""
    _, diagnostics = read(text)
    return [(d.code, d.message, text[d.labels[0].span.start : d.labels[0].span.end]) for d in diagnostics]


def advice(text: str) -> list[str | None]:
    return [found.help for found in read(text)[1]]


def printed(text: str) -> list[str]:
    """The items that were read, printed, whatever else was found."""
    return [print_item(item) for item in read(text)[0].items]


def shape(term: Term) -> str:
    """A term with operators as functors, too: precedence at a glance."""
    match term:
        case Call():
            return f"{term.functor}({', '.join(map(shape, term.arguments))})"
        case Variable():
            return term.name
        case Integer() | Float() | String():
            return str(term.value)
        case _:
            return type(term).__name__
