"""Names and declarations; instances of components have branches of algebraic data types of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import elastalog
from elastalog import Branch, ElastalogError, Program
from tests.analysis.checking import EDGES, accepted, check_text, codes, labelled, only_error
from tests.tables import table


def test_unknown_relation_offers_the_nearest() -> None:
    error = only_error(EDGES + "path(x, y) :- egde(x, y).")
    assert (error.code, error.message) == ("E0204", "unknown relation `egde`")
    assert labelled(error) == [("egde", "not declared", True)]
    assert error.help == "did you mean `edge`?"


def test_wrong_arity_labels_the_use_and_the_declaration() -> None:
    error = only_error(EDGES + "path(x, y) :- edge(x, y, x).")
    assert (error.code, error.message) == ("E0205", "relation `edge` takes 2 arguments, not 3")
    assert labelled(error) == [
        ("edge(x, y, x)", "3 arguments here", True),
        ("edge", "declared with 2 attributes here", False),
    ]


def test_wrong_arity_inside_a_negation_and_an_aggregate() -> None:
    assert codes(EDGES + "path(x, y) :- edge(x, y), !edge(x).") == ["E0205"]
    assert codes(EDGES + "path(x, n) :- edge(x, _), n = count : { edge(x) }.") == ["E0205"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("strlen(s, s)", "functor `strlen` takes 1 argument, not 2"),
        ("cat()", "functor `cat` takes at least 1 argument, not 0"),
        ("substr(s, 1)", "functor `substr` takes 3 arguments, not 2"),
    ],
)
def test_wrong_arity_of_a_functor(call: str, message: str) -> None:
    error = only_error(f".decl w(s: symbol)\n.input w\n.decl r(s: symbol)\nr(s) :- w(s), s != to_string({call}).")
    assert (error.code, error.message) == ("E0207", message)


def test_functors_with_any_number_of_arguments() -> None:
    accepted('.decl r(n: number, s: symbol)\nr(min(3, 1, 2, 5), cat("a", "b", "c", "d")).')


def test_relation_declared_twice() -> None:
    error = only_error(".decl a(x: number)\n.input a\n.decl a(y: symbol)")
    assert (error.code, error.message) == ("E0201", "relation `a` is declared twice")
    assert labelled(error) == [("a", "declared again here", True), ("a", "first declared here", False)]


def test_several_names_in_one_declaration() -> None:
    program = accepted(".decl a, b(x: number)\n.input a, b")
    assert list(program.relations) == ["a", "b"]
    assert [d.kind for d in program.relations["b"].directives] == ["input"]


def test_nullary_relations() -> None:
    program = accepted(".decl go()\n.decl went()\ngo().\nwent() :- go().")
    assert program.facts[0].values == ()
    assert program.relations["went"].arity == 0


def test_order_of_declarations_does_not_matter() -> None:
    accepted("b(x) :- a(x).\n.input a\n.decl b(x: T)\n.decl a(x: T)\n.type T = U\n.type U <: symbol")


def test_deprecated_qualifiers_act_as_directives() -> None:
    program = accepted(".decl a(x: number) input\n.decl b(x: number) output printsize\nb(x) :- a(x).")
    assert [d.kind for d in program.relations["a"].directives] == ["input"]
    assert [d.kind for d in program.relations["b"].directives] == ["output", "printsize"]


def test_hints_are_notes_once_for_each_place() -> None:
    program, found = check_text(".decl a, b(x: number) btree\n.input a, b")
    assert program is not None
    assert [(d.code, d.severity) for d in found] == [("E0220", "note")]


def test_pragmas_are_kept() -> None:
    program = accepted('.pragma "jobs" "4"\n.decl a(x: number)\n.input a')
    assert dict(program.pragmas) == {"jobs": "4"}


@pytest.mark.parametrize("name", ["a.csv", "sub/../a.csv", "./a.csv", "..a", "a..b", "/a", "../a", "a/../../b"])
def test_file_names_may_lead_anywhere(name: str) -> None:
    program = accepted(f'.decl a(x: number)\n.input a(filename="{name}")')
    assert program.relations["a"].directives[0].parameters["filename"] == name


@pytest.mark.parametrize("name", ["", ".", "..", "a/..", "/", "a\\0b"])
def test_texts_that_are_no_file_names(name: str) -> None:
    assert only_error(f'.decl a(x: number)\n.input a(filename="{name}")').code == "E0216"


def test_unknown_parameter_is_a_warning_with_the_nearest() -> None:
    program, found = check_text('.decl a(x: number)\n.input a(filenam="x")')
    assert program is not None
    assert [(d.code, d.severity, d.help) for d in found] == [("E0214", "warning", "did you mean `filename`?")]


def test_several_outputs_to_different_places() -> None:
    program = accepted('.decl a(x: number)\n.input a\n.output a(filename="1.csv")\n.output a(filename="2.csv")')
    assert len(program.relations["a"].directives) == 3


def test_relation_without_facts_is_a_warning() -> None:
    program, found = check_text(".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).")
    assert program is not None
    assert [(d.code, d.message) for d in found] == [("E0223", "relation `a` never holds a fact")]


def test_a_recursion_that_nothing_begins_is_a_warning() -> None:
    cycle = ".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\na(x) :- b(x).\n"
    _, (found,) = check_text(cycle)
    assert found.message == "nothing begins the recursion of `a`, `b`: it never holds a fact"
    assert (found.code, found.severity, labelled(found)[0][0]) == ("E0223", "warning", "a")
    for beginning in ("b(1).", ".input a", ".decl c(x: number)\n.input c\na(x) :- c(x)."):
        assert "E0223" not in codes(cycle + beginning)


def test_an_equivalence_and_a_column_that_improves_may_begin_with_what_the_text_says() -> None:
    assert codes(".decl r(x: number, y: number) eqrel\nr(1, 2).\n") == []
    assert codes(".decl far(x: number, km: min number)\nfar(1, 2).\nfar(x, a + 1) :- far(x, a).\n") == []


def test_variable_used_once_is_a_warning() -> None:
    _, found = check_text(EDGES + "path(x, x) :- edge(x, y).")
    assert [(d.code, d.severity, labelled(d)[0][0]) for d in found] == [("E0324", "warning", "y")]


@pytest.mark.parametrize(("rule", "advice"), table(__file__, "variable used once in an equality is a warning"))
def test_variable_used_once_in_an_equality_is_a_warning(rule: str, advice: str) -> None:
    declared = ".decl e(x: symbol, y: symbol)\n.decl p(x: symbol)\n.decl q(n: number)\n.decl r(n: number)\n"
    _, found = check_text(f"{declared}.input e\n.input p\n.input q\n.input r\n{rule}")
    assert [(d.code, d.severity, d.help) for d in found] == [("E0324", "warning", advice)]


@pytest.mark.parametrize("rule", table(__file__, "no warning about variables"))
def test_no_warning_about_variables(rule: str) -> None:
    assert codes(EDGES + rule) == []


@pytest.mark.parametrize(("declarations", "code"), table(__file__, "faults of declarations"))
def test_faults_of_declarations(declarations: str, code: str) -> None:
    assert only_error(declarations).code == code


def test_types_come_down_to_their_base() -> None:
    program = accepted(
        ".type A <: float\n.type B = A\n.type C <: B\n.type U = B | C\n.decl r(a: A, b: B, c: C, u: U)\n.input r"
    )
    assert {(a.type_name, a.base.value) for a in program.relations["r"].attributes} == {
        ("A", "float"),
        ("B", "float"),
        ("C", "float"),
        ("U", "float"),
    }


@pytest.mark.parametrize(("text", "help_line"), table(__file__, "names without their sign or instance are told"))
def test_names_without_their_sign_or_instance_are_told(text: str, help_line: str) -> None:
    assert only_error(text).help == help_line


PROGRAM = """
.comp C {
  .type T = A {x: number} | B {}
  .decl r(t: T)
  .output r
  r($A(1)).
  r($B).
  r($A(x + 1)) :- r($A(x)), x < 3.
}
.init c = C
.init d = C
.decl q(n: number)
q(x) :- c.r($c.A(x)).
.decl s(t: d.T)
.input s
"""


def test_two_instances_have_their_own_branches() -> None:
    with elastalog.open(PROGRAM, facts={"s": [(Branch("d.A", 7),)]}) as db:
        assert set(db["c.r"]) == {(Branch("c.A", n),) for n in (1, 2, 3)} | {(Branch("c.B"),)}
        assert set(db["d.r"]) == {(Branch("d.A", n),) for n in (1, 2, 3)} | {(Branch("d.B"),)}
        assert set(db["q"]) == {(1,), (2,), (3,)}
        assert set(db["s"]) == {(Branch("d.A", 7),)}
        assert db.explain("c.r($c.A(3))").height == 2
        assert set(db.query("d.r($d.A(X)), X > 2")) == {(3,)}


def test_facts_and_stores_spell_them(tmp_path: Path) -> None:
    (tmp_path / "s.facts").write_text("$d.A(5)\n$d.B\n")
    with elastalog.open(PROGRAM, facts=tmp_path, store=tmp_path / "store") as db:
        assert set(db["s"]) == {(Branch("d.A", 5),), (Branch("d.B"),)}
    with elastalog.open(store=tmp_path / "store") as db:
        db.apply({"s": [(Branch("d.A", 6),)]})
        assert (Branch("d.A", 6),) in db["s"]


@pytest.mark.parametrize("name", ["$A", "$c.A"])
def test_a_branch_that_only_one_instance_has_needs_no_qualifier(name: str) -> None:
    text = PROGRAM.replace(".init d = C\n", "").replace("$c.A", name).replace("d.T", "c.T")
    with elastalog.open(text, facts={"s": []}) as db:
        assert (Branch("c.A", 1),) in db["c.r"]
        assert set(db["q"]) == {(1,), (2,), (3,)}


def test_the_innermost_is_meant_and_others_are_unknown_outside() -> None:
    outer = ".type O = A {}\n.decl o(x: O)\no($A).\n"
    assert codes(outer + PROGRAM) == []
    assert codes(PROGRAM + ".decl u(t: c.T)\nu($A(1)).") == ["E0241"]


@pytest.mark.parametrize(("rule", "advice"), table(__file__, "habits of other languages get the help that is meant"))
def test_habits_of_other_languages_get_the_help_that_is_meant(rule: str, advice: str) -> None:
    try:
        found = Program.parse(
            ".decl n(x: symbol, k: number)\n.input n\n.decl q(x: symbol)\n.output q\n" + rule
        ).warnings
    except ElastalogError as error:
        found = error.diagnostics
    assert advice in [one.help for one in found]
