"""How a fact file is written: its format, from the parameters of a directive and the name of the file; in text files
the records, the fields of each line, or of several where a field is quoted; and in these the values, exactly what each
base type accepts, and why not otherwise.

Numbers are decimal, hexadecimal (`0x1f`) or binary (`0b101`) with an optional sign; blanks around a number do not
count. A symbol is the text itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from pathlib import Path, PurePath
from typing import Final, TypeAlias

import pyarrow as pa

from elastalog.analysis.program import Base, Value
from elastalog.diagnostics.diagnostic import ElastalogError, error, finding, warn_of
from elastalog.diagnostics.messages import counted
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import is_packed
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.limits import LEAST_NUMBER, MOST_NUMBER, MOST_UNSIGNED
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema, goes_by_name


class Kind(Enum):
    TEXT = "text"
    PARQUET = "parquet"
    JSON_LINES = "json lines"


@dataclass(frozen=True, slots=True)
class Format:
    """`delimiter`, `has_header` and `is_rfc4180` matter for text only; `is_gzip` not for Parquet."""

    kind: Kind = Kind.TEXT
    delimiter: str = "\t"
    has_header: bool = False
    is_rfc4180: bool = False
    is_gzip: bool = False
    columns: tuple[int, ...] = ()
    """Which columns of a text file are those of the relation; none: all, in order."""
    others: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """What the directive says beside these, such as `filename`."""
    says_no_header: bool = field(default=False, compare=False)
    """Whether the directive has `headers=false`: then the first line is not suspected of being a header."""
    may_be_csv: bool = field(default=False, compare=False)
    """Whether quotes around a field probably do not belong to its text: the file is called so, or has commas or
    semicolons between fields, and the directive does not mention `rfc4180`."""

    @staticmethod
    def of(parameters: Mapping[str, str], name: str) -> Format:
        """The format of file `name` under the parameters of an `.input` or `.output` directive.

        The name decides between text, Parquet (`.parquet`) and JSON lines (`.jsonl`, `.ndjson`), and `.gz` means gzip;
        the rest is Soufflé's: tab-separated without header unless `delimiter`, `headers`, `rfc4180` or `compress` say
        otherwise, with `,` as the default delimiter of `rfc4180`."""
        is_rfc4180 = _truth(parameters, "rfc4180")
        delimiter = parameters.get("delimiter", "," if is_rfc4180 else "\t").replace("\\t", "\t")
        if not delimiter or any(c in delimiter for c in '"\r\n'):
            raise _bad_parameter("delimiter", delimiter, "a delimiter is some text without quote or line end")
        suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
        is_gzip = bool(suffixes) and suffixes[-1] == ".gz"
        last = suffixes[-2 if is_gzip else -1] if len(suffixes) > is_gzip else ""
        return Format(
            kind=_KINDS.get(last, Kind.TEXT),
            delimiter=delimiter,
            has_header=_truth(parameters, "headers"),
            is_rfc4180=is_rfc4180,
            is_gzip=is_gzip or _truth(parameters, "compress"),
            columns=tuple(int(column) for column in parameters.get("columns", "").split(":") if column.isdecimal()),
            others=tuple((key, value) for key, value in parameters.items() if key not in OF_TEXT),
            says_no_header=parameters.get("headers", "").lower() == "false",
            may_be_csv="rfc4180" not in parameters and (last == ".csv" or delimiter in ",;"),
        )

    @property
    def parameters(self) -> str:
        """The parameters of a directive for files that are written so."""
        others = [f"IO={value}" if key == "IO" else f'{key}="{value}"' for key, value in self.others]
        is_usual = self.delimiter == ("," if self.is_rfc4180 else "\t")
        parts = ["rfc4180=true"] if self.is_rfc4180 else []
        parts += [] if is_usual else [f'delimiter="{self.delimiter}"']
        parts += ["headers=true"] if self.has_header else []
        parts += [f'columns="{":".join(map(str, self.columns))}"'] if self.columns else []
        return ", ".join(others + (parts or ['delimiter="\t"'])).replace("\t", "\\t")

    def is_packed_at(self, path: Path) -> bool:
        """Whether a file is gzip, by its format or by its first bytes."""
        return self.kind is not Kind.PARQUET and (self.is_gzip or is_packed(path))


OF_TEXT = frozenset(("rfc4180", "delimiter", "headers", "columns"))
_KINDS = {".parquet": Kind.PARQUET, ".jsonl": Kind.JSON_LINES, ".ndjson": Kind.JSON_LINES}


def medium(parameters: Mapping[str, str], allowed: tuple[str, ...]) -> str:
    """The value of `IO` (`file` unless given), one of `allowed`."""
    given = parameters.get("IO", "file")
    if given not in allowed:
        choices = ", ".join(f"`{name}`" for name in allowed)
        raise _bad_parameter("IO", given, f"choose one of {choices}")
    return given


def _truth(parameters: Mapping[str, str], name: str) -> bool:
    value = parameters.get(name, "false")
    if value.lower() not in ("true", "false"):
        raise _bad_parameter(name, value, "write `true` or `false`")
    return value.lower() == "true"


def _bad_parameter(name: str, value: str, advice: str) -> ElastalogError:
    return error("E0514", name=name, value=shown(value), advice=advice)


BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def whole_lines(data: bytes, size: int) -> Iterator[tuple[int, int]]:
    """Where blocks of whole lines begin and end, each of them as long as `size`, or a line longer."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + size) + 1 or len(data)
        yield start, end
        start = end


Record: TypeAlias = tuple[int, bytes, list[str] | Fault]
"""The line that it begins on, from 0; its bytes, without line end; its fields, or why there are none."""


def records_of(data: bytes, form: Format) -> Iterator[Record]:
    """The records of a text without header and byte order mark."""
    return _quoted_records(data, form.delimiter) if form.is_rfc4180 else _plain_records(data, form.delimiter)


def bare(fields: Sequence[str]) -> list[str]:
    """The fields of a header without blanks and quotes around them."""
    return [field.strip(' "') for field in fields]


def are_names(schema: Schema, fields: Sequence[str]) -> bool:
    """Whether fields are the names of the columns, but for case, blanks and quotes around them."""
    return [name.casefold() for name in bare(fields)] == [name.casefold() for name in schema.names]


def reads_as_header(schema: Schema, fields: Sequence[str]) -> bool:
    """Whether the fields of a line that is not a fact are names: they are those of the columns; or one of them is, and
    no field is a number."""
    if schema.is_of_texts and len(fields) == schema.arity:
        return are_names(schema, fields)
    return goes_by_name(schema.names, bare(fields)) and not has_numbers(fields)


def has_numbers(fields: Sequence[str]) -> bool:
    """Whether any field is a number: no column is called `30`."""
    return any(INTEGER.fullmatch(field) or FLOAT.fullmatch(field) or faults.for_separators(field) for field in fields)


def _plain_records(data: bytes, delimiter: str) -> Iterator[Record]:
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n")):
        line = raw.removesuffix(b"\r")
        try:
            yield number, line, line.decode().split(delimiter)
        except UnicodeDecodeError as error:
            yield number, line, _not_utf8(error)


def _quoted_records(data: bytes, delimiter: str) -> Iterator[Record]:
    """Records of RFC 4180, each with the line that it begins on, from 0. After a fault, reading goes on at the next
    line."""
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


INTEGER = re.compile(r"[ \t]*([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|([0-9]+))[ \t]*", re.ASCII)
FLOAT = re.compile(
    r"[ \t]*[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|(inf(?:inity)?))[ \t]*",
    re.ASCII | re.IGNORECASE,
)
CERTAIN: Final = {
    Base.NUMBER: "^-?[0-9]{1,18}$", Base.UNSIGNED: "^[0-9]{1,19}$", Base.FLOAT: r"^-?[0-9]{1,15}(\.[0-9]{1,15})?$",
}  # fmt: skip
"""Patterns of numbers that Arrow and Spark read as the language does."""

_WORDS = re.compile(r"[^\W\d]+(?:[ _.-][^\W\d]+)*")
LOOKED_AT = 64 << 10
"""Bytes at the beginning of a file that are looked at."""
# Text of more digits is out of range whatever it says; converting it could take very long.
MOST_DIGITS = 400


def parser_of(column: Column) -> Callable[[str], Value | Fault]:
    """The function that reads the text of one column."""
    match column.base:
        case Base.SYMBOL:
            return str
        case Base.NUMBER:
            return lambda text: _integer(column, text, LEAST_NUMBER, MOST_NUMBER)
        case Base.UNSIGNED:
            return lambda text: _integer(column, text, 0, MOST_UNSIGNED)
        case Base.FLOAT:
            return lambda text: _float(column, text)
        case Base.RECORD:
            return lambda text: value_fault(column, text) or text


def _integer(column: Column, text: str, least: int, most: int) -> int | Fault:
    found = INTEGER.fullmatch(text)
    if found is None:
        return _not_of_type(column, text)
    sign, hexadecimal, binary, decimal = found.groups()
    digits = hexadecimal or binary or decimal
    if len(digits.lstrip("0")) > MOST_DIGITS:
        return _out_of_range(column, text)
    value = int(digits, 16 if hexadecimal else 2 if binary else 10)
    if sign == "-":
        value = -value
    return value if least <= value <= most else _out_of_range(column, text)


def _float(column: Column, text: str) -> float | Fault:
    found = FLOAT.fullmatch(text)
    if found is None:
        return _not_of_type(column, text)
    value = float(text)
    return _out_of_range(column, text) if math.isinf(value) and found.group(1) is None else value


def _not_of_type(column: Column, text: str) -> Fault:
    article = "an" if column.base is Base.UNSIGNED else "a"
    if not text:
        advice = (
            "leave the row out, and keep optional values in a relation of their own: `elastalog explain-error E0502`"
        )
        return Fault(faults.TYPE, f"an empty field is not {article} {column.base.value} (`{column.name}`)", advice)
    if column.base is not Base.FLOAT and FLOAT.fullmatch(text):
        reason = f"{shown(text)} is a float, and `{column.name}` is declared as {column.base.value}"
        return Fault(faults.TYPE, reason, faults.for_whole(column.name))
    reason = f"{shown(text)} is not {article} {column.base.value} (`{column.name}`)"
    return Fault(faults.TYPE, reason, faults.for_separators(text))


def _out_of_range(column: Column, text: str) -> Fault:
    return Fault(faults.RANGE, f"{shown(text)} does not fit {column.base.value} `{column.name}`")


_QUOTED = re.compile(r'"[^"]*"')


def is_like_a_header(schema: Schema, first: Sequence[str]) -> bool:
    """Whether the fields of the first line are names of columns, and would be taken for a fact."""
    # Where a name is not a value, the line is a bad row; `X` and `Y` may well be values of columns `x` and `y`.
    if not schema.is_of_texts:
        return False
    is_long = all(len(name) > 1 for name in schema.names)
    return are_names(schema, first) if is_long else tuple(bare(first)) == schema.names


def is_like_a_fact(schema: Schema, first: Sequence[str]) -> bool:
    """Whether the fields of the first line are values, not all of them texts."""
    if len(first) != schema.arity or schema.is_of_texts:
        return False
    read = (parser_of(column)(text) for column, text in zip(schema.columns, first, strict=True))
    return not any(isinstance(value, Fault) for value in read)


def first_record(data: bytes, form: Format) -> list[str]:
    """The fields of the first record of a text without byte order mark; none if it is quoted wrongly."""
    start = data if form.is_rfc4180 else data[: data.find(b"\n") + 1] or data
    first = next((fields for _, _, fields in records_of(start, form)), [])
    return [] if isinstance(first, Fault) else first


def doubt_about(data: bytes, schema: Schema, form: Format) -> str | None:
    """The key of a warning about the first line of a text that is probably not what it is read as: names of columns in
    the place of a fact, a fact in the place of names, or names that have nothing to do with the relation's columns."""
    first = first_record(data, form)
    if form.has_header:
        if is_like_a_fact(schema, first):
            return "E0527.fact"
        if not goes_by_name(schema.names, bare(first)):
            below = bare(first_record(data.partition(b"\n")[2], form))
            title = reads_as_header(schema, below) and "E0527.title"
            return title or ("E0527.position" if len(first) == schema.arity else "E0527.skipped")
    elif not form.says_no_header and is_like_a_header(schema, first):
        return "E0527"
    if quoted_field(data, form) is not None:
        return "E0527.quoted"
    if form.has_header or form.says_no_header:
        return None
    is_suspect = form.is_rfc4180 or form.delimiter in ",;"
    return "E0527.words" if is_suspect and _stands_above_others(data, schema, form, first) else None


def quoted_field(data: bytes, form: Format) -> str | None:
    """A field that stands between quotes which are read as a part of it, and probably do not belong to it."""
    if form.is_rfc4180 or b'"' not in data:
        return None
    if form.may_be_csv:
        between = re.escape(form.delimiter.encode())
        found = re.search(rb'(?:\A|\n|%b)("[^"\r\n]*")(?=%b|\r?\n|\r?\Z)' % (between, between), data)
        return None if found is None else found[1].decode("utf-8", "replace")
    first = first_record(data, form)
    return first[0] if len(first) > 1 and all(map(_QUOTED.fullmatch, first)) else None


def _stands_above_others(data: bytes, schema: Schema, form: Format, first: Sequence[str]) -> bool:
    """Whether the first of several lines of texts has words that occur nowhere below it, as names of columns do."""
    if len(first) != schema.arity or not schema.is_of_texts or len(set(first)) < len(first):
        return False
    if not all(map(_WORDS.fullmatch, bare(first))):
        return False
    rows = [fields for _, _, fields in records_of(data[:LOOKED_AT], form) if not isinstance(fields, Fault)]
    return len(rows) > 2 and set(first).isdisjoint(value for row in rows[1:] for value in row)


def look_at(data: bytes, schema: Schema, file: str, form: Format) -> None:
    """Warns if the first line is probably not what it is read as."""
    if form.has_header and not data:
        warn_of_empty(schema, file)
    if form.columns or not schema.arity or not data:
        return
    data = data.removeprefix(BYTE_ORDER_MARK)
    if (key := doubt_about(data, schema, form)) is None:
        return
    quoted, meant = quoted_field(data, form), form
    if quoted is not None:
        has_no_tabs = form.delimiter == "\t" and b"\t" not in data
        meant = replace(form, is_rfc4180=True, delimiter="," if has_no_tabs else form.delimiter)
    kept = replace(meant, has_header=False)
    if key == "E0527.position":
        meant = replace(meant, columns=tuple(range(schema.arity)))
    elif key != "E0527.quoted":
        meant = replace(meant, has_header=not form.has_header)
    names = bare(first_record(data, form))
    pairs = ", ".join(f"`{given}` as `{declared}`" for given, declared in zip(names, schema.names, strict=False))
    warn_of(
        finding(
            key, severity="warning", location=file, schema=schema.name, parameters=meant.parameters, pairs=pairs,
            quoted=quoted, as_text=f"{form.parameters}, rfc4180=false",
            names=", ".join(f"`{given}`" for given in names), kept=f"{kept.parameters}, headers=false",
            fields=counted(len(names), "field"), columns=counted(schema.arity, "column"), mark=form.delimiter,
        )
    )  # fmt: skip


def with_name(form: Format, schema: Schema, file: str) -> Format:
    """The format with the name of the file, where a directive has to say it: advice quotes the directive."""
    name = PurePath(file).name
    if any(said == "filename" for said, _ in form.others) or name in (f"{schema.name}.facts", "<stdin>"):
        return form
    return replace(form, others=(*form.others, ("filename", name)))


def has_blanks(data: bytes, form: Format) -> bool:
    """Whether there is a blank behind a delimiter. Before a number it does not count; before a text it is a part of the
    text."""
    return not form.delimiter[-1].isspace() and form.delimiter.encode() + b" " in data


def warn_of_blanks(schema: Schema, data: bytes, table: pa.Table, file: str, form: Format) -> None:
    """Warns of texts of a file that begin with a blank, as in `Ulm, Bonn, 3`. `table`: what was read of it."""
    from pyarrow import compute

    mark = form.delimiter.encode()
    is_regular = data.count(mark) == data.count(mark + b" ")  # then a blank is a part of the delimiter
    meant = with_name(replace(form, delimiter=f"{form.delimiter} "), schema, file).parameters if is_regular else None
    for column in schema.columns:
        begin = compute.starts_with(table.column(column.name), " ") if column.base is Base.SYMBOL else None
        if begin is not None and (number := compute.sum(begin).as_py()):
            begins = "begins" if number == 1 else "begin"
            every = "the only value" if number == 1 else f"all {number:,} values"
            values = f"{number:,} of the {table.num_rows:,} values" if number < table.num_rows else every
            row = table.filter(begin).slice(0, 1).to_pylist()[0]
            warn_of(
                finding(
                    "E0537", severity="warning", location=file, values=values, begin=begins, column=column.name,
                    schema=schema.name, fact=f"{schema.name}{tuple(row.values())!r}", parameters=meant,
                    delimiter=form.delimiter, sep="" if form.delimiter == "," else f"sep={form.delimiter!r}, ",
                )
            )  # fmt: skip
            return


def warn_of_empty(schema: Schema, file: object) -> None:
    """Warns of a file of facts that is empty."""
    warn_of(finding("E0510.nothing", severity="warning", location=file, path=file, relation=schema.name))
