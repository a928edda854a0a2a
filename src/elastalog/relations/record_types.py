"""Values that users give for columns of records: checked against the declared type, part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from elastalog.analysis.program import Base, Part, StructuredType, Value
from elastalog.analysis.values import NIL, Branch, Record, bare_text, plain_text
from elastalog.late import dataclass
from elastalog.relations.record_text import Bare, NotWritten, number_in, read_value

MOST_NESTED = 200
"""How deep values of users may be nested: each level takes a Python call."""

_SIMPLE: Mapping[Base, pa.DataType] = {
    Base.NUMBER: pa.int64(),
    Base.UNSIGNED: pa.uint64(),
    Base.FLOAT: pa.float64(),
    Base.SYMBOL: pa.string(),
}


class NotOfType(Exception):
    """A value is not of a type; the text says why."""


@dataclass(frozen=True, slots=True)
class RecordType:
    """The declared type of a column, with the others that its parts may have."""

    name: str
    types: Mapping[str, StructuredType]

    def typed(self, given: Any) -> Value:
        """A value of the type from a tuple, list, mapping by field name, `None`, `Branch` or text as the language
        writes it. Raises NotOfType."""
        return self._typed(self.types[self.name], given, 0)

    def _typed(self, wanted: StructuredType, given: Any, depth: int) -> Value:
        if depth > MOST_NESTED:
            raise NotOfType(f"nested deeper than {MOST_NESTED}")
        if isinstance(given, str):
            try:
                given = read_value(given)
            except NotWritten as fault:
                raise NotOfType(str(fault)) from None
        if given is None or given is NIL:
            if "[]" not in wanted.branches:
                raise NotOfType(f"nil is not of type `{wanted.name}`")
            return NIL
        if isinstance(given, Branch):
            fields = wanted.branches.get(f"${given.name}")
            if fields is None:
                raise NotOfType(f"`${given.name}` is no branch of `{wanted.name}`")
            return Branch.of(given.name, self._parts(f"${given.name}", fields, given.parts, depth))
        fields = wanted.branches.get("[]")
        if fields is None or not isinstance(given, tuple | list | Mapping):
            raise NotOfType(f"{type(given).__name__} is not of type `{wanted.name}`")
        if isinstance(given, Mapping):
            if set(given) != {field.name for field in fields}:
                raise NotOfType(f"the fields of `{wanted.name}` are {', '.join(field.name for field in fields)}")
            given = [given[field.name] for field in fields]
        return self._parts(wanted.name, fields, given, depth)

    def _parts(self, owner: str, fields: tuple[Part, ...], given: Sequence[Any], depth: int) -> Record:
        if len(fields) != len(given):
            raise NotOfType(f"`{owner}` has {len(fields)} field{'' if len(fields) == 1 else 's'}, not {len(given)}")
        return Record(
            [self._part(field, value, depth) for field, value in zip(fields, given, strict=True)],
            tuple([field.base for field in fields]),
        )

    def _part(self, field: Part, given: Any, depth: int) -> Value:
        from elastalog.relations.rows import plain_value, value_fault
        from elastalog.relations.schema import Column

        if field.structure is not None:
            return self._typed(self.types[field.structure], given, depth + 1)
        if isinstance(given, Bare):
            given = str(given) if field.base is Base.SYMBOL else number_in(given, field.base is Base.FLOAT)
        fault = value_fault(Column(field.name, field.base), given)
        if fault is not None:
            raise NotOfType(fault.reason)
        return plain_value(field.base, given)

    @property
    def arrow(self) -> pa.DataType:
        """A struct for a record whose parts are not records that lead back to it; otherwise text."""
        found = self._arrow(self.name, ())
        return pa.string() if found is None else found

    def _arrow(self, name: str, around: tuple[str, ...]) -> pa.DataType | None:
        wanted = self.types[name]
        fields = wanted.branches.get("[]")
        if fields is None or wanted.name in around:
            return None
        parts = []
        for field in fields:
            if field.structure is None:
                kind: pa.DataType | None = _SIMPLE[field.base]
            else:
                kind = self._arrow(field.structure, (*around, wanted.name))
            if kind is None:
                return None
            parts.append(pa.field(field.name, kind))
        return pa.struct(parts)


def as_struct(value: Any, fields: pa.StructType) -> dict[str, Any] | None:
    """A record as Arrow takes a struct."""
    if value is NIL:
        return None
    return {
        field.name: as_struct(part, field.type) if pa.types.is_struct(field.type) else part
        for field, part in zip(fields, value, strict=True)
    }


def record_texts(record: RecordType, array: pa.ChunkedArray, is_bare: bool = False) -> pa.ChunkedArray:
    """A column of records as the text of files; `is_bare`: without quotes around texts, whatever they are."""
    spell = bare_text if is_bare else plain_text
    texts = [spell(record.typed(value)) for value in array.to_pylist()]
    return pa.chunked_array([pa.array(texts, pa.large_string())])
