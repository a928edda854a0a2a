"""The variables of a rule, and values that a user gives to them."""

from __future__ import annotations

from numbers import Real
from operator import index
from typing import Any, assert_never

from elastalog.analysis.program import (
    Base,
    Rule,
    Value,
    variables_in,
)
from elastalog.analysis.values import Branch, Nil, Record
from elastalog.analysis.variables import is_written
from elastalog.diagnostics.arguments import is_whole
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import did_you_mean


def variables_of_rule(rule: Rule) -> dict[str, Base]:
    """The variables of a rule that a user can give values to, those in its aggregates aside, with their types."""
    variables = variables_in((rule.head, *rule.body), is_deep=False)
    return {variable.name: variable.base for variable in variables if is_written(variable.name)}


def value_of_variable(rules: tuple[Rule, ...], name: str, value: object) -> Value:
    """The value that a user gives to a variable of a rule, as facts have it. Raises E0711."""
    known = {variable: base for rule in rules for variable, base in variables_of_rule(rule).items()}
    base = known.get(name)
    if base is None:
        advice = did_you_mean(str(name), known) or "its variables are: " + ", ".join(known)
        raise ElastalogError([Diagnostic("E0711", f"there is no variable `{name}` in the rule", help=advice)])
    found = _value_of(base, value)
    if found is None:
        raise ElastalogError(
            [Diagnostic("E0711", f"`{name}` is a {base.value}", help=f"give a {base.value}, not {value!r}")]
        )
    return found


def _value_of(base: Base, given: Any) -> Value | None:
    """What is given for a value of a base type, which NumPy may have made, as Python has it; None if it is none."""
    match base:
        case Base.SYMBOL:
            return str(given) if isinstance(given, str) else None
        case Base.NUMBER | Base.UNSIGNED:
            return index(given) if is_whole(given) else None
        case Base.FLOAT:
            try:
                return float(given) if not isinstance(given, bool) and isinstance(given, Real) else None
            except OverflowError:
                return None
        case Base.RECORD:
            return given if isinstance(given, Nil | Record | Branch) else None
        case _:
            assert_never(base)
