"""Types: what mixes and what does not."""

from __future__ import annotations

import pytest

from elastalog.diagnostics.source import Source
from elastalog.program import Program
from elastalog.program.program import examine
from tests.analysis.checking import accepted, check_text, codes, labelled, only_error
from tests.tables import table

ALL = ".decl all(n: number, u: unsigned, f: float, s: symbol)\n.input all\n.decl out(n: number)\n"


def test_clash_of_a_variable_shows_both_places() -> None:
    error = only_error(ALL + "out(n) :- all(n, _, _, n).")
    assert (error.code, error.message) == ("E0301", "variable `n` is used as number and as symbol")
    assert labelled(error) == [("n", "`n` is a symbol here", True), ("n", "`n` becomes a number here", False)]
    assert [label.span.start for label in error.labels] == sorted(
        (label.span.start for label in error.labels), reverse=True
    )


def test_clash_with_the_declaration_of_a_fact() -> None:
    error = only_error('.decl age(name: symbol, years: number)\nage("ann", "31").')
    assert (error.code, error.message) == ("E0302", "argument 2 of `age` is a number, not a symbol")
    assert labelled(error) == [('"31"', "a symbol", True), ("years: number", "declared as number here", False)]
    assert error.help == "write it without quotes: `31`"


def test_comparison_shows_both_sides_and_where_the_types_come_from() -> None:
    error = only_error(ALL + "out(n) :- all(n, _, f, _), n < f.")
    assert (error.code, error.message) == ("E0303", "`<` compares a number with a float")
    assert labelled(error) == [
        ("n", "a number", True),
        ("f", "a float", True),
        ("n", "`n` becomes a number here", False),
        ("f", "`f` becomes a float here", False),
    ]


@pytest.mark.parametrize(("literal", "code"), table(__file__, "types do not mix"))
def test_types_do_not_mix(literal: str, code: str) -> None:
    errors = [d.code for d in check_text(ALL + f"out(n) :- all(n, u, f, s), {literal}.")[1] if d.severity == "error"]
    assert errors == [code]


@pytest.mark.parametrize("literal", table(__file__, "accepted types"))
def test_accepted_types(literal: str) -> None:
    accepted(ALL + f"out(n) :- all(n, u, f, s), {literal}.")


def test_whole_literals_follow_their_context() -> None:
    program = accepted(".decl r(n: number, u: unsigned, f: float)\nr(1, 2, 3).\nr(-1, 0x10, -2).")
    assert [fact.values for fact in program.facts] == [(1, 2, 3.0), (-1, 16, -2.0)]
    assert [type(value) for value in program.facts[0].values] == [int, int, float]


def test_all_faults_of_a_rule_are_reported() -> None:
    assert codes(ALL + 'out(s) :- all(n, _, _, s), n = "a", n = 1.5.') == ["E0301", "E0303", "E0303"]


CITIES = (
    ".type City <: symbol\n.type Person <: symbol\n.type Any = City | Person\n.type More = Any | Other\n"
    ".type Other <: symbol\n.decl lives(p: Person, c: City)\n.input lives\n.decl any(x: Any)\n.input any\n"
    ".decl text(t: symbol)\n.input text\n.decl more(x: More)\n.input more\n.decl r(c: City)\n"
)


@pytest.mark.parametrize(("rule", "source"), table(__file__, "a value does not go into a subtype it need not have"))
def test_a_value_does_not_go_into_a_subtype_it_need_not_have(rule: str, source: str) -> None:
    error = only_error(CITIES + rule)
    assert (error.code, error.message) == ("E0307", f"a `{source}` cannot go into a column of type `City`")


def test_the_way_of_a_value_is_shown() -> None:
    assert labelled(only_error(CITIES + "r(z) :- lives(x, _), y = x, z = y.")) == [
        ("z", "declared as `City`", True),
        ("x", "it is a `Person` here", False),
        ("y = x", "and goes on here", False),
        ("z = y", "and goes on here", False),
    ]


@pytest.mark.parametrize("rule", table(__file__, "a value goes into its own type and those above"))
def test_a_value_goes_into_its_own_type_and_those_above(rule: str) -> None:
    assert codes(CITIES + rule) in ([], ["E0223"])


def test_what_was_accepted_before_is_a_warning() -> None:
    program = Program.reopen(CITIES + "r(p) :- lives(p, _).", "program.dl")
    assert [(d.code, d.severity) for d in program.warnings] == [("E0307", "warning")]


@pytest.mark.parametrize("tail", table(__file__, "related types do not warn"))
def test_related_types_do_not_warn(tail: str) -> None:
    types = (
        ".type City <: symbol\n.type Person <: symbol\n.type Town = City\n.type Any = City | Person\n"
        ".decl lives(p: Person, c: City)\n.input lives\n"
    )
    assert codes(types + tail) == []


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("text(x) :- lives(x, _), lives(_, x).", ["E0312"]),
        ("text(x) :- lives(x, _), lives(_, y), x = y.", ["E0312"]),
        ("text(x) :- lives(x, _), lives(_, y), z = y, z = x.", ["E0312"]),
        ("text(x) :- lives(x, _), any(x).", []),
        ("text(x) :- lives(x, _), more(x).", []),
        ("text(x) :- lives(x, _), text(x).", []),
        ("text(x) :- lives(x, _), lives(_, y), x != y.", []),
        ("text(x) :- lives(x, _), !lives(_, x).", []),
        ("text(x) :- lives(x, _), lives(_, as(x, City)).", []),
        ("text(x) :- lives(x, _), lives(_, y), x = as(y, Person).", []),
        ('text(x) :- lives(x, _), x = "a".', []),
        ('text(x) :- lives(x, _), x = cat("a", "b").', []),
        ("number(@size([x])) :- lives(_, x).", []),
        ("number(@size([x])) :- lives(x, _).", ["E0312"]),  # within what a functor takes, as anywhere
    ],
)
def test_a_variable_has_one_type(rule: str, wanted: list[str]) -> None:
    sized = ".type Of = [city: City]\n.functor size(of: Of): number stateful\n.decl number(n: number)\n"
    assert [code for code in codes(CITIES + sized + rule) if code != "E0223"] == wanted


def test_the_two_types_of_a_variable_are_shown() -> None:
    assert labelled(only_error(CITIES + "text(x) :- lives(x, _), lives(_, x).")) == [
        ("x", "a `City` here", True),
        ("x", "a `Person` here", False),
    ]


def test_a_store_may_hold_rules_with_variables_of_two_types() -> None:
    program = Program.reopen(CITIES + "text(x) :- lives(x, _), lives(_, x).", "program.dl")
    assert "E0312" not in [d.code for d in program.warnings]


DECLARED = """
.type Pair = [a: number, b: number]
.decl e(x: number, y: number)
.decl u(x: unsigned)
.decl f(x: float)
.decl s(x: symbol)
.decl r(p: Pair)
.functor g(x: number): number
"""


@pytest.mark.parametrize("clause", table(__file__, "types follow from atoms and equations"))
def test_types_follow_from_atoms_and_equations(clause: str) -> None:
    assert examine(Source("<text>", DECLARED + clause))[1] is not None


@pytest.mark.parametrize("clause", table(__file__, "types that clash are refused"))
def test_types_that_clash_are_refused(clause: str) -> None:
    assert examine(Source("<text>", DECLARED + clause))[1] is None


def test_a_fraction_in_a_column_of_whole_numbers() -> None:
    assert only_error(".decl e(x: number)\ne(1.5).").help == "write a whole number, or declare `x: float`"


CLASHES = (
    ".decl r(x: symbol, n: number, d: symbol)\n.input r\n.decl av(m: float)\n.input av\n.decl o(x: symbol)\n"
    ".decl whole(n: number)\n.decl positive(n: unsigned)\n"
)


@pytest.mark.parametrize(("rule", "wrong", "right", "said"), table(__file__, "what is advised for a clash is accepted"))
def test_what_is_advised_for_a_clash_is_accepted(rule: str, wrong: str, right: str, said: str) -> None:
    assert str(only_error(CLASHES + rule.format(wrong)).help).startswith(said)
    accepted(CLASHES + rule.format(right))


def test_a_loss_of_a_conversion_is_said() -> None:
    error = only_error(CLASHES + "whole(m) :- av(m).")
    assert error.help == "convert the float with `to_number(m)`, which drops the fraction, or change a declaration"
    accepted(CLASHES + "whole(to_number(m)) :- av(m).")
