"""Types: what mixes and what does not."""

from __future__ import annotations

import pytest

from elastalog.diagnostics.source import Source
from elastalog.program import Program
from elastalog.program.program import examine
from tests.analysis.checking import accepted, check_text, codes, labelled, only_error

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


@pytest.mark.parametrize(
    ("literal", "code"),
    [
        ("n = u", "E0303"),
        ("n = f", "E0303"),
        ("n = s", "E0303"),
        ("u = f", "E0303"),
        ("u < s", "E0303"),
        ("f != s", "E0303"),
        ("n = 1.5", "E0303"),
        ("n = 1u", "E0303"),
        ('n = "1"', "E0303"),
        ("s = 1", "E0303"),
        ("contains(n, s)", "E0303"),
        ("match(s, 5)", "E0303"),
        ('match("(?=a).*", s)', "E0310"),
        ('match("(a)\\\\1", s)', "E0310"),
        ('match("a{1001}", s)', "E0310"),
        ('s = capture("(?=a)", s, 0)', "E0310"),
        ("n + u = 1", "E0305"),
        ("s - s = s", "E0305"),
        ("f % 2 = f", "E0305"),
        ("strlen(n) = 1", "E0305"),
        ("cat(s, n) = s", "E0305"),
        ("substr(s, s, 1) = s", "E0305"),
        ("band(f, f) = f", "E0305"),
        ("itof(f) = f", "E0305"),
        ("u = -1", "E0304"),
        ("n = 18446744073709551615", "E0304"),
        ("n = sum x : { all(_, _, _, x) }", "E0308"),
        ("x = min s : { all(_, _, _, s) }, n = 1", "E0308"),
        ("n = mean x : { all(x, _, _, _) }", "E0303"),
        ("u = count : { all(_, _, _, _) }", "E0303"),
        ("f = sum x : { all(x, _, _, _) }", "E0303"),
    ],
)
def test_types_do_not_mix(literal: str, code: str) -> None:
    errors = [d.code for d in check_text(ALL + f"out(n) :- all(n, u, f, s), {literal}.")[1] if d.severity == "error"]
    assert errors == [code]


@pytest.mark.parametrize(
    "literal",
    [
        "n = to_number(u)",
        "u = to_unsigned(s)",
        "f = to_float(n)",
        "s = to_string(f)",
        "f = itof(n)",
        "n = ftoi(f)",
        "u = itou(n)",
        "u = ftou(f)",
        "n = utoi(u)",
        "f = utof(u)",
        "f = 1",
        "u = 1",
        "f > n0, n0 = 1.5",
        "u = 18446744073709551615",
        "n = -9223372036854775808",
        's < "z"',
        's = max(s, "a", "b")',
        "f = min(f, 1, 2)",
        "n = strlen(s) + ord(s) * 2 - -n",
        "u = bshru(u, 2) bxor 3",
        "n = 3 land lnot n",
        "f = 2 ^ f / 3",
        "f = mean x : { all(x, _, _, _) }",
        "u = sum x : { all(_, x, _, _) }",
        "f = max x * 2 : { all(_, _, x, _) }",
        "match(cat(s, s), s)",
        "f > 1, 2 < f + 3",
        "a = b, b = c, c = f + 1, a < 2.5",
        "x = 1, y = x + 2, y > n",
    ],
)
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


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("r(p) :- lives(p, _).", "Person"),
        ("r(t) :- text(t).", "symbol"),
        ("r(x) :- any(x).", "Any"),
        ("r(y) :- lives(x, _), y = x.", "Person"),
        ("r(z) :- lives(x, _), y = x, z = y.", "Person"),
        ("r(x) :- any(x), more(x).", "Any"),
        ("r(as(c, Person)) :- lives(_, c).", "Person"),
        ("r(x) :- lives(_, c), x = as(c, Person).", "Person"),
    ],
)
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


@pytest.mark.parametrize(
    "rule",
    [
        "r(x) :- any(x), lives(_, x).",
        "r(y) :- lives(_, x), y = x.",
        "r(as(p, City)) :- lives(p, _).",
        "r(x) :- lives(as(x, Person), _), lives(_, x).",
        "r(cat(p, p)) :- lives(p, _).",
        "any(x) :- lives(x, _).",
        "more(x) :- any(x).",
        "text(x) :- more(x).",
        'r("x") :- true.',
    ],
)
def test_a_value_goes_into_its_own_type_and_those_above(rule: str) -> None:
    assert codes(CITIES + rule) in ([], ["E0223"])


def test_what_was_accepted_before_is_a_warning() -> None:
    program = Program.reopen(CITIES + "r(p) :- lives(p, _).", "program.dl")
    assert [(d.code, d.severity) for d in program.warnings] == [("E0307", "warning")]


@pytest.mark.parametrize(
    "tail",
    [
        ".decl r(c: City)\nr(c) :- lives(_, c).",
        ".decl r(c: symbol)\nr(c) :- lives(_, c).",
        ".decl r(c: Town)\nr(c) :- lives(_, c).",
        ".decl r(c: Any)\nr(p) :- lives(p, _).",
        '.decl r(c: City)\nr("x").',
    ],
)
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
    ],
)
def test_a_variable_has_one_type(rule: str, wanted: list[str]) -> None:
    assert [code for code in codes(CITIES + rule) if code != "E0223"] == wanted


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


@pytest.mark.parametrize(
    "clause",
    [
        "e(x, y) :- e(y, x), !s(_), x != y.",
        "e(x, n) :- e(x, y), n = y * 2 + 1, n < 100.",
        "e(x, n) :- e(x, y), 7 - y = n.",
        "e(x, -1) :- e(x, _), x > -(3).",
        "e(x, x + 1) :- e(x, _).",
        "u(x + 1) :- u(x), x < 10u.",
        "f(x * 2) :- f(x), x != 1.",
        's(x + "a") :- s(x), x < "b".',
        "s(cat(x, y, x)) :- s(x), s(y), min(x, y) = x.",
        "e(x, 1) :- x < 3, e(x, _).",
        "e(x, n) :- s(t), e(x, _), n = strlen(t).",
        "e(x, n) :- e(x, _), n = 3.",
        "e(x, y) :- r(p), p = [x, y].",
        "r([x, y]) :- e(x, y).",
        "e(x, @g(x)) :- e(x, _).",
        "e(x, as(x, number)) :- e(x, _).",
        's(x) :- s(x), match("a.*", x).',
    ],
)
def test_types_follow_from_atoms_and_equations(clause: str) -> None:
    assert examine(Source("<text>", DECLARED + clause))[1] is not None


@pytest.mark.parametrize(
    "clause",
    [
        "s(x) :- e(x, _).",
        "e(x, y) :- e(x, _), s(t), y = t.",
        "e(x, 18446744073709551615) :- e(x, _).",
        "f(x % 2) :- f(x).",
        "u(x) :- u(x), x > -1.",
        'e(x, x + "a") :- e(x, _).',
    ],
)
def test_types_that_clash_are_refused(clause: str) -> None:
    assert examine(Source("<text>", DECLARED + clause))[1] is None


def test_a_fraction_in_a_column_of_whole_numbers() -> None:
    assert only_error(".decl e(x: number)\ne(1.5).").help == "write a whole number, or declare `x: float`"


CLASHES = (
    ".decl r(x: symbol, n: number, d: symbol)\n.input r\n.decl av(m: float)\n.input av\n.decl o(x: symbol)\n"
    ".decl whole(n: number)\n.decl positive(n: unsigned)\n"
)


@pytest.mark.parametrize(
    ("rule", "wrong", "right", "said"),
    [
        ("o(x) :- r(x, n, _), av(m), {}.", "n < m", "to_float(n) < m", "convert the number with `to_float(n)`"),
        ("o(x) :- r(x, n, _), av(m), {}.", "m > n", "m > to_float(n)", "convert the number with `to_float(n)`"),
        ("o(x) :- r(x, n, _), {}.", "n > 3.5", "to_float(n) > 3.5", "convert the number with `to_float(n)`"),
        ("o(x) :- r(x, n, _), av(m), {} > 3.5.", "n * m", "to_float(n) * m", "convert the number with `to_float(n)`"),
        ("o(x) :- r(x, n, _), {} > 3.5.", "n * 1.1", "to_float(n) * 1.1", "convert the number with `to_float(n)`"),
        ("o(x) :- r(x, n, d), {}.", "d < n", "to_number(d) < n", "convert the symbol with `to_number(d)`"),
        ("o(x) :- r(x, _, d), d > {}.", "2026-01-01", '"2026-01-01"', 'a date is a text: write `"2026-01-01"`'),
        ("o(x) :- r(x, _, d), {} <= d.", "2026/1/1", '"2026-01-01"', 'a date is a text: write `"2026-01-01"`'),
        ("o(x) :- r(x, _, {}).", "2026-01-01", '"2026-01-01"', 'a date is a text: write `"2026-01-01"`'),
        (
            "whole(m) :- {}.",
            "m = mean n : { r(_, n, _) }",
            "m_float = mean n : { r(_, n, _) }, m = to_number(m_float)",
            "write `m_float = mean n : { r(_, n, _) }, m = to_number(m_float)`, or declare the column as `float`",
        ),
        (
            "whole({}).",
            "mean n : { r(_, n, _) }",
            "to_number(mean n : { r(_, n, _) })",
            "write `to_number(mean n : { r(_, n, _) })`, or declare the column as `float`",
        ),
        (
            "positive(m) :- {}.",
            "m = sum n : { r(_, n, _) }",
            "m_number = sum n : { r(_, n, _) }, m = to_unsigned(m_number)",
            "write `m_number = sum n : { r(_, n, _) }, m = to_unsigned(m_number)`",
        ),
    ],
)
def test_what_is_advised_for_a_clash_is_accepted(rule: str, wrong: str, right: str, said: str) -> None:
    assert str(only_error(CLASHES + rule.format(wrong)).help).startswith(said)
    accepted(CLASHES + rule.format(right))


def test_a_loss_of_a_conversion_is_said() -> None:
    error = only_error(CLASHES + "whole(m) :- av(m).")
    assert error.help == "convert the float with `to_number(m)`, which drops the fraction, or change a declaration"
    accepted(CLASHES + "whole(to_number(m)) :- av(m).")
