"""Text files as records: the fields of each line, or of several where a field is quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from elastalog.pipeline.files.format import Format
from elastalog.relations import faults
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Record: TypeAlias = tuple[int, bytes, list[str] | Fault]
"""The line that it begins on, from 0; its bytes, without line end; its fields, or why there are none."""


def records_of(data: bytes, form: Format) -> Iterator[Record]:
    """The records of a text without header and byte order mark."""
    return _quoted_records(data, form.delimiter) if form.is_rfc4180 else _plain_records(data, form.delimiter)


def are_names(schema: Schema, fields: Sequence[str]) -> bool:
    """Whether fields are the names of the columns, but for case, blanks and quotes around them."""
    return [field.strip(' "').casefold() for field in fields] == [name.casefold() for name in schema.names]


def _plain_records(data: bytes, delimiter: str) -> Iterator[Record]:
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n")):
        line = raw.removesuffix(b"\r")
        try:
            yield number, line, line.decode().split(delimiter)
        except UnicodeDecodeError as error:
            yield number, line, _not_utf8(error)


def _quoted_records(data: bytes, delimiter: str) -> Iterator[Record]:
    """Records of RFC 4180 with the line they begin on, from 0. After a fault reading goes on at the next line."""
    mark = re.escape(delimiter.encode())
    # Possessive, so that an unclosed quote costs one scan and no backtracking.
    quoted_or_plain = rb'(?:"((?:[^"]|"")*+)"|((?!")(?:(?!' + mark + rb"|\r?\n|\r?\Z).)*))"
    field = re.compile(quoted_or_plain + rb"(" + mark + rb"|\r?\n|\r?\Z)", re.DOTALL)
    position, line = 0, 0
    while position < len(data):
        start, first_line = position, line
        fields: list[bytes] = []
        fault: Fault | None = None
        while fault is None:
            found = field.match(data, position)
            if found is None:
                fault = Fault(faults.QUOTING, f"field {len(fields) + 1} is quoted wrongly")
                break
            quoted, plain, end = found.groups()
            fields.append(plain if quoted is None else quoted.replace(b'""', b'"'))
            position = found.end()
            if end != delimiter.encode():
                break
        if fault is not None:
            next_line = data.find(b"\n", start)
            position = len(data) if next_line < 0 else next_line + 1
        raw = data[start:position]
        line += raw.count(b"\n")
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        if fault is None:
            try:
                yield first_line, raw, [text.decode() for text in fields]
                continue
            except UnicodeDecodeError as error:
                fault = _not_utf8(error)
        yield first_line, raw, fault


def _not_utf8(error: UnicodeDecodeError) -> Fault:
    return Fault(faults.ENCODING, f"byte 0x{error.object[error.start]:02x} is not UTF-8")
