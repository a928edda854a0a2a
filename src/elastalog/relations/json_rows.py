"""Values and rows that come as JSON."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from elastalog.analysis.program import Base, StructuredType
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.record_types import MOST_NESTED, RecordType
from elastalog.relations.schema import Column, Schema


class JsonValues:
    """Reads the values in some bytes of JSON. A number that is too large for any type, and a name that an object has
    twice, are faults; Python would take infinity, and the last of the two."""

    def __init__(self, data: bytes) -> None:
        self._fault: Fault | None = None
        hooks: dict[str, Any] = {"object_pairs_hook": self._object}
        if _LARGE.search(data):  # to be asked about every number takes twice as long
            hooks |= {"parse_float": self._float, "parse_int": self._integer}
        self._decoder = json.JSONDecoder(**hooks)

    def one(self, text: str) -> Any | Fault:
        """The value that a text is. Raises ValueError or RecursionError if it is none."""
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
    """The row with floats where texts (`nan`, `inf`, `-inf`) stand for them, in records too; what fits no column stays
    as it is."""
    if len(row) != schema.arity:
        return tuple(row)
    return tuple([_value(column, given) for column, given in zip(schema.columns, row, strict=True)])


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
    return float(given) if isinstance(given, str) and given in ("nan", "inf", "-inf") else given
