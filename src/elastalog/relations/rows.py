"""Rows given as Python values, or as JSON: tuples into Arrow columns, with every type looked at."""

from __future__ import annotations

import json
import math
import numbers
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base, StructuredType, Value
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.relations import faults
from elastalog.relations.arrays import ARROW_TYPES, array_of_numbers, array_of_texts
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import LEAST_NUMBER, MOST_EXACT_INTEGER_IN_FLOAT, MOST_NUMBER, MOST_UNSIGNED
from elastalog.relations.records import MOST_NESTED, NotOfType, RecordType
from elastalog.relations.schema import Column, Schema, places_by_name, values_by_name, warn_of_left_out


def columns_of_rows(schema: Schema, rows: Iterable[Any]) -> tuple[int, list[pa.Array]]:
    """The number of rows and the columns of rows of Python values; a diagnostic for the first bad row."""
    count, columns, bad = columns_of_good_rows(schema, rows)
    if bad:
        number, fault, row = bad[0]
        if isinstance(row, tuple | list) and [isinstance(v, str) and v.casefold() for v in row] == [
            name.casefold() for name in schema.names
        ]:
            # As `csv.reader` gives them: the rows below are texts, too.
            advice = "these are the names of the columns; a file is read with its header if its path is given"
            fault = replace(fault, advice=f'{advice}: `{{"{schema.name}": PATH}}`')
        raise ElastalogError([row_diagnostic(schema, f"row {number}", fault, len(bad) - 1)])
    return count, columns


def columns_of_good_rows(
    schema: Schema, rows: Iterable[Any]
) -> tuple[int, list[pa.Array], list[tuple[int, Fault, Any]]]:
    """Of rows of Python values, the number and the columns of those that can be facts, and the others: their numbers
    from 1, what is wrong, the row."""
    given = rows if isinstance(rows, list) else list(rows)
    listed: list[Any] = given
    if not all(issubclass(kind, tuple | list) and not _is_fact(schema, kind) for kind in set(map(type, given))):
        left_out: dict[str, object] = {}
        listed = [_values_in(schema, row, left_out) for row in given]
        warn_of_left_out(schema, left_out, None, [left_out.get("op")])
    bad: list[tuple[int, Fault, Any]] = []
    if (columns := _columns(schema, listed)) is None:
        found = [
            values if isinstance(values, Fault) else _arity_fault(schema, values) or first_fault(schema, values)
            for values in listed
        ]
        bad = [(i, fault, row) for i, (fault, row) in enumerate(zip(found, given, strict=True), 1) if fault is not None]
        listed = [values for values, fault in zip(listed, found, strict=True) if fault is None]
        columns = _columns(schema, listed) or []
    return len(listed), columns, bad


def _columns(schema: Schema, rows: list[Any]) -> list[pa.Array] | None:
    """The columns of rows; None if one of them is no fact."""
    if Fault in set(map(type, rows)) or any(length != schema.arity for length in set(map(len, rows))):
        return None
    if not rows or not schema.arity:
        return [pa.array([], ARROW_TYPES[column.base]) for column in schema.columns]
    values: list[Sequence[Any]] = list(zip(*rows, strict=True))
    columns = [array_of_values(column, given) for column, given in zip(schema.columns, values, strict=True)]
    return None if any(column is None for column in columns) else columns


def values_of_fact(schema: Schema, values: Sequence[Any]) -> tuple[Value, ...]:
    """The values of one fact as facts have them, plain numbers and texts; a diagnostic if it can be none."""
    fault = _arity_fault(schema, values) or first_fault(schema, values)
    if fault is not None:
        raise ElastalogError([row_diagnostic(schema, "row 1", fault, 0)])
    return tuple(
        plain_value(column.base, value) if column.record is None else column.record.typed(value)
        for column, value in zip(schema.columns, values, strict=True)
    )


def _is_fact(schema: Schema, kind: type) -> bool:
    """Whether rows of a type are facts of proofs, which know their relation."""
    return getattr(kind, "_fields", ()) == ("relation", "values") != schema.names


def _values_in(schema: Schema, row: Any, left_out: dict[str, object]) -> Sequence[Any] | Fault:
    if _is_fact(schema, type(row)):
        if row.relation == schema.name:
            return row.values  # type: ignore[no-any-return]
        advice = f'give facts of `{row.relation}` under its name: `{{"{row.relation}": […]}}`'
        return Fault(faults.TYPE, f"{_shown(row)} is a fact of another relation", advice)
    if isinstance(row, tuple | list):
        return row
    if isinstance(row, Mapping):
        return values_by_name(schema, row, left_out)
    if isinstance(row, str | bytes) or not (hasattr(row, "__len__") and hasattr(row, "__getitem__")):
        return _no_row(schema, row)
    return tuple(row)


def array_of_values(column: Column, values: Sequence[Any]) -> pa.Array | None:
    """The values of one column as an Arrow array, records as their text; None if `value_fault` finds fault with one of
    them."""
    if column.record is not None:
        try:
            return array_of_texts([repr(column.record.typed(value)) for value in values]).cast(pa.string())
        except NotOfType:
            return None
    # The common case costs one pass over the types; anything unusual is looked at value by value.
    kinds = set(map(type, values))
    if not kinds <= _PLAIN[column.base]:
        if any(value_fault(column, value) for value in values):
            return None
        values = [plain_value(column.base, value) for value in values]
    if column.base is Base.FLOAT and kinds != {float} and any(value_fault(column, value) for value in values):
        return None
    try:
        if column.base is Base.SYMBOL:
            return array_of_texts(list(values))
        return array_of_numbers(np.array(values, _DTYPES[column.base]))
    except (OverflowError, UnicodeEncodeError):
        return None


def value_fault(column: Column, value: Any) -> Fault | None:
    """Why a Python value cannot stand in a column, None if it can. bool is not a number; a float is never cut to an
    integer."""
    base = column.base
    if type(value) is int and base in _INTEGER_RANGES:  # nearly all values; the abstract number types are slow to ask
        least, most = _INTEGER_RANGES[base]
        return None if least <= value <= most else _range_fault(column, value)
    if column.record is not None:
        try:
            column.record.typed(value)
        except NotOfType as fault:
            return Fault(faults.TYPE, f"{_shown(value)} is not of type `{column.record.name}`: {fault}")
        return None
    if value is None:
        return Fault(faults.NULL, f"`{column.name}` is null")
    match base:
        case Base.RECORD:
            return _type_fault(column, value)
        case Base.SYMBOL:
            if not isinstance(value, str):
                return _type_fault(column, value)
            return None if _is_encodable(value) else Fault(faults.ENCODING, f"`{column.name}` holds a lone surrogate")
        case _ if isinstance(value, bool):
            return _type_fault(column, value)
        case Base.FLOAT:
            if isinstance(value, numbers.Integral):
                is_exact = -MOST_EXACT_INTEGER_IN_FLOAT <= int(value) <= MOST_EXACT_INTEGER_IN_FLOAT
                return None if is_exact else _range_fault(column, value)
            is_float = isinstance(value, numbers.Real) and hasattr(value, "is_integer")  # no Fraction
            return None if is_float else _type_fault(column, value)
        case Base.NUMBER | Base.UNSIGNED:
            if not isinstance(value, numbers.Integral):
                return _type_fault(column, value)
            least, most = _INTEGER_RANGES[base]
            return None if least <= int(value) <= most else _range_fault(column, value)


_INTEGER_RANGES = {Base.NUMBER: (LEAST_NUMBER, MOST_NUMBER), Base.UNSIGNED: (0, MOST_UNSIGNED)}
_DTYPES = {Base.NUMBER: np.int64, Base.UNSIGNED: np.uint64, Base.FLOAT: np.float64}

_PLAIN: dict[Base, set[type]] = {
    Base.SYMBOL: {str},
    Base.NUMBER: {int},
    Base.UNSIGNED: {int},
    Base.FLOAT: {float, int},
    Base.RECORD: set(),
}


def plain_value(base: Base, value: Any) -> int | float | str:
    """A value of a base type that is no record, as Python itself has it."""
    if base is Base.SYMBOL:
        return str(value)
    return float(value) + 0.0 if base is Base.FLOAT else int(value)  # there is one zero among the floats


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _shown(value: object, written: Callable[[object], str] = repr) -> str:
    try:
        return shown(written(value))
    except ValueError:  # Python refuses to write very long integers
        return f"{type(value).__name__} of more digits than are shown"


def _type_fault(column: Column, value: object) -> Fault:
    kind = type(value).__name__
    reason = f"`{column.name}` is declared as {column.base.value}, but given as {kind} {_shown(value)}"
    return Fault(faults.TYPE, reason, _conversion(column, value))


def _conversion(column: Column, value: Any) -> str:
    """What to write instead of a value of another type; empty if that is not known."""
    base = column.base
    if isinstance(value, bool):
        return "there is no Boolean type: give 1 and 0, or texts"
    if base is Base.SYMBOL and hasattr(value, "isoformat"):
        text = value.isoformat()
        if text == "NaT":
            return faults.HELP[faults.NULL]
        day = text.removesuffix("T00:00:00")
        call = "isoformat()" if day == text else "date().isoformat()"
        return f'dates and times are texts: write `"{day}"`, in Python `day.{call}`'
    wanted = {Base.SYMBOL: str, Base.FLOAT: float}.get(base, int)
    try:
        if isinstance(value, str) or (isinstance(value, numbers.Real) and (wanted is str or float(value).is_integer())):
            written, call = repr(wanted(value)).replace("'", '"'), f"{wanted.__name__}({value!r})"
            return f"write `{written}`, in Python `{call}`" if len(call) <= faults.MOST_SHOWN else ""
    except (ValueError, OverflowError):  # no number, one that is infinite, one of too many digits
        pass
    if base is not Base.SYMBOL and isinstance(value, str) and (advice := faults.for_separators(value)):
        return advice
    is_fraction = wanted is int and isinstance(value, numbers.Real) and math.isfinite(value)
    return faults.for_whole(column.name) if is_fraction else ""


def _range_fault(column: Column, value: object) -> Fault:
    return Fault(faults.RANGE, f"{_shown(value, str)} does not fit {column.base.value} `{column.name}`")


def _arity_fault(schema: Schema, row: Sequence[Any]) -> Fault | None:
    if len(row) == schema.arity:
        return None
    fault = faults.wrong_number(len(row), "value", schema.arity)
    is_indexed = getattr(row, "_fields", ())[:1] == ("Index",)  # a row of pandas
    return replace(fault, advice="leave the index out: `itertuples(index=False)`") if is_indexed else fault


def first_fault(schema: Schema, row: Sequence[Any]) -> Fault | None:
    """Why a row of the right length cannot be a fact, None if it can."""
    return next((f for c, v in zip(schema.columns, row, strict=True) if (f := value_fault(c, v)) is not None), None)


def _no_row(schema: Schema, row: object) -> Fault:
    if schema.arity == 1:
        (column,) = schema.columns
        value = _example(column, 0) if value_fault(column, row) or len(repr(row)) > _MOST_SHOWN else repr(row)
        example = f"`[({value},), …]`, each with a comma after its value"
    else:
        first, second = (", ".join(_example(column, i + n) for i, column in enumerate(schema.columns)) for n in (0, 1))
        example = f"`[({first}), ({second})]`, or `[({first})]` for a single one"
    advice = f"give a list of tuples, one for each fact: {example}"
    return Fault(faults.TYPE, f"{_shown(row)} is {type(row).__name__}, not a tuple", advice)


_MOST_SHOWN = 40
"""Characters of a value that an advice repeats."""


def _example(column: Column, number: int) -> str:
    """How a value of a column may be written."""
    if column.record is not None:
        return "…"
    return f'"{"abc"[number % 3]}"' if column.base is Base.SYMBOL else str(number + 1)


def row_diagnostic(schema: Schema, place: str, fault: Fault, more: int) -> Diagnostic:
    """The diagnostic of the first bad row among rows given in memory."""
    notes = [f"declared as {schema}"]
    if more:
        notes.append(f"{more:,} more row{' is' if more == 1 else 's are'} bad")
    return Diagnostic(
        code=fault.code,
        message=f"{place} given for `{schema.name}`: {fault.reason}",
        notes=tuple(notes),
        help=fault.help,
        location=f"{schema.name}, {place}",
    )


class JsonValues:
    """Reads the values in some bytes of JSON. Numbers too large for any type, and repeated names in an object, are
    faults; Python would take infinity, and the last value."""

    def __init__(self, data: bytes) -> None:
        self._fault: Fault | None = None
        hooks: dict[str, Any] = {"object_pairs_hook": self._object}
        if _LARGE.search(data):  # to be asked about every number takes twice as long
            hooks |= {"parse_float": self._float, "parse_int": self._integer}
        self._decoder = json.JSONDecoder(**hooks)

    def one(self, text: str) -> Any | Fault:
        """The value that a text is. Raises ValueError or RecursionError if it is not one."""
        return self._found(self._decoder.decode(text))

    def next(self, text: str, at: int) -> tuple[Any | Fault, int]:
        """The value at a place of a text, and where it ends."""
        value, end = self._decoder.raw_decode(text, at)
        return self._found(value), end

    def _found(self, value: Any) -> Any | Fault:
        fault, self._fault = self._fault, None
        return value if fault is None else fault

    def _float(self, text: str) -> float:
        value = float(text)
        return self._too_large(text) if math.isinf(value) else value

    def _integer(self, text: str) -> float:
        try:
            return int(text)
        except ValueError:  # it has more digits than Python converts
            return self._too_large(text)

    def _too_large(self, text: str) -> float:
        self._fault = Fault(faults.RANGE, f"{shown(text)} does not fit any type of numbers")
        return 0

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
            advice = "give every value a name of its own"
            self._fault = Fault(faults.NAMES, f"the object has {shown(twice)} twice", advice)
        return found


_LARGE = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{300}")


def row_from_json(schema: Schema, row: Sequence[Any]) -> tuple[Any, ...]:
    """The row with floats in the place of texts such as `nan`, `Infinity` and `-inf`, in records too; what fits no
    column stays as it is."""
    if len(row) != schema.arity:
        return tuple(row)
    return tuple([_value(column, given) for column, given in zip(schema.columns, row, strict=True)])


def object_from_json(schema: Schema, row: dict[str, Any]) -> dict[str, Any]:
    """The same of a row by attribute name."""
    names = list(row)
    places = zip(schema.columns, places_by_name(schema.names, names), strict=True)
    return row | {names[at]: _value(column, row[names[at]]) for column, at in places if at is not None}


def _value(column: Column, given: Any) -> Any:
    if column.record is not None:
        return _record(column.record, column.record.types[column.record.name], given, 0)
    return _number(given) if column.base is Base.FLOAT else given


def _record(record: RecordType, wanted: StructuredType, given: Any, depth: int) -> Any:
    fields = wanted.branches.get("[]", ())
    if not isinstance(given, list) or len(given) != len(fields) or depth > MOST_NESTED:
        return given
    parts: list[Any] = []
    for field, part in zip(fields, given, strict=True):
        if field.structure is not None:
            parts.append(_record(record, record.types[field.structure], part, depth + 1))
        else:
            parts.append(_number(part) if field.base is Base.FLOAT else part)
    return tuple(parts)


def _number(given: Any) -> Any:
    return float(given) if isinstance(given, str) and given in _NOT_FINITE else given


_NOT_FINITE = frozenset(("nan", "inf", "-inf", "NaN", "Infinity", "-Infinity"))
