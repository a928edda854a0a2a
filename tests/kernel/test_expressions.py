"""Expressions, comparisons and actions on blocks, against values by hand and against a model in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import elastalog
from elastalog.analysis.functor_values import NotRegular, matcher
from elastalog.analysis.functors import FUNCTORS, Overload
from elastalog.analysis.program import Apply, Base, Constant, Expression, Value, Variable
from elastalog.backends.kernel.expressions.actions import compile_actions
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.source import Source, Span
from elastalog.planning.steps import Action, Compute, Copy, Fill, Generate, Keep, KeepConstant, KeepEqual
from elastalog.relations.words import Dictionary
from tests.reference import values as model
from tests.refusals import refused
from tests.tables import table

NUMBER, UNSIGNED, FLOAT, SYMBOL = Base.NUMBER, Base.UNSIGNED, Base.FLOAT, Base.SYMBOL
LEAST, MOST, MOST_UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
NAN = model.NAN

SOURCE = Source("test.dl", "r(z) :- a(x, y), z = x + y.\n")
SPAN = Span(22, 27)
PLACE = Span(0, 0)
NAMES = ("x", "y", "z")


def var(name: str, base: Base = NUMBER) -> Variable:
    return Variable(name, base, PLACE)


def const(value: Value, base: Base = NUMBER) -> Constant:
    return Constant(value, base, PLACE)


def app(functor: str, *arguments: Expression, base: Base = NUMBER) -> Apply:
    return Apply(functor, arguments, base, SPAN)


class Block:
    """Columns x, y, z, then `result`, then the number of the row, which must travel along."""

    def __init__(self, bases: Sequence[Base], rows: Sequence[Sequence[Value]]) -> None:
        self.dictionary = Dictionary()
        self.bases = bases
        self.slots = {name: i for i, name in enumerate(NAMES[: len(bases)])}
        self.result = len(bases)
        self.words = np.zeros((len(rows) + 2, len(bases) + 2), np.int32)
        for i, row in enumerate(rows):
            words = [self.dictionary.encode_value(base, value) for base, value in zip(bases, row, strict=True)]
            self.words[i] = [*words, 0, i]
        self.used = len(rows)

    def run(self, *actions: Action) -> list[int]:
        """The numbers of the rows that are left."""
        run = compile_actions(actions, self.slots, self.dictionary, SOURCE)
        self.words, self.used = run(self.words, self.used)
        return self.words[: self.used, -1].tolist()

    def results(self, base: Base) -> list[Value]:
        return [self.dictionary.decode_value(base, w) for w in self.words[: self.used, self.result].tolist()]


def compute(expression: Expression, bases: Sequence[Base] = (), rows: Sequence[Sequence[Value]] = ((),)) -> list[Any]:
    """The value of an expression in each row, None where it has none."""
    block = Block(bases, rows)
    left = block.run(Compute(block.result, expression))
    found = dict(zip(left, block.results(expression.base), strict=True))
    return [found.get(i) for i in range(len(rows))]


def kept(
    operator: str, base: Base, left: Expression, right: Expression, bases: Sequence[Base], *rows: Sequence[Value]
) -> list[int]:
    return Block(bases, rows).run(Keep(operator, base, left, right))


def failure(expression: Expression, bases: Sequence[Base] = (), rows: Sequence[Sequence[Value]] = ((),)) -> str:
    """The message of the one diagnostic of an evaluation."""
    with refused("E0601") as raised:
        compute(expression, bases, rows)
    (diagnostic,) = raised.value.diagnostics
    assert [label.span for label in diagnostic.labels] == [SPAN]
    assert diagnostic.source is SOURCE
    assert diagnostic.help is not None
    return diagnostic.message


XY = (NUMBER, NUMBER)
X, Y = var("x"), var("y")


# --- arithmetic by hand --------------------------------------------------------------------------------------------


def test_addition_is_exact_at_the_ends_of_the_type() -> None:
    rows = [(MOST - 1, 1), (LEAST + 1, -1), (LEAST, MOST), (3, 4)]
    assert compute(app("+", X, Y), XY, rows) == [MOST, LEAST, -1, 7]


@pytest.mark.parametrize(
    ("functor", "x", "y", "message"),
    [
        ("+", MOST, 1, "`9223372036854775807 + 1` does not fit the type number"),
        ("+", LEAST, -1, "`-9223372036854775808 + -1` does not fit the type number"),
        ("+", 2**62, 2**62, "`4611686018427387904 + 4611686018427387904` does not fit the type number"),
        ("-", -(2**62), 2**62 + 1, "`-4611686018427387904 - 4611686018427387905` does not fit the type number"),
        ("-", LEAST, 1, "`-9223372036854775808 - 1` does not fit the type number"),
        ("-", 0, LEAST, "`0 - -9223372036854775808` does not fit the type number"),
        ("*", 2**32, 2**31, "`4294967296 * 2147483648` does not fit the type number"),
        ("*", LEAST, -1, "`-9223372036854775808 * -1` does not fit the type number"),
        ("/", LEAST, -1, "`-9223372036854775808 / -1` does not fit the type number"),
        ("^", 2, 63, "`2 ^ 63` does not fit the type number"),
        ("^", -3, 1000, "`-3 ^ 1000` does not fit the type number"),
    ],
)
def test_overflow_is_a_diagnostic_that_names_the_operands(functor: str, x: int, y: int, message: str) -> None:
    assert failure(app(functor, X, Y), XY, [(1, 1), (x, y), (1, 1)]) == message


@pytest.mark.parametrize(
    ("functor", "x", "y", "message"),
    [
        ("-", 0, 1, "`0 - 1` does not fit the type unsigned"),
        ("+", MOST_UNSIGNED, 1, "`18446744073709551615 + 1` does not fit the type unsigned"),
        ("*", 2**32, 2**32, "`4294967296 * 4294967296` does not fit the type unsigned"),
    ],
)
def test_unsigned_overflow_is_a_diagnostic(functor: str, x: int, y: int, message: str) -> None:
    expression = app(functor, var("x", UNSIGNED), var("y", UNSIGNED), base=UNSIGNED)
    assert failure(expression, (UNSIGNED, UNSIGNED), [(5, 3), (x, y)]) == message


def test_products_next_to_the_limit_are_exact() -> None:
    # 3037000499 squared is the greatest square below 2^63; 2^63 - 1 = 7 * 7 * 73 * 127 * 337 * 92737 * 649657.
    rows = [(3037000499, 3037000499), (2**31, -(2**32)), (7 * 7 * 73 * 127 * 337, 92737 * 649657)]
    assert compute(app("*", X, Y), XY, rows) == [9223372030926249001, LEAST, MOST]
    assert failure(app("*", X, Y), XY, [(3037000500, 3037000500)]).startswith("`3037000500 * 3037000500`")


def test_overflow_in_a_row_without_value_is_no_error() -> None:
    # (max / 0) + 1: the first operand has no value in the first row.
    quotient = app("/", X, Y)
    assert compute(app("+", quotient, const(1)), XY, [(MOST, 0), (4, 2)]) == [None, 3]
    assert compute(app("*", quotient, const(MOST)), XY, [(MOST, 0), (1, 1)]) == [None, MOST]


def test_division_truncates_towards_zero_and_remainder_has_the_sign_of_the_dividend() -> None:
    rows = [(7, 2), (-7, 2), (7, -2), (-7, -2), (7, 0), (LEAST, 1), (-6, 2), (LEAST, MOST)]
    assert compute(app("/", X, Y), XY, rows) == [3, -3, -3, 3, None, LEAST, -3, -1]
    assert compute(app("%", X, Y), XY, rows) == [1, -1, 1, -1, None, 0, 0, -1]
    assert compute(app("%", X, Y), XY, [(LEAST, -1)]) == [0]


def test_division_of_floats_by_zero_fails() -> None:
    floats = (FLOAT, FLOAT)
    quotient = app("/", var("x", FLOAT), var("y", FLOAT), base=FLOAT)
    assert compute(quotient, floats, [(1.0, 4.0), (1.0, -0.0), (0.0, 0.0)]) == [0.25, None, None]


def test_there_is_one_zero_of_floats() -> None:
    zero = const(0.0, FLOAT)
    for negative_zero in (
        app("neg", zero, base=FLOAT),
        app("*", zero, const(-1.0, FLOAT), base=FLOAT),
        app("/", zero, const(-1.0, FLOAT), base=FLOAT),
        app("^", const(-1e-300, FLOAT), const(3.0, FLOAT), base=FLOAT),
        app("to_float", const("-0", SYMBOL), base=FLOAT),
        const(-0.0, FLOAT),
    ):
        assert compute(app("to_string", negative_zero, base=SYMBOL)) == ["0.0"]
        assert compute(app("^", negative_zero, const(-1.0, FLOAT), base=FLOAT)) == [math.inf]


def test_power() -> None:
    rows = [(2, 62), (-2, 63), (0, 0), (2, -1), (-1, MOST), (-1, MOST - 1), (0, MOST), (10, 18)]
    assert compute(app("^", X, Y), XY, rows) == [2**62, LEAST, 1, None, -1, 1, 0, 10**18]


def test_shifts_take_the_distance_modulo_64() -> None:
    rows = [(1, 63), (1, 64), (-1, 1), (-8, -62)]
    assert compute(app("bshl", X, Y), XY, rows) == [LEAST, 1, -2, -32]
    assert compute(app("bshr", X, Y), XY, rows) == [0, 1, -1, -2]
    assert compute(app("bshru", X, Y), XY, rows) == [0, 1, MOST, 2**62 - 2]


def test_functors_of_constants_need_no_columns() -> None:
    assert compute(app("+", const(1), app("neg", const(3)))) == [-2]
    assert compute(app("/", const(1), const(0))) == [None]
    assert compute(app("cat", const("a", SYMBOL), const("b", SYMBOL), base=SYMBOL)) == ["ab"]
    assert compute(app("max", const(1), const(9), const(4)), (NUMBER,), [(0,), (0,)]) == [9, 9]


# --- symbols and conversions by hand -------------------------------------------------------------------------------


def test_text_functors_count_characters_not_bytes() -> None:
    rows = [("añ😀b", 1, 2), ("añ😀b", 3, 9), ("añ😀b", -1, 2), ("", 0, 1), ("añ😀b", 4, 1)]
    bases = (SYMBOL, NUMBER, NUMBER)
    assert compute(app("strlen", var("x", SYMBOL)), bases, rows) == [4, 4, 4, 0, 4]
    part = app("substr", var("x", SYMBOL), var("y"), var("z"), base=SYMBOL)
    assert compute(part, bases, rows) == ["ñ😀", "b", "", "", ""]


def test_symbols_that_spell_no_number_fail() -> None:
    rows = [(text,) for text in ("12", "-7", "+7", " 7", "7.0", "", "x", "٣", "007", "1_000")]
    expression = app("to_number", var("x", SYMBOL))
    assert compute(expression, (SYMBOL,), rows) == [12, -7, None, None, None, None, None, None, 7, None]


def test_symbols_that_spell_too_much_are_a_diagnostic() -> None:
    expression = app("to_number", var("x", SYMBOL))
    assert compute(expression, (SYMBOL,), [(str(MOST),), (str(LEAST),), ("0" * 5000 + "1",)]) == [MOST, LEAST, 1]
    message = '`to_number("9223372036854775808")` does not fit the type number'
    assert failure(expression, (SYMBOL,), [("9223372036854775808",)]) == message
    assert failure(expression, (SYMBOL,), [("9" * 6000,)]).endswith("does not fit the type number")
    unsigned = app("to_unsigned", var("x", SYMBOL), base=UNSIGNED)
    assert failure(unsigned, (SYMBOL,), [("-1",)]) == '`to_unsigned("-1")` does not fit the type unsigned'


@pytest.mark.parametrize("value", [NAN, math.inf, 2.0**63, -(2.0**63) - 2048])
def test_floats_outside_the_numbers_are_a_diagnostic(value: float) -> None:
    message = f"`ftoi({value!r})` does not fit the type number"
    assert failure(app("ftoi", var("x", FLOAT)), (FLOAT,), [(value,)]) == message


def test_text_of_floats_reads_back_the_same() -> None:
    rows = [(0.1,), (1e22,), (-0.0,), (math.inf,), (5e-324,)]
    text = app("to_string", var("x", FLOAT), base=SYMBOL)
    assert compute(text, (FLOAT,), rows) == ["0.1", "1e+22", "0.0", "inf", "5e-324"]


def test_ord_is_stable_and_distinguishes() -> None:
    first, second, third = compute(app("ord", var("x", SYMBOL)), (SYMBOL,), [("a",), ("b",), ("a",)])
    assert first == third != second


def test_text_of_a_failed_operand_fails_without_any_symbol_known() -> None:
    text = app("strlen", app("to_string", app("/", X, Y), base=SYMBOL))
    assert compute(text, XY, [(1, 0)]) == [None]
    assert compute(text, XY, [(1, 0), (100, 1)]) == [None, 3]


# --- comparisons and actions by hand -------------------------------------------------------------------------------


def test_order_of_wide_numbers_is_that_of_their_values() -> None:
    rows = [(LEAST, 0), (0, LEAST), (MOST, 2**40), (5, 5), (-(2**30), 2**30)]
    assert kept("<", NUMBER, X, Y, XY, *rows) == [0, 4]
    assert kept(">=", NUMBER, X, Y, XY, *rows) == [1, 2, 3]
    assert kept(">", NUMBER, const(3), Y, XY, *rows) == [0, 1]
    assert kept("<", NUMBER, X, const(1), XY, *rows) == [0, 1, 4]


def test_nan_equals_itself_and_has_no_order() -> None:
    floats = (FLOAT, FLOAT)
    a, b = var("x", FLOAT), var("y", FLOAT)
    computed = app("+", a, const(0.0, FLOAT), base=FLOAT)
    rows = [(NAN, NAN), (NAN, 1.0), (0.0, -0.0)]
    for left in (a, computed):
        assert kept("=", FLOAT, left, b, floats, *rows) == [0, 2]
        assert kept("!=", FLOAT, left, b, floats, *rows) == [1]
        assert kept("<=", FLOAT, left, b, floats, *rows) == [2]


def test_symbols_are_ordered_by_their_characters() -> None:
    rows = [("b", "a"), ("", "a"), ("Z", "a"), ("\uffff", "😀"), ("a", "a")]
    bases = (SYMBOL, SYMBOL)
    assert kept("<", SYMBOL, var("x", SYMBOL), var("y", SYMBOL), bases, *rows) == [1, 2, 3]
    assert kept("<=", SYMBOL, var("x", SYMBOL), const("a", SYMBOL), bases, *rows) == [1, 2, 4]


def test_match_wants_the_whole_text() -> None:
    rows = [("abc", "a.c"), ("abcd", "a.c"), ("", "x*")]
    bases = (SYMBOL, SYMBOL)
    assert kept("match", SYMBOL, const("a.c", SYMBOL), var("x", SYMBOL), bases, *rows) == [0]
    assert kept("match", SYMBOL, var("y", SYMBOL), var("x", SYMBOL), bases, *rows) == [0, 2]
    assert kept("contains", SYMBOL, const("bc", SYMBOL), var("x", SYMBOL), bases, *rows) == [0, 1]
    assert kept("not match", SYMBOL, var("y", SYMBOL), var("x", SYMBOL), bases, *rows) == [1]
    assert kept("not contains", SYMBOL, const("bc", SYMBOL), var("x", SYMBOL), bases, *rows) == [2]


@pytest.mark.parametrize(("operator", "expected"), [("match", [2]), ("not match", [0, 1])])
def test_a_wrong_regular_expression_in_data_matches_nothing_and_is_told_of_once(
    operator: str, expected: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    rows = [("abc", "a("), ("a(", "a("), ("abc", "a.c")]
    assert kept(operator, SYMBOL, var("y", SYMBOL), var("x", SYMBOL), (SYMBOL, SYMBOL), *rows) == expected
    (record,) = caplog.records
    assert 'warning[E0613]: "a(" is not a regular expression, so nothing matches it' in record.getMessage()


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("(a*)*b", "a" * 100_000, False),
        ("(a|aa)+$", "a" * 100_000 + "b", False),
        ("(x+x+)+y", "x" * 100_000, False),
        (r"\u0041\u{1F600}", "A😀", True),
        (r"\\u0041", r"\u0041", True),
        (r"\cJ\0", "\n\0", True),
        (r"\é\/", "é/", True),
        (r"[(?=]+", "(?=", True),
        (r"\d+", "٣", False),
        (r"a.b", "a\nb", False),
        (r"(?:a|b){2,3}?", "aba", True),
    ],
)
def test_regular_expressions_take_linear_time_and_are_those_of_ecmascript(
    pattern: str, text: str, expected: bool
) -> None:
    rows = [(text, pattern)]
    assert kept("match", SYMBOL, var("y", SYMBOL), var("x", SYMBOL), (SYMBOL, SYMBOL), *rows) == [0] * expected


@pytest.mark.parametrize(("pattern", "reason"), table(__file__, "what cannot be matched in linear time is refused"))
def test_what_cannot_be_matched_in_linear_time_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(NotRegular) as caught:
        matcher(pattern)
    assert str(caught.value) == reason


def test_comparison_of_a_failed_operand_does_not_hold() -> None:
    assert kept("!=", NUMBER, app("/", X, Y), const(7), XY, (1, 0), (1, 1), (7, 1)) == [1]


def test_actions_run_in_order_and_stop_when_nothing_is_left() -> None:
    block = Block((*XY, NUMBER), [(1, 1, 0), (2, 1, 0), (3, 3, 0), (5, 5, 0)])
    left = block.run(
        KeepEqual(0, 1),
        Fill(2, const(2**40)),
        Copy(0, block.result),
        Keep("<", NUMBER, X, const(5)),
        Compute(2, app("+", var("z"), X)),
    )
    assert left == [0, 2]
    assert [block.dictionary.decode_value(NUMBER, w) for w in block.words[:2, 2].tolist()] == [2**40 + 1, 2**40 + 3]
    assert block.results(NUMBER) == [1, 3]
    # Once no row is left the overflowing constant is not evaluated.
    assert block.run(KeepConstant(0, const(99)), Compute(2, app("+", const(MOST), const(1)))) == []


# --- ranges --------------------------------------------------------------------------------------------------------


def generated(expression: Apply, bases: Sequence[Base], rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
    block = Block(bases, rows)
    numbers = block.run(Generate(block.result, expression))
    values: list[list[Value]] = [[] for _ in rows]
    for number, value in zip(numbers, block.results(expression.base), strict=True):
        values[number].append(value)
    return values


def test_range_goes_up_or_down() -> None:
    expression = app("range", X, Y)
    rows = [(0, 3), (3, 0), (2, 2), (MOST - 1, MOST), (LEAST + 1, LEAST)]
    assert generated(expression, XY, rows) == [[0, 1, 2], [3, 2, 1], [], [MOST - 1], [LEAST + 1]]


def test_range_with_step() -> None:
    bases = (NUMBER, NUMBER, NUMBER)
    rows = [(0, 7, 3), (7, 0, -3), (0, 7, -1), (0, 7, 0), (LEAST, MOST, MOST), (MOST, LEAST, LEAST)]
    expected = [[0, 3, 6], [7, 4, 1], [], [0], [LEAST, -1, MOST - 1], [MOST, -1]]
    assert generated(app("range", X, Y, var("z")), bases, rows) == expected


def test_range_of_floats_adds_the_step_again_and_again() -> None:
    bases = (FLOAT, FLOAT, FLOAT)
    expression = app("range", var("x", FLOAT), var("y", FLOAT), var("z", FLOAT), base=FLOAT)
    rows = [(0.0, 0.35, 0.1), (1.0, 0.0, -0.5), (0.0, NAN, 1.0), (1.0, 0.0, NAN)]
    assert generated(expression, bases, rows) == [[0.0, 0.1, 0.2, 0.1 + 0.1 + 0.1], [1.0, 0.5], [], [1.0]]


def test_range_of_rows_without_limits_is_empty() -> None:
    assert generated(app("range", const(0), app("/", X, Y)), XY, [(4, 2), (4, 0)]) == [[0, 1], []]


@pytest.mark.parametrize(
    ("base", "start", "end"),
    [(NUMBER, LEAST, MOST), (FLOAT, 0.0, math.inf), (FLOAT, 1e300, 2e300), (FLOAT, math.inf, 0.0)],
)
def test_endless_range_is_a_diagnostic(base: Base, start: Value, end: Value) -> None:
    with refused("E0614", message=f"the range from {start!r} to {end!r} has too many values"):
        generated(app("range", var("x", base), var("y", base), base=base), (base, base), [(start, end)])


def test_membership_in_a_range_too_long_to_generate() -> None:
    expression = app("range", const(LEAST), const(MOST), const(5))
    rows = [(LEAST,), (LEAST + 5,), (LEAST + 6,), (LEAST + 5 * 10**18,), (MOST,)]
    assert kept("=", NUMBER, X, expression, (NUMBER,), *rows) == [0, 1, 3]


SMALL = st.integers(-6, 6)


@given(
    st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=6), st.sampled_from([NUMBER, FLOAT]), st.booleans()
)
def test_ranges_agree_with_the_model(rows: list[tuple[int, int, int]], base: Base, has_step: bool) -> None:
    scaled = [tuple(v * 0.5 if base is FLOAT else v for v in row) for row in rows]
    bases = (base, base, base)
    arguments = [var(name, base) for name in NAMES[: 3 if has_step else 2]]
    expression = Apply("range", tuple(arguments), base, SPAN)
    expected = [model.range_values(*row[: len(arguments)]) for row in scaled]
    assert generated(expression, bases, scaled) == expected
    for value in range(-7, 8):
        wanted = value * 0.5 if base is FLOAT else value
        held = [i for i, values in enumerate(expected) if wanted in values]
        assert kept("=", base, const(wanted, base), expression, bases, *scaled) == held


# --- all functors and comparisons against the model ----------------------------------------------------------------

VALUES: dict[Base, st.SearchStrategy[Any]] = {
    NUMBER: st.sampled_from([0, 1, -1, 2, -2, 3, 63, 64, 2**31, 2**32, 2**53 + 1, 3037000499, 3037000500])
    | st.sampled_from([2**30 - 1, 2**30, -(2**30), -(2**30) - 1, 2**62, -(2**62) - 1, LEAST, LEAST + 1, MOST, MOST - 1])
    | st.integers(LEAST, MOST)
    | st.integers(-100, 100),
    UNSIGNED: st.sampled_from(
        [0, 1, 2, 63, 64, 2**30 - 1, 2**30, 2**32, MOST, MOST + 1, MOST_UNSIGNED, MOST_UNSIGNED - 1]
    )
    | st.integers(0, MOST_UNSIGNED)
    | st.integers(0, 100),
    FLOAT: st.sampled_from(
        [0.0, -0.0, 1.0, -1.0, 0.5, NAN, math.inf, -math.inf, 2.0**63, -(2.0**63), 2.0**64, 5e-324, 1.8e308]
    )
    | st.floats(allow_nan=False).map(float)
    | st.integers(-5, 5).map(float),
    SYMBOL: st.sampled_from(
        ["", "a", "ab", "b", "é", "😀", "\uffff", "0", "-12", "1.5", "1e400", "99999999999999999999"]
    )
    | st.text(max_size=4)
    | st.integers(LEAST * 2, MOST * 3).map(str),
}
BASES = list(VALUES)


def is_same(left: Any, right: Any) -> bool:
    return left == right or (left != left and right != right)


def evaluate_model(expression: Expression, row: dict[str, Any]) -> list[Any]:
    match expression:
        case Variable():
            return [model.as_value(row[expression.name], expression.base.value)]
        case Constant():
            return [model.as_value(expression.value, expression.base.value)]
        case Apply():
            arguments = [evaluate_model(argument, row) for argument in expression.arguments]
            if not all(arguments):
                return []
            return model.apply(expression.functor, tuple(a[0] for a in arguments), expression.base.value)


SIGNATURES: dict[Base, list[tuple[str, int, Overload]]] = {
    base: [
        (functor.name, count, overload)
        for functor in FUNCTORS.values()
        if functor.compute is not None and functor.name != "capture"  # the model's regular expressions are others
        for overload in functor.overloads
        if overload.result is base and (functor.name, base) != ("+", SYMBOL)  # which is `cat` by then
        for count in {functor.minimum, functor.maximum or functor.minimum + 1}
    ]
    for base in BASES
}


@st.composite
def expressions(draw: st.DrawFn, base: Base, depth: int) -> Expression:
    """An expression over the variables x_BASE and y_BASE."""
    kind = draw(st.integers(0, 9))
    if depth == 0 or kind == 0:
        if kind <= 2:
            return const(draw(VALUES[base]), base)
        return var(f"{draw(st.sampled_from('xy'))}_{base.value}", base)
    name, count, overload = draw(st.sampled_from(SIGNATURES[base]))
    arguments = [draw(expressions(overload.parameter(i), depth - 1)) for i in range(count)]
    return app(name, *arguments, base=base)


COLUMNS = [(f"{letter}_{base.value}", base) for letter in "xy" for base in BASES]
ROWS = st.lists(st.tuples(*(VALUES[base] for _, base in COLUMNS)), min_size=1, max_size=5)


def block_of(rows: Sequence[Sequence[Value]]) -> Block:
    block = Block([base for _, base in COLUMNS], rows)
    block.slots = {name: i for i, (name, _) in enumerate(COLUMNS)}
    return block


@given(st.data(), st.sampled_from(BASES), st.integers(1, 3), ROWS)
def test_expressions_agree_with_the_model(data: Any, base: Base, depth: int, rows: list[Any]) -> None:
    expression = data.draw(expressions(base, depth))
    named = [dict(zip((name for name, _ in COLUMNS), row, strict=True)) for row in rows]
    block = block_of(rows)
    try:
        expected = [evaluate_model(expression, row) for row in named]
    except model.Overflow:
        with refused("E0601"):
            block.run(Compute(block.result, expression))
        return
    assert block.run(Compute(block.result, expression)) == [i for i, values in enumerate(expected) if values]
    for found, (wanted,) in zip(block.results(base), [values for values in expected if values], strict=True):
        assert is_same(found, wanted), (found, wanted)


@pytest.mark.parametrize(
    ("base", "signature"), [(base, signature) for base in BASES for signature in SIGNATURES[base]], ids=str
)
@settings(max_examples=settings().max_examples // 8)
@given(data=st.data())
def test_each_functor_agrees_with_the_model(base: Base, signature: tuple[str, int, Overload], data: Any) -> None:
    name, count, overload = signature
    bases = [overload.parameter(i) for i in range(count)]
    row = tuple(data.draw(VALUES[b]) for b in bases)
    others = data.draw(st.lists(st.tuples(*(VALUES[b] for b in bases)), max_size=2))
    constant = data.draw(st.integers(-1, count - 1))
    rows = [row, *(tuple(row[i] if i == constant else v for i, v in enumerate(other)) for other in others)]
    arguments = [const(row[i], b) if i == constant else var(NAMES[i], b) for i, b in enumerate(bases)]
    expression = app(name, *arguments, base=base)
    try:
        expected = [evaluate_model(expression, dict(zip(NAMES, values, strict=False))) for values in rows]
    except model.Overflow:
        assert "does not fit the type" in failure(expression, bases, rows)
        return
    for found, wanted in zip(compute(expression, bases, rows), expected, strict=True):
        assert is_same(found, wanted[0]) if wanted else found is None


@given(st.data(), st.sampled_from(BASES), st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "contains"]), ROWS)
def test_comparisons_agree_with_the_model(data: Any, base: Base, operator: str, rows: list[Any]) -> None:
    base = SYMBOL if operator == "contains" else base
    left, right = (data.draw(expressions(base, data.draw(st.sampled_from([0, 0, 1])))) for _ in range(2))
    named = [dict(zip((name for name, _ in COLUMNS), row, strict=True)) for row in rows]
    block = block_of(rows)
    try:
        sides = [(evaluate_model(left, row), evaluate_model(right, row)) for row in named]
    except model.Overflow:
        with pytest.raises(ElastalogError):
            block.run(Keep(operator, base, left, right))
        return
    expected = [i for i, (a, b) in enumerate(sides) if a and b and model.compare(operator, a[0], b[0])]
    assert block.run(Keep(operator, base, left, right)) == expected


@settings(max_examples=settings().max_examples // 10)
@given(st.lists(st.tuples(VALUES[NUMBER], VALUES[NUMBER]), min_size=100, max_size=300))
@example([(LEAST, LEAST)] * 200)
def test_bitwise_and_division_agree_with_the_model_on_large_blocks(rows: list[tuple[int, int]]) -> None:
    for functor in ("band", "bxor", "bshl", "bshru", "%"):
        expression = app(functor, X, Y)
        expected = [model.apply(functor, row, "number") for row in rows]
        assert compute(expression, XY, rows) == [values[0] if values else None for values in expected]


def test_pairs_of_texts_that_come_again_are_joined_once_and_in_their_order() -> None:
    rows = [(f"a{i * 7 % 5}", f"b{i * 11 % 9}", i) for i in range(400)]
    program = """
    .decl given(a: symbol, b: symbol, i: number)
    .decl made(s: symbol, i: number)
    made(cat(a, b), i) :- given(a, b, i).
    """
    with elastalog.open(program, facts={"given": rows}, engine="local") as db:
        assert set(db["made"]) == {(a + b, i) for a, b, i in rows}
        words = list(dict.fromkeys(db._backend.facts("made").words[:, 0].tolist()))
    assert words == list(range(words[0], words[0] + 45))
