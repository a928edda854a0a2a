"""Declarations, components, and forms that stand for others."""

from __future__ import annotations

import pytest

from tests.syntax.reading import advice, findings, printed, read
from tests.tables import table


@pytest.mark.parametrize(
    ("text", "again"),
    [
        (".decl ready( )", [".decl ready()"]),
        (".decl a, b(x: T) brie inline", [".decl a(x: T) brie inline", ".decl b(x: T) brie inline"]),
        (".decl a(x: number) input btree output", [".decl a(x: number) btree", ".input a", ".output a"]),
        (".decl a(count:number,min:number)", [".decl a(count: number, min: number)"]),
        (".decl a(x: number)\ninline(1).", [".decl a(x: number)", "inline(1)."]),
        (".type T", [".type T <: symbol"]),
        (".symbol_type T", [".type T <: symbol"]),
        (".number_type T", [".type T <: number"]),
        (".type T=A|B|C", [".type T = A | B | C"]),
        (".input a\n.output b()", [".input a", ".output b"]),
        (".input c(IO=stdin,n=10,h=true), d", ['.input c(IO="stdin", n="10", h="true")', ".input d"]),
        (".limitsize a, b(n=7)", ['.limitsize a(n="7")', '.limitsize b(n="7")']),
        ('.pragma "jobs" "4"', ['.pragma "jobs" "4"']),
        (".init i=C<number,a.T>\n.init j=D", [".init i = C<number, a.T>", ".init j = D"]),
        ("a(x),b(x):-c(x).\n.plan 0:(2,1),1:(1, 2)", ["a(x), b(x) :- c(x).\n.plan 0:(2, 1), 1:(1, 2)"]),
        ("p(autoinc(), $).", ["p(autoinc(), autoinc())."]),
    ],
)
def test_items_are_printed_in_one_way(text: str, again: list[str]) -> None:
    """What is written as it is printed is read as what it says: `test_printer.py` has trees of every kind."""
    assert findings(text) == []
    assert printed(text) == again


@pytest.mark.parametrize(("text", "expected"), table(__file__, "wrong declarations", columns=2))
def test_wrong_declarations(text: str, expected: tuple[str, str, str]) -> None:
    assert findings(text) == [expected]


def test_the_nearest_directive_and_qualifier_are_offered() -> None:
    assert advice(".dcl a()") == ["did you mean `.decl`?"]
    assert advice(".Output a") == ["did you mean `.output`?"]
    assert advice(".decl a() inlined") == ["did you mean `inline`?"]
    assert advice(".decl d = debug_delta(p)")[0].startswith("there is no `debug_delta`: the proof of a fact")
    directives = ".decl, .type, .number_type, .symbol_type, .input, .output, .printsize, .limitsize, .plan, .strict"
    directives += ", .pragma, .functor, .comp, .init, .override, .lattice"
    assert advice(".xyzzy a()") == [f"the directives are {directives}"]


@pytest.mark.parametrize(("text", "help_line"), table(__file__, "slips are answered by what is meant"))
def test_slips_are_answered_by_what_is_meant(text: str, help_line: str) -> None:
    assert advice(text) == [help_line]


def test_names_of_instances_in_clauses_and_directives() -> None:
    text = "i.p(x) :- i.j.q(x), !i.r(x), y = count : { i.q(_) }."
    assert printed(text) == [text]
    assert printed(".output i.p, i.j.q(IO=stdout)") == ['.output i.p(IO="stdout")', '.output i.j.q(IO="stdout")']
    assert printed(".decl p(x: i.T)") == [".decl p(x: i.T)"]


@pytest.mark.parametrize(
    "text",
    [
        ".comp C {\n}",
        ".comp C<T, U> : A<T>, B {\n    .decl p(x: T)\n    p(1).\n    .comp D {\n        .override p\n    }\n}",
    ],
)
def test_printing_a_component(text: str) -> None:
    assert printed(text) == [text]


@pytest.mark.parametrize(("text", "code", "message"), table(__file__, "faults"))
def test_faults(text: str, code: str, message: str) -> None:
    assert [found[:2] for found in findings(text)] == [(code, message)]


def test_an_error_inside_does_not_hide_the_rest() -> None:
    assert printed(".comp C {\n p(x) :- .\n q(1). }\nr(1).") == [".comp C {\n    q(1).\n}", "r(1)."]


def test_components_nest_only_so_deep() -> None:
    text = "".join(f".comp C{i} {{ " for i in range(200)) + "}" * 200
    assert "E0116" in {found.code for found in read(text)[1]}


@pytest.mark.parametrize("text", table(__file__, "columns that improve are printed as they are written"))
def test_columns_that_improve_are_printed_as_they_are_written(text: str) -> None:
    assert findings(text) == []
    assert printed(text) == [text]


@pytest.mark.parametrize(("text", "code"), table(__file__, "what is no lattice is reported where it is"))
def test_what_is_no_lattice_is_reported_where_it_is(text: str, code: str) -> None:
    assert [found[0] for found in findings(text + "\nrest(1).")] == [code]


@pytest.mark.parametrize(
    ("kind", "told"), [("min<number>", "write it without brackets: `min number`"), ("number max", "write `max number`")]
)
def test_how_a_column_that_improves_is_written_is_said(kind: str, told: str) -> None:
    assert advice(f".decl d(to: symbol, km: {kind})") == [told]


def test_a_dot_without_spaces_between_clauses_is_no_component() -> None:
    assert findings("p(1).q(2).") == []
    assert findings("p(x) :- q(y), x = y.r(1).") == []


@pytest.mark.parametrize("name", ["p.csv", "data/p.csv", "/data/p.facts", "my-file.tsv", "p.output"])
def test_the_name_of_a_file_needs_quotes(name: str) -> None:
    declared = '.decl p(x: number)\n.input p(IO=file, filename={}, delimiter=",")\n'
    assert advice(declared.format(name)) == [f'write it in quotes: `filename="{name}"`']
    assert advice(declared.format(f'"{name}"')) == []


def test_a_missing_comma_is_named() -> None:
    assert advice(".decl path(from: symbol to: symbol)") == ["write a comma before `to`"]
    assert advice("p(x, 1) :- q(x 1).") == ["write a comma before `1`"]
