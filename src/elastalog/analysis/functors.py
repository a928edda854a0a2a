"""The functors of the dialect: how many arguments they take, of which base types, and what they mean.

Semantics that every evaluator keeps (integers have 64 bits):

- `+` of symbols joins them, as `cat` does.
- `+ - *`, `neg`: a result outside the type is a run-time diagnostic, never a silent wrap.
- `/` truncates towards zero, `%` has the sign of the dividend; by zero the instantiation fails (floats too).
- `^`: power; with integers a negative exponent makes the instantiation fail and overflow is a diagnostic.
- `band bor bxor bnot bshl bshr bshru`: on the 64-bit pattern; the shift is taken modulo 64; `bshr` keeps the sign,
  `bshru` fills with zeros, bits shifted out by `bshl` are lost.
- `land lor lxor lnot`: non-zero is true; the result is 1 or 0.
- `min max`: two or more arguments of one type; symbols are ordered by their characters; NaN only if all are NaN.
- `cat`: the symbols joined; `strlen`: the number of characters.
- `substr(s, i, n)`: n characters of s from the i-th (from 0), fewer at its end; `""` when i or n is out of range.
- `ord(s)`: the number of the symbol in this run. It is stable within a session and says nothing more.
- `to_number to_unsigned to_float`: of a symbol that does not spell such a value the instantiation fails, integers being
  spelt as literals are (`-12`, `0x1f`, `0b101`); of a float the fraction is cut off; a value outside the type is a
  run-time diagnostic.
- `to_string`: integers in decimal, floats in the shortest form that reads back the same, as Python writes them.
- `itof itou ftoi ftou utoi utof`: conversions between number (i), unsigned (u) and float (f), like the `to_` ones.
- `range(a, b)`: a, a+1, … below b; when a > b: a, a-1, … above b. `range(a, b, step)`: a, a+step, … before b; with step
  0 only a, unless that is b. It is the only functor with several results.
- `autoinc()`: the number of the derivation, which it keeps for as long as it exists. See `backends` on how it is given.

Comparisons: `=` and `!=` on every type; `< <= > >=` too, symbols by their characters; `match(pattern, text)`: the whole
text matches the regular expression; `contains(part, text)`: the text contains the part. `not` before one of them: it
does not hold, also where a side has no value, is NaN, or is no regular expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from elastalog.analysis.program import Base, UserFunctor
from elastalog.analysis.structures import Kind
from elastalog.late import dataclass
from elastalog.syntax.keywords import COMPARISONS as _COMPARISONS
from elastalog.syntax.keywords import CONSTRAINTS, NOT

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
    result have one and the same type; a generator has several results."""

    name: str
    minimum: int
    maximum: int | None
    overloads: tuple[Overload, ...]
    is_uniform: bool
    is_generator: bool = False

    @property
    def arity_text(self) -> str:
        """How many arguments it takes, in words."""
        if self.maximum is None:
            return f"at least {self.minimum} arguments"
        if self.maximum != self.minimum:
            return f"{self.minimum} or {self.maximum} arguments"
        return "1 argument" if self.minimum == 1 else f"{self.minimum} arguments"

    @property
    def signatures(self) -> tuple[str, ...]:
        """Its overloads as text: `strlen(symbol) -> number`."""
        dots = ", …" if self.maximum is None else ""
        lines = []
        for overload in self.overloads:
            parameters = ", ".join(overload.parameter(i).value for i in range(self.minimum))
            lines.append(f"{self.name}({parameters}{dots}) -> {overload.result.value}")
        return tuple(lines)


def _uniform(name: str, minimum: int, maximum: int | None, *bases: Base, is_generator: bool = False) -> Functor:
    overloads = tuple(Overload((base,), base) for base in bases)
    return Functor(name, minimum, maximum, overloads, is_uniform=True, is_generator=is_generator)


def _fixed(name: str, result: Base, *choices: tuple[Base, ...]) -> Functor:
    overloads = tuple(Overload(parameters, result) for parameters in choices)
    return Functor(name, len(choices[0]), len(choices[0]), overloads, is_uniform=False)


_INTEGERS = (_NUMBER, _UNSIGNED)
_NUMERIC = (_NUMBER, _UNSIGNED, _FLOAT)
_ALL = (_NUMBER, _UNSIGNED, _FLOAT, _SYMBOL)  # a record has no order and no text
_ANY_ONE = ((_SYMBOL,), (_NUMBER,), (_UNSIGNED,), (_FLOAT,))

_TABLE: tuple[Functor, ...] = (
    _uniform("+", 2, 2, *_ALL),  # of symbols: `cat`
    *(_uniform(name, 2, 2, *_NUMERIC) for name in ("-", "*", "/", "^")),
    _uniform("%", 2, 2, *_INTEGERS),
    _uniform("neg", 1, 1, _NUMBER, _FLOAT),
    *(_uniform(name, 2, 2, *_INTEGERS) for name in ("band", "bor", "bxor", "bshl", "bshr", "bshru")),
    _uniform("bnot", 1, 1, *_INTEGERS),
    *(_uniform(name, 2, 2, *_INTEGERS) for name in ("land", "lor", "lxor")),
    _uniform("lnot", 1, 1, *_INTEGERS),
    *(_uniform(name, 2, None, *_ALL) for name in ("min", "max")),
    _uniform("cat", 2, None, _SYMBOL),
    _fixed("strlen", _NUMBER, (_SYMBOL,)),
    _fixed("substr", _SYMBOL, (_SYMBOL, _NUMBER, _NUMBER)),
    _fixed("ord", _NUMBER, (_SYMBOL,)),
    _fixed("to_number", _NUMBER, *_ANY_ONE),
    _fixed("to_unsigned", _UNSIGNED, *_ANY_ONE),
    _fixed("to_float", _FLOAT, *_ANY_ONE),
    _fixed("to_string", _SYMBOL, *_ANY_ONE),
    _fixed("itof", _FLOAT, (_NUMBER,)),
    _fixed("itou", _UNSIGNED, (_NUMBER,)),
    _fixed("ftoi", _NUMBER, (_FLOAT,)),
    _fixed("ftou", _UNSIGNED, (_FLOAT,)),
    _fixed("utoi", _NUMBER, (_UNSIGNED,)),
    _fixed("utof", _FLOAT, (_UNSIGNED,)),
    _uniform("range", 2, 3, *_NUMERIC, is_generator=True),
    Functor("autoinc", 0, 0, (Overload((), _NUMBER),), is_uniform=False, is_generator=True),
)

FUNCTORS: Mapping[str, Functor] = MappingProxyType({functor.name: functor for functor in _TABLE})
"""Every functor of the dialect, by surface name."""


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
    """Whether a functor has several results."""
    found = FUNCTORS.get(functor)
    return found is not None and found.is_generator


def applied_name(functor: str, result: object) -> str:
    """The functor that one of that name is where it gives a value of a type: `+` of symbols is `cat`."""
    return "cat" if functor == "+" and result is _SYMBOL else functor


COMPARISONS: Mapping[str, tuple[Base, ...]] = MappingProxyType(
    {
        no + name: (_SYMBOL,) if name in CONSTRAINTS else _ALL
        for name in (*_COMPARISONS, *CONSTRAINTS)
        for no in ("", NOT)
    }
)
"""The base types each comparison takes, and its negation."""

AGGREGATES: Mapping[str, tuple[Base, ...]] = MappingProxyType(
    {"count": (), **dict.fromkeys(("sum", "min", "max", "mean"), _NUMERIC)}
)
"""The base types each aggregate takes as target. `count` has none and gives a number, `mean` a float, the others their
own."""
