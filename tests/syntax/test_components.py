from __future__ import annotations

import pytest

from elastalog.syntax.tree import Component, Init, Override
from tests.syntax.reading import findings, printed, read, read_clean, read_item


def test_a_component_with_parameters_and_bases() -> None:
    text = ".comp C<T, U> : A<T>, B { .decl p(x: T) p(x) :- q(x). }"
    component = read_item(text)
    assert isinstance(component, Component)
    assert component.name == "C"
    assert [name for name, _ in component.parameters] == ["T", "U"]
    assert [(base.name, [name for name, _ in base.arguments]) for base in component.bases] == [("A", ["T"]), ("B", [])]
    assert len(component.items) == 2
    assert text[slice(*component.span)] == text


def test_instances_and_overrides() -> None:
    first, second = read_clean(".init i = C<number, a.T>\n.init j = D").items
    assert isinstance(first, Init)
    assert isinstance(second, Init)
    assert (first.name, first.component.name) == ("i", "C")
    assert [name for name, _ in first.component.arguments] == ["number", "a.T"]
    (component,) = read_clean(".comp C { .override p, q }").items
    assert isinstance(component, Component)
    assert [item.relation for item in component.items if isinstance(item, Override)] == ["p", "q"]


def test_names_of_instances_in_clauses_and_directives() -> None:
    text = "i.p(x) :- i.j.q(x), !i.r(x), y = count : { i.q(_) }."
    assert printed(text) == [text]
    assert printed(".output i.p, i.j.q(IO=stdout)") == ['.output i.p(IO="stdout")', '.output i.j.q(IO="stdout")']
    assert printed(".decl p(x: i.T)") == [".decl p(x: i.T)"]


@pytest.mark.parametrize(
    "text",
    [
        ".comp C {\n}",
        ".comp C<T> : A<T>, B {\n    .decl p(x: T)\n    p(1).\n    .comp D {\n        .override p\n    }\n}",
    ],
)
def test_printing_a_component(text: str) -> None:
    assert printed(text) == [text]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        (".comp { }", "E0110", "expected the name of a component, found `{`"),
        (".comp C ", "E0110", "expected `{` before what a component holds, found the end of the file"),
        (".comp C { p(1).", "E0110", "expected `}` after what a component holds, found the end of the file"),
        (".comp C<T { }", "E0110", "expected `>` or `,` after a type, found `{`"),
        (".init i C", "E0110", "expected `=` after the name of an instance, found `C`"),
        (".comp C { p(1) }", "E0111", "a clause does not end in `.`"),
    ],
)
def test_faults(text: str, code: str, message: str) -> None:
    assert [found[:2] for found in findings(text)] == [(code, message)]


def test_an_error_inside_does_not_hide_the_rest() -> None:
    assert printed(".comp C {\n p(x) :- .\n q(1). }\nr(1).") == [".comp C {\n    q(1).\n}", "r(1)."]


def test_components_nest_only_so_deep() -> None:
    text = "".join(f".comp C{i} {{ " for i in range(200)) + "}" * 200
    assert "E0116" in {found.code for found in read(text)[1]}
