"""The values that the parameters of a query are given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

from elastalog.analysis.program import Value
from elastalog.analysis.values import NIL, Branch, Record
from elastalog.diagnostics.arguments import wrong_kind


def parameter_values(parameters: Mapping[str, object]) -> dict[str, Value]:
    """The values of parameters by name, without the question mark, as the language has them."""
    return {_parameter_name(name): _parameter(name, value) for name, value in parameters.items()}


def _parameter_name(name: object) -> str:
    if isinstance(name, str):
        return name.removeprefix("?")
    raise wrong_kind("a parameter is named by a text", name, 'give a mapping, as `parameters={"from": 1}`')


def _parameter(name: str, value: object) -> Value:
    """The value of a parameter, as the language has it."""
    with suppress(UnicodeEncodeError, OverflowError):  # a lone surrogate, a fraction beyond all floats
        if isinstance(value, str):
            value.encode()
            return str(value)
        if not isinstance(value, bool):
            if isinstance(value, Integral):
                return int(value)
            if isinstance(value, Real):
                return float(value)
    if isinstance(value, Branch):
        return Branch(value.name, *(_parameter(name, part) for part in value.parts))
    if isinstance(value, tuple):
        return Record((_parameter(name, part) for part in value), ())
    if value is None:
        return NIL
    advice = "give one of these, or a value made of them"
    raise wrong_kind(f"the value of `?{name}` is a number or a text", value, advice)


def parameter_as_json(value: Any) -> Any:
    """A value as JSON, which says of which kind it is: records are lists, nil is null, and what JSON has not is an
    object."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, Branch):
        return {"branch": value.name, "parts": list(map(parameter_as_json, value.parts))}
    if isinstance(value, tuple):
        return list(map(parameter_as_json, value))
    return None if value is NIL else value


def parameter_from_json(given: Any) -> Any:
    """The value that JSON means, as users have it."""
    match given:
        case list():
            return tuple(map(parameter_from_json, given))
        case {"float": "nan" | "inf" | "-inf" as text}:
            return float(text)
        case {"branch": str() as name, "parts": list() as parts}:
            return Branch(name, *map(parameter_from_json, parts))
    return given
