"""Hover, completion, repairs and outlines."""

from __future__ import annotations

import pytest

from elastalog.diagnostics.source import Source
from elastalog.editing.complete import Proposal, complete
from elastalog.editing.hover import coloured, hover, outline
from elastalog.editing.repairs import repairs
from elastalog.editing.scopes import Kind
from elastalog.syntax.keywords import DIRECTIVES, QUALIFIERS
from tests.editing.marked import Files
from tests.tables import table

PROGRAM = """.type Node <: symbol
// Roads between towns,
// in both directions.
.decl edge(from: Node, to: Node)
.input edge
.decl degree(node: Node, edges: number)
degree(n, d) :- edge(n, _), d = count : { edge(n, _) }.
.output degree
"""


def told(text: str, counts: dict[str, int] | None = None) -> str | None:
    files = Files(main=text)
    return hover(files.reading(), *files.cursor, counts)


def test_a_relation_with_its_comment_and_counts() -> None:
    text = PROGRAM.replace("- edge(n", "- ed^ge(n")
    assert told(text) == (
        "```elastalog\n.decl edge(from: Node, to: Node)\n```\n\n"
        "Roads between towns,\nin both directions.\n\n`edge`: 0 rules"
    )
    assert (told(text, {"edge": 1234}) or "").endswith("`edge`: 0 rules, 1,234 facts")
    assert (told(PROGRAM.replace("degree(n,", "degree^(n,"), {"degree": 1}) or "").endswith("`degree`: 1 rule, 1 fact")


def test_a_relation_of_a_component_in_all_instances() -> None:
    text = ".comp C { .decl r^(x: number)  r(1). }\n.init a = C\n.init b = C\n"
    assert (told(text, {"a.r": 1, "b.r": 1}) or "").endswith("`a.r`: 0 rules, 1 fact\n\n`b.r`: 0 rules, 1 fact")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("degree(n, d)", "degree(n^, d)", "n: Node"),
        ("degree(n, d)", "degree(n, d^)", "d: number"),
        ("from: Node", "from: No^de", ".type Node <: symbol"),
    ],
)
def test_types(old: str, new: str, expected: str) -> None:
    assert (told(PROGRAM.replace(old, new)) or "").startswith(f"```elastalog\n{expected}\n```")


def test_a_variable_that_stands_in_no_column() -> None:
    text = ".decl p(x: number)\np(x) :- y^ = 1.5, x = ftoi(y).\n"
    assert told(text) == "```elastalog\ny: float\n```"


def test_words_of_the_language() -> None:
    assert (
        told(PROGRAM.replace(".input", ".in^put"))
        == '`.input` reads facts of a relation: `.input edge(IO=file, filename="edges.csv")`'
    )
    assert told('.decl p(x: number)\np(strl^en("a")).\n') == "```\nstrlen(symbol) -> number\n```"
    assert told(PROGRAM + "\n  ^  \n") is None


def test_the_rest_is_known_while_a_clause_is_half_written() -> None:
    assert "Node" in (told(PROGRAM + "degree(n, d) :- edge(n, \n.output ed^ge\n") or "")


# --- completion ----------------------------------------------------------------------------------------------------


def proposed(text: str) -> dict[str, Proposal]:
    files = Files(main=text)
    name, at = files.cursor
    found = complete(files.reading(), Source(name, files.texts[name]), at)
    assert len({each.text for each in found}) == len(found)
    return {each.text: each for each in found}


def test_directives() -> None:
    assert set(DIRECTIVES) | {"include", "once"} == set(proposed(PROGRAM + ".^"))
    assert "decl" in proposed(PROGRAM + "  .de^")


def test_relations_with_their_columns() -> None:
    found = proposed(PROGRAM + "degree(x, 1) :- ^")
    assert found["edge"] == Proposal("edge", Kind.RELATION, "(from: Node, to: Node)", "edge(${1:from}, ${2:to})")
    assert found["x"].sort is Kind.VARIABLE
    assert found["strlen"].detail == "strlen(symbol) -> number"
    assert {"count", "match", "nil"} <= set(found)
    assert "number" not in found


def test_attributes_come_first_in_an_atom() -> None:
    found = proposed(PROGRAM + "degree(x, 1) :- edge(x, ^")
    assert next(iter(found.values())) == Proposal("to", "attribute", "Node")


@pytest.mark.parametrize("text", [".decl p(x: ^", ".type A = ^", ".type A <: ^", ".functor f(x: ^"])
def test_types_where_types_stand(text: str) -> None:
    assert set(proposed(PROGRAM + text)) == {"number", "unsigned", "float", "symbol", "Node"}


def test_relations_in_directives() -> None:
    assert set(proposed(PROGRAM + ".output ^")) == {"edge", "degree"}


def test_qualifiers() -> None:
    assert set(proposed(PROGRAM + ".decl p(x: number) ^")) == {*QUALIFIERS, "choice-domain"}
    assert set(proposed(PROGRAM + ".decl p(x: number, y: number) choice-domain ^")) == {"x", "y"}


def test_members_of_instances() -> None:
    text = ".comp A<T> { .decl r(x: T) }\n.comp B : A<number> { .decl s(x: number) }\n.init b = B\n"
    assert set(proposed(text + ".decl p(x: number)\np(x) :- b.^")) == {"r", "s"}
    assert set(proposed(text + ".init c = ^")) == {"A", "B"}
    assert set(proposed(text + ".comp C : ^")) == {"A", "B"}


def test_names_inside_a_component() -> None:
    found = proposed(".decl top(x: number)\n.comp A<T> { .decl r(x: T)\n r(x) :- ^\n}\n")
    assert {"top", "r"} <= set(found)


def test_functors_and_branches() -> None:
    text = ".functor f(x: number): symbol\n.type T = A {x: number} | B {}\n.decl p(x: T)\n"
    assert proposed(text + "p(@^")["f"].detail == "(x: number): symbol"
    assert proposed(text + "p($^")["A"].snippet == "A(${1:x})"


def test_the_preprocessor() -> None:
    assert "include" in proposed("#^")


@pytest.mark.parametrize("text", ["// ed^", '.decl p(x: symbol)\np("ed^").', "/* ed^ */", '.decl p(x: symbol)\np("ed^'])
def test_nothing_inside_comments_and_texts(text: str) -> None:
    assert proposed(PROGRAM + text) == {}


# --- repairs -------------------------------------------------------------------------------------------------------


def repaired(text: str, which: int = 0) -> list[str]:
    """The text after each of the repairs of a finding that has some."""
    files = Files(main=text)
    reading = files.reading()
    offered = [made for found in reading.diagnostics if (made := repairs(reading, found))]
    results = []
    for repair in offered[which]:
        start, end = repair.place.span
        results.append(text[:start] + repair.text + text[end:])
    return results


@pytest.mark.parametrize(("old", "new"), table(__file__, "a slip is put right"))
def test_a_slip_is_put_right(old: str, new: str) -> None:
    assert repaired(PROGRAM.replace(old, new)) == [PROGRAM]


def test_a_variable_that_occurs_once() -> None:
    text = PROGRAM.replace("edge(n, _), d", "edge(n, m), d")
    assert repaired(text) == [PROGRAM, PROGRAM.replace("edge(n, _), d", "edge(n, _m), d")]


def test_a_declaration_that_is_missing() -> None:
    text = "quite_new(1) :- 1 < 2.\n"
    assert repaired(text) == [".decl quite_new(x1: number)\nquite_new(1) :- 1 < 2.\n"]


def test_single_quotes() -> None:
    assert repaired(".decl p(x: symbol)\np('it').\n.output p\n") == ['.decl p(x: symbol)\np("it").\n.output p\n']


def test_a_relation_that_nothing_fills() -> None:
    text = ".decl p(x: number)\n.decl q(x: number)\nq(x) :- p(x).\n.output q\n"
    assert repaired(text) == [text.replace(".decl q", ".input p\n.decl q")]


def test_what_a_macro_wrote_is_not_repaired() -> None:
    files = Files(main="#define BODY egde(n, _)\n" + PROGRAM + "degree(n, 0) :- BODY.\n")
    reading = files.reading()
    assert reading.diagnostics
    assert [repairs(reading, found) for found in reading.diagnostics if found.code == "E0204"] == [()]


# --- outlines ------------------------------------------------------------------------------------------------------


def test_an_outline_of_each_file() -> None:
    files = Files(
        main='.include "c.dl"\n.init i = C\n.decl p(x: number)\n',
        c=".comp C { .decl r(x: number)\n.type T <: number }\n",
    )
    reading = files.reading()
    main, other = files.texts
    assert [(entry.name, entry.kind, entry.detail) for entry in outline(reading, main)] == [
        ("i", Kind.INSTANCE, "C"),
        ("p", Kind.RELATION, "(x: number)"),
    ]
    (component,) = outline(reading, other)
    assert [entry.name for entry in component.inner] == ["r", "T"]


def test_colours_are_in_order() -> None:
    files = Files(main=PROGRAM)
    reading = files.reading()
    found = coloured(reading, reading.file)
    assert [PROGRAM[slice(*place.span)] for place, _ in found][:4] == ["Node", "edge", "Node", "Node"]
    assert [kind for _, kind in found][:2] == [Kind.TYPE, Kind.RELATION]
