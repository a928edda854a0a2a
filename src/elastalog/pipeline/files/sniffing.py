"""How a text file of facts is written, by looking at it: its delimiter, quotes and header. For files whose directive
says nothing, since none speaks of them, and for the hints about rows that cannot be read as a directive says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, Format, Kind, are_names, records_of
from elastalog.pipeline.files.text import read_text
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema, goes_by_name

LOOKED_AT = 64 << 10
"""Bytes at the beginning of a file that are looked at."""
ENOUGH = LOOKED_AT + 4
"""Bytes of it that say the same as the whole file: more than these, behind a mark of the byte order."""
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read the beginning of a file in which every line is a fact, and the facts."""

    form: Format
    facts: tuple[tuple[object, ...], ...]


def sniffed(schema: Schema, data: bytes, file: str) -> Format:
    """How a file is written. If no way makes facts of all its first lines: as its name says. Raises ElastalogError if
    there are several ways, and they make different facts."""
    start = Format.of({}, file)
    if start.kind is not Kind.TEXT or not schema.arity or not data.strip():
        return start
    found = list(readings(schema, data, file))
    if not found:
        form = _by_name(file)
        first = next((fields for _, _, fields in records_of(data.removeprefix(BYTE_ORDER_MARK), form)), [])
        is_headed = not isinstance(first, Fault) and are_names(schema, first)
        return replace(form, has_header=is_headed)
    if any(other.facts != found[0].facts for other in found):
        raise _ambiguous(schema, file, found)
    return found[0].form


def setting_for(schema: Schema, data: bytes, file: str, form: Format) -> str:
    """The directive that makes a file readable which is not so in a form; nothing if none is known."""
    if data.lstrip(b" \r\n\t" + BYTE_ORDER_MARK)[:1] in (b"[", b"{") and not any(readings(schema, data, file)):
        kind = "IO=json, " if data.lstrip(BYTE_ORDER_MARK).lstrip()[:1] == b"[" else ""
        name = file.rpartition("/")[2]
        advice = f'`.input {schema.name}({kind}filename="{name if kind else schema.name + ".jsonl"}")`'
        return f"the file is JSON: {advice}" + ("" if kind else ", a fact a line")
    found = next(readings(schema, data, file), None)
    if found is None or found.form == form:
        return ""
    meant = replace(found.form, others=form.others)
    first = next((fields for _, _, fields in records_of(data.removeprefix(BYTE_ORDER_MARK), meant)), [])
    if not isinstance(first, Fault) and goes_by_name(schema.names, [field.strip(' "') for field in first]):
        meant = replace(meant, has_header=True)  # even if another column has another name: that is said next
    return f"say how the file is written: `.input {schema.name}({meant.parameters})`"


def described(form: Format) -> str:
    """How a file is written, in words."""
    if form.kind is not Kind.TEXT:
        return "Parquet" if form.kind is Kind.PARQUET else "JSON lines"
    parts = [f"fields between {_NAMES.get(form.delimiter, repr(form.delimiter))}"]
    parts += ["quotes as in CSV"] if form.is_rfc4180 else []
    parts.append("a header" if form.has_header else "no header")
    parts += [f"columns {', '.join(str(column + 1) for column in form.columns)}"] if form.columns else []
    return ", ".join(parts)


def readings(schema: Schema, data: bytes, file: str) -> Iterator[Reading]:
    """The ways to read a file that make facts of all its first lines, the likeliest first."""
    sample = data.removeprefix(BYTE_ORDER_MARK)
    if len(sample) > LOOKED_AT:
        sample = sample[: sample.rfind(b"\n", 0, LOOKED_AT) + 1] or sample[:LOOKED_AT]
    for form in _forms(sample, file):
        yield from _with_and_without_header(schema, sample, form)


def _by_name(file: str) -> Format:
    """What the name of a file says."""
    form = Format.of({}, file)
    name = file.lower().removesuffix(".gz")
    return replace(form, delimiter=",", is_rfc4180=True) if name.endswith(".csv") else form


def _forms(sample: bytes, file: str) -> Iterator[Format]:
    """Delimiters and quotes that may be meant, without header. Tabs of Soufflé's own files are never between quotes."""
    name = file.lower().removesuffix(".gz")
    start = Format.of({}, file)
    if name.endswith((".facts", ".tsv")):
        marks = "\t"
    else:
        marks = ",;\t|" if name.endswith(".csv") else "\t,;|"
    if not any(mark.encode() in sample for mark in marks):
        marks = marks[0]
    for mark in marks:
        is_quoted = b'"' in sample and not name.endswith(".facts")
        if mark == "," or is_quoted:
            yield replace(start, delimiter=mark, is_rfc4180=True)
        if mark != "," and (mark == "\t" or not is_quoted):
            yield replace(start, delimiter=mark)


def _with_and_without_header(schema: Schema, sample: bytes, form: Format) -> Iterator[Reading]:
    first = next((fields for _, _, fields in records_of(sample, form)), [])
    if isinstance(first, Fault):
        return
    names = [field.strip(' "') for field in first]
    if goes_by_name(schema.names, names):
        found = _reading(schema, sample, replace(form, has_header=True))
        if found is not None:
            yield found
            # `x` and `y` are names of columns, and may well be values.
            is_clear = not are_names(schema, first) or any(len(name) > 1 for name in schema.names)
            if is_clear or any(column.base is not Base.SYMBOL for column in schema.columns):
                return
    found = _reading(schema, sample, form)
    if found is None and len(first) == schema.arity:  # names of another kind
        found = _reading(schema, sample, replace(form, has_header=True))
    if found is not None:
        yield found


def _reading(schema: Schema, sample: bytes, form: Format) -> Reading | None:
    """None unless every line is a fact, and there is one."""
    try:
        table, bad = read_text(schema, sample, "", form)
    except ElastalogError:  # a header without one of the columns
        return None
    if bad or not table.num_rows:
        return None
    return Reading(form, tuple(zip(*(column.to_pylist() for column in table.columns), strict=True)))


def _ambiguous(schema: Schema, file: str, found: list[Reading]) -> ElastalogError:
    other = next(one for one in found if one.facts != found[0].facts)
    return error(
        "E0528", location=file, file=file, schema=schema.name, parameters=other.form.parameters,
        form=described(found[0].form), fact=f"{schema.name}{found[0].facts[0]!r}", other=described(other.form),
        other_fact=f"{schema.name}{other.facts[0]!r}",
    )  # fmt: skip
