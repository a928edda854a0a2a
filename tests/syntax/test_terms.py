from __future__ import annotations

import pytest

from elastalog.syntax.keywords import FUNCTORS
from elastalog.syntax.tree import Aggregate, Call, Float, Integer, String
from tests.syntax.reading import advice, findings, read_item, read_term, shape
from tests.tables import table


@pytest.mark.parametrize(("text", "value"), table(__file__, "integers"))
def test_integers(text: str, value: str) -> None:
    term = read_term(text)
    assert isinstance(term, Integer)
    assert f"{term.value}{'u' * term.is_unsigned}" == value


@pytest.mark.parametrize("text", ["18446744073709551616", "-9223372036854775809", "0x10000000000000000", "9" * 60])
def test_integers_beyond_64_bits(text: str) -> None:
    shown = text if len(text) <= 40 else text[:39] + "…"
    assert findings(f"p({text}).") == [("E0105", f"the integer `{shown}` does not fit 64 bits", text)]


def test_a_million_digits_are_refused_at_once() -> None:
    assert [code for code, *_ in findings(f"p({'9' * 1_000_000}).")] == ["E0105"]


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("1e9", 1e9), ("-1.5e-3", -0.0015)])
def test_floats(text: str, value: float) -> None:
    term = read_term(text)
    assert isinstance(term, Float)
    assert term.value == value


def test_a_float_beyond_64_bits() -> None:
    assert findings("p(1e999).") == [("E0105", "the float `1e999` does not fit 64 bits", "1e999")]


def test_escapes_of_strings() -> None:
    term = read_term(r'"a\n\t\r\\\"\'\0\x41ü"')
    assert isinstance(term, String)
    assert term.value == "a\n\t\r\\\"'\0Aü"


def test_unknown_escapes_are_reported_each_at_its_place() -> None:
    assert findings(r'p("C:\data\q", "\x4").') == [
        ("E0106", r"unknown escape `\d` in a string", r"\d"),
        ("E0106", r"unknown escape `\q` in a string", r"\q"),
        ("E0106", r"unknown escape `\x` in a string", r"\x"),
    ]


@pytest.mark.parametrize(("text", "calls"), table(__file__, "functors and precedence"))
def test_functors_and_precedence(text: str, calls: str) -> None:
    assert shape(read_term(text)) == calls


@pytest.mark.parametrize("functor", sorted(FUNCTORS - {"bnot", "lnot"}))
def test_every_functor_can_be_called(functor: str) -> None:
    assert shape(read_term(f"{functor}(x, y)")) == f"{functor}(x, y)"


def test_spans_of_calls() -> None:
    text = "p(-x + f(y))."
    call = read_item(text).heads[0].arguments[0]
    assert isinstance(call, Call)
    assert text[slice(*call.span)] == "-x + f(y)"
    assert text[slice(*call.functor_span)] == "+"
    negation, inner = call.arguments
    assert text[slice(*negation.span)] == "-x"
    assert text[slice(*inner.span)] == "f(y)"


@pytest.mark.parametrize("operator", ["sum", "min", "max", "mean"])
@pytest.mark.parametrize("target", ["x", "(x)", "(x) * 2", "x + 1", "min(x, y)", "(x, y)"])
def test_aggregates_with_a_target(operator: str, target: str) -> None:
    if target == "(x, y)":
        if operator in ("min", "max"):  # then it is the functor
            assert findings(f"p() :- v = {operator} (x, y) : {{ q(x) }}.") == [
                ("E0110", "expected `,`, `;` or `.` after a literal, found `:`", ":")
            ]
        return
    aggregate = read_term(f"{operator} {target} : {{ q(x, y) ; r(x, y), y > 0 }}")
    assert isinstance(aggregate, Aggregate)
    assert aggregate.operator == operator
    assert shape(aggregate.target) == shape(read_term(target))


@pytest.mark.parametrize(("text", "expected"), table(__file__, "wrong terms", columns=2))
def test_wrong_terms(text: str, expected: tuple[str, str, str]) -> None:
    assert findings(text) == [expected]


@pytest.mark.parametrize(
    ("wrong", "right"), table(__file__, "an aggregate of another language is shown with its own words")
)
def test_an_aggregate_of_another_language_is_shown_with_its_own_words(wrong: str, right: str) -> None:
    (told,) = advice(f"p(n) :- n = {wrong}, n > 3.")
    assert told is not None
    assert told.split("; ")[0] == f"write `{right}`"
    assert ("different `y`" in told) == ("distinct" in wrong)
    assert isinstance(read_term(right), Aggregate)


def test_a_word_that_is_reserved_for_an_aggregate_names_nothing() -> None:
    told = 'write `count : { … }`; a variable needs another name, and a text is written `"count"`'
    assert advice("p(count).") == [told]
    assert advice("p(n) :- n = sum(to_float(y) : { q(y) }).") == [
        told.replace("count :", "sum x :").replace("count", "sum")
    ]


def test_an_aggregate_in_a_head_is_a_column_that_improves() -> None:
    told = "write `min k + w : { … }`; a column `min number` keeps the least of what rules derive, also in recursion"
    assert advice("d(y, min(k + w)) :- d(x, k), e(x, y, w).") == [told]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("&", "band"), ("|", "bor"), ("<<", "bshl"), (">>", "bshr"), ("&&", "land"), ("||", "lor"), ("mod", "%")],
)
def test_operators_of_other_languages_are_translated(written: str, meant: str) -> None:
    assert advice(f"p(x {written} 2) :- q(x).") == [f"write `{meant}`"]
