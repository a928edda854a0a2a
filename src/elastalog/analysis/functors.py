"""The functors of the dialect, in one table: how many arguments they take, of which base types, what they compute, and
what undoes them. The reference of the language says what each means; integers have 64 bits everywhere.

- A result outside its type is a run-time diagnostic, never a silent wrap, but for functors of bits, which take the
  64-bit pattern.
- Where `compute` gives None (division by zero, text that spells no number) the instantiation fails.
- `ord(s)`: the number of a symbol or record in this run. It is stable within a session and says nothing more.
- `range` is a functor with several results, and `split` means two of this table: the parts with the numbers of a range.
- `autoinc()`: the number of the derivation, which it keeps for as long as it exists. See `backends` on how it is given.

Comparisons: `=` and `!=` on every type; `< <= > >=` too, symbols by their characters; `match(pattern, text)`: the whole
text matches the regular expression; `contains(part, text)`: the text contains the part. `not` before one of them: it
does not hold, also where a side has no value, is NaN, or is no regular expression.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from elastalog.analysis import functor_values as values
from elastalog.analysis.draft import Kind
from elastalog.analysis.program import Base, UserFunctor
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass
from elastalog.syntax.keywords import COMPARISONS as _COMPARISONS
from elastalog.syntax.keywords import NOT, TEXT_TESTS

_NUMBER, _UNSIGNED, _FLOAT, _SYMBOL = Base.NUMBER, Base.UNSIGNED, Base.FLOAT, Base.SYMBOL


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. The last parameter stands for all further arguments."""

    parameters: tuple[Kind, ...]
    result: Kind

    def parameter(self, position: int) -> Kind:
        """The type of the argument at a position, from 0."""
        return self.parameters[min(position, len(self.parameters) - 1)]


@dataclass(frozen=True, slots=True)
class Functor:
    """A functor by its surface name. `maximum` is None for any number of arguments; `is_uniform`: the arguments and the
    result have one and the same type; `is_rewritten`: `scopes` puts others in its place, or a literal of its own.
    `compute` works on plain values, and gives integers that may be outside their type; None where only the run knows
    the value. `inverse`: the functor of one integer that undoes it."""

    name: str
    minimum: int
    maximum: int | None
    overloads: tuple[Overload, ...]
    is_uniform: bool
    is_rewritten: bool = False
    compute: Callable[..., Any] | None = None
    inverse: str | None = None

    @property
    def arity_text(self) -> str:
        """How many arguments it takes, in words."""
        if self.maximum is None:
            return f"at least {counted(self.minimum, 'argument')}"
        if self.maximum != self.minimum:
            return f"{self.minimum} or {self.maximum} arguments"
        return counted(self.minimum, "argument")

    @property
    def signatures(self) -> tuple[str, ...]:
        """Its overloads as text: `strlen(symbol) -> number`."""
        dots = ", …" if self.maximum is None else ""
        lines = []
        for overload in self.overloads:
            parameters = ", ".join(overload.parameter(i).value for i in range(self.minimum))
            lines.append(f"{self.name}({parameters}{dots}) -> {overload.result.value}")
        return tuple(lines)


def _uniform(
    name: str,
    compute: Callable[..., Any] | None,
    *bases: Base,
    arity: tuple[int, int | None] = (2, 2),
    inverse: str | None = None,
) -> Functor:
    overloads = tuple(Overload((base,), base) for base in bases)
    return Functor(name, *arity, overloads, is_uniform=True, compute=compute, inverse=inverse)


def _fixed(
    name: str,
    compute: Callable[..., Any] | None,
    result: Base,
    *choices: tuple[Base, ...],
    inverse: str | None = None,
) -> Functor:
    overloads = tuple(Overload(parameters, result) for parameters in choices)
    number = len(choices[0])
    return Functor(name, number, number, overloads, False, compute=compute, inverse=inverse)


BRANCH_NUMBER, BRANCH_WITH_NUMBER = "number of branch", "branch with number"
_INTEGERS = (_NUMBER, _UNSIGNED)
_NUMERIC = (_NUMBER, _UNSIGNED, _FLOAT)
_ALL = (_NUMBER, _UNSIGNED, _FLOAT, _SYMBOL)  # a record has no order and no text
_ANY_ONE = ((_SYMBOL,), (_NUMBER,), (_UNSIGNED,), (_FLOAT,))
_TEXT, _TWO_TEXTS = (_SYMBOL,), (_SYMBOL, _SYMBOL)

_TABLE: tuple[Functor, ...] = (
    # arithmetic
    _uniform("+", operator.add, *_ALL),  # of symbols: `cat`
    _uniform("-", operator.sub, *_NUMERIC),
    _uniform("*", operator.mul, *_NUMERIC),
    _uniform("/", values.divide, *_NUMERIC),
    _uniform("^", values.power, *_NUMERIC),
    _uniform("%", values.modulo, *_INTEGERS),
    _uniform("neg", operator.neg, _NUMBER, _FLOAT, arity=(1, 1), inverse="neg"),
    _uniform("abs", abs, _NUMBER, _FLOAT, arity=(1, 1)),
    _uniform("min", values.least, *_ALL, arity=(2, None)),
    _uniform("max", values.greatest, *_ALL, arity=(2, None)),
    _uniform("round", values.nearest, _FLOAT, arity=(1, 1)),
    _uniform("floor", values.floor, _FLOAT, arity=(1, 1)),
    _uniform("ceil", values.ceil, _FLOAT, arity=(1, 1)),
    _uniform("sqrt", values.square_root, _FLOAT, arity=(1, 1)),
    _uniform("log", values.logarithm, _FLOAT, arity=(1, 1)),
    _uniform("exp", values.exponential, _FLOAT, arity=(1, 1)),
    # bits and truth
    _uniform("band", operator.and_, *_INTEGERS),
    _uniform("bor", operator.or_, *_INTEGERS),
    _uniform("bxor", operator.xor, *_INTEGERS),
    _uniform("bshl", lambda a, b: a << b % 64, *_INTEGERS),
    _uniform("bshr", lambda a, b: a >> b % 64, *_INTEGERS),
    _uniform("bshru", lambda a, b: a % values.BITS >> b % 64, *_INTEGERS),
    _uniform("bnot", operator.invert, *_INTEGERS, arity=(1, 1), inverse="bnot"),
    _uniform("land", lambda a, b: int(bool(a) and bool(b)), *_INTEGERS),
    _uniform("lor", lambda a, b: int(bool(a) or bool(b)), *_INTEGERS),
    _uniform("lxor", lambda a, b: int(bool(a) != bool(b)), *_INTEGERS),
    _uniform("lnot", lambda a: int(not a), *_INTEGERS, arity=(1, 1)),
    # texts
    _uniform("cat", values.joined, _SYMBOL, arity=(1, None)),
    _fixed("strlen", len, _NUMBER, _TEXT),
    _fixed("substr", values.part, _SYMBOL, (_SYMBOL, _NUMBER, _NUMBER)),
    _uniform("upper", str.upper, _SYMBOL, arity=(1, 1)),
    _uniform("lower", str.lower, _SYMBOL, arity=(1, 1)),
    _uniform("trim", str.strip, _SYMBOL, arity=(1, 1)),
    _uniform("replace", values.replaced, _SYMBOL, arity=(3, 3)),
    _fixed("index_of", str.find, _NUMBER, _TWO_TEXTS),
    _fixed("capture", values.captured, _SYMBOL, (_SYMBOL, _SYMBOL, _NUMBER)),
    _fixed("split_part", values.nth_part, _SYMBOL, (_SYMBOL, _SYMBOL, _NUMBER)),
    _fixed("split_count", values.number_of_parts, _NUMBER, _TWO_TEXTS),
    _fixed("json", values.json_field, _SYMBOL, _TWO_TEXTS),
    _fixed("json_size", values.json_size, _NUMBER, _TWO_TEXTS),
    _fixed("rdf_value", values.rdf_value, _SYMBOL, _TEXT),
    _fixed("rdf_lang", values.rdf_language, _SYMBOL, _TEXT),
    _fixed("rdf_datatype", values.rdf_datatype, _SYMBOL, _TEXT),
    # dates and times, as texts
    _fixed("date", values.date, _SYMBOL, (_NUMBER, _NUMBER, _NUMBER)),
    _fixed("date_of", values.date, _SYMBOL, _TEXT),
    _fixed("year", values.year, _NUMBER, _TEXT),
    _fixed("month", values.month, _NUMBER, _TEXT),
    _fixed("day", values.day, _NUMBER, _TEXT),
    _fixed("weekday", values.weekday, _NUMBER, _TEXT),
    _fixed("hour", values.hour, _NUMBER, _TEXT),
    _fixed("minute", values.minute, _NUMBER, _TEXT),
    _fixed("second", values.second, _NUMBER, _TEXT),
    _fixed("add_days", values.add_days, _SYMBOL, (_SYMBOL, _NUMBER)),
    _fixed("add_seconds", values.add_seconds, _SYMBOL, (_SYMBOL, _NUMBER)),
    _fixed("days_between", values.days_between, _NUMBER, _TWO_TEXTS),
    _fixed("seconds_between", values.seconds_between, _NUMBER, _TWO_TEXTS),
    # conversions
    _fixed("ord", None, _NUMBER, *_ANY_ONE),
    _fixed("to_number", values.to_integer, _NUMBER, *_ANY_ONE),
    _fixed("to_unsigned", values.to_integer, _UNSIGNED, *_ANY_ONE),
    _fixed("to_float", values.to_float, _FLOAT, *_ANY_ONE),
    _fixed("to_string", str, _SYMBOL, *_ANY_ONE),
    _fixed("itof", values.to_float, _FLOAT, (_NUMBER,)),
    _fixed("itou", values.to_integer, _UNSIGNED, (_NUMBER,), inverse="utoi"),
    _fixed("ftoi", values.to_integer, _NUMBER, (_FLOAT,)),
    _fixed("ftou", values.to_integer, _UNSIGNED, (_FLOAT,)),
    _fixed("utoi", values.to_integer, _NUMBER, (_UNSIGNED,), inverse="itou"),
    _fixed("utof", values.to_float, _FLOAT, (_UNSIGNED,)),
    # several results
    Functor("range", 2, 3, tuple(Overload((base,), base) for base in _NUMERIC), True, is_rewritten=True),
    # what `as` and `ord` stand for; no program can write these names
    _fixed("as float", values.as_float, _FLOAT, (_NUMBER,), (_UNSIGNED,)),
    _fixed("as number", values.as_number, _NUMBER, (_FLOAT,)),
    _fixed("as unsigned", values.as_bits, _UNSIGNED, (_FLOAT,)),
    Functor(BRANCH_NUMBER, 2, 2, (), False, compute=values.branch_number),
    Functor(BRANCH_WITH_NUMBER, 2, 2, (), False, compute=values.branch_with_number),
    # for which rules have others
    Functor("format", 1, None, (Overload(_TEXT, _SYMBOL),), False, is_rewritten=True),
    Functor("split", 2, 2, (Overload(_TWO_TEXTS, _SYMBOL),), False, is_rewritten=True),
    Functor("autoinc", 0, 0, (Overload((), _NUMBER),), False, is_rewritten=True),
)

FUNCTORS: Mapping[str, Functor] = MappingProxyType({functor.name: functor for functor in _TABLE})
"""Every functor of the dialect, by surface name."""


_ELSEWHERE = {
    "strlen": "length len size count_chars char_length",
    "cat": "concat concatenate append join str_cat strcat",
    "substr": "substring slice mid left right",
    "upper": "toupper to_upper uppercase ucase upcase",
    "lower": "tolower to_lower lowercase lcase downcase",
    "trim": "strip ltrim rtrim",
    "replace": "str_replace gsub substitute regexp_replace regex_replace",
    "index_of": "indexof find position instr strpos locate",
    "format": "sprintf printf fmt",
    "split": "explode tokenize split_string regexp_split",
    "capture": "group regexp_extract regex_extract extract",
    "json": "json_extract json_value get_json_object json_get parse_json",
    "to_number": "int integer to_int toint parse_int number atoi",
    "to_string": "str string tostring text number_to_string",
    "to_float": "float double to_double parse_float real",
    "ceil": "ceiling",
    "log": "ln",
    "abs": "magnitude fabs",
    "date_of": "to_date as_date",
    "add_days": "date_add dateadd adddays",
    "days_between": "datediff date_diff days",
    "weekday": "dayofweek day_of_week dow",
    "x ^ y": "pow power",
    "x % y": "mod modulo rem",
    "match": "regex_match regexp_like matches like rlike",
    "contains": "includes has",
    "starts_with": "startswith prefix",
    "ends_with": "endswith suffix",
    "mean": "avg average",
    "min": "least minimum",
    "max": "greatest maximum",
    "range": "sequence seq generate_series",
    "ord": "hash id",
}
MEANT: Mapping[str, str] = MappingProxyType(
    {word: name for name, words in _ELSEWHERE.items() for word in words.split()}
)
"""What functions are called elsewhere, and here."""


# fmt: off
DATED = frozenset((
    "date_of", "year", "month", "day", "weekday", "hour", "minute", "second", "add_days", "add_seconds", "days_between",
    "seconds_between",
))
"""Functors that take texts which are dates or times."""
CONVERTING = frozenset(("to_number", "to_unsigned", "to_float"))
"""Functors that take texts which are numbers."""
PARTIAL = DATED | CONVERTING | frozenset((
    "/", "%", "^", "sqrt", "log", "capture", "split_part", "json", "json_size",
    "date", "rdf_value", "rdf_lang", "rdf_datatype", BRANCH_WITH_NUMBER,
))
# fmt: on
"""Functors that have no value for some arguments, beside those of users."""


def functor_of(name: str, users: Mapping[str, UserFunctor]) -> Functor | None:
    """A functor by its surface name, `@f` if a user implements it; None if there is none."""
    if name[0] != "@":
        return FUNCTORS.get(name)
    user = users.get(name[1:])
    if user is None:
        return None
    number = len(user.parameters)
    return Functor(name, number, number, (Overload(user.parameters, user.result),), is_uniform=False)


def is_generator(functor: str) -> bool:
    """Whether a functor has several values."""
    return functor == "range" or functor == "split"


def is_rewritten(functor: str) -> bool:
    """Whether a functor is replaced by something else in rules."""
    found = FUNCTORS.get(functor)
    return found is not None and found.is_rewritten


def applied_name(functor: str, result: object) -> str:
    """The functor that a name stands for where the result has a certain type: `+` of symbols is `cat`."""
    return "cat" if functor == "+" and result is _SYMBOL else functor


COMPARISONS: Mapping[str, tuple[Base, ...]] = MappingProxyType(
    {no + name: (_SYMBOL,) if name in TEXT_TESTS else _ALL for name in (*_COMPARISONS, *TEXT_TESTS) for no in ("", NOT)}
)
"""The base types each comparison takes, and its negation."""

AGGREGATES: Mapping[str, tuple[Base, ...]] = MappingProxyType(
    {"count": (), **dict.fromkeys(("sum", "min", "max", "mean"), _NUMERIC)}
)
"""The base types each aggregate takes as target. `count` has none and gives a number, `mean` a float, the others their
own."""
