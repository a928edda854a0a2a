"""How a text file of facts is written, by looking at it: its delimiter, quotes and header. For files whose directive
says nothing, since none speaks of them, and for the hints about rows that cannot be read as a directive says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass
from elastalog.pipeline.files.format import (
    BYTE_ORDER_MARK,
    LOOKED_AT,
    Format,
    Kind,
    are_names,
    bare,
    doubt_about,
    first_record,
    has_numbers,
    reads_as_header,
    records_of,
)
from elastalog.pipeline.files.text import read_text
from elastalog.relations.faults import Fault, for_separators
from elastalog.relations.schema import Schema, goes_by_name

ENOUGH = LOOKED_AT + 4
"""Bytes of it that say the same as the whole file: more than these, behind a mark of the byte order."""
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "blanks"}


@dataclass(frozen=True, slots=True)
class Reading:
    """A way to read the beginning of a file in which every line is a fact, and the facts."""

    form: Format
    facts: tuple[tuple[object, ...], ...]


def sniffed(schema: Schema, data: bytes, file: str, said: Mapping[str, str] | None = None) -> Format:
    """How a file is written: as the parameters of the relation's directive say, if that makes facts of all its first
    lines, and the first is not mistaken for a header or a fact. If no way does: with the delimiter that suits its lines
    best. Raises ElastalogError if there are several ways, and they make different facts."""
    start = Format.of({}, file)
    if start.kind is not Kind.TEXT or not schema.arity or not data.strip():
        return start
    sample = _sample(data)
    meant = Format.of(said, file) if said else None
    grave = "E0527", "E0527.fact"  # the others are doubts, no more
    is_said = "headers" in (said or ())
    doubts = not is_said and meant is not None and doubt_about(sample, schema, meant) in grave
    if meant and not doubts and _reading(schema, sample, meant) is not None:
        return meant
    if meant and meant.has_header:
        for form in (meant, *(replace(form, has_header=True, columns=meant.columns) for form in _forms(sample, file))):
            if goes_by_name(schema.names, bare(first_record(sample, form))):
                return form  # if a column is missing, that is said
    found = list(readings(schema, data, file, meant))
    if not found:
        says_marks = meant is not None and not {"delimiter", "rfc4180"}.isdisjoint(said or ())
        return meant if meant and says_marks else _as_said(_likeliest(schema, sample, file), meant)
    if meant is not None and any(reading.form == meant for reading in found):
        return meant
    if any(other.facts != found[0].facts for other in found):
        raise _ambiguous(schema, file, found)
    return found[0].form


def _likeliest(schema: Schema, sample: bytes, file: str) -> Format:
    """How a file is probably meant that cannot be read as a whole: its bad rows are told as in this form."""

    def misfit(form: Format) -> tuple[int, int]:
        lines = (fields for _, _, fields in records_of(sample, form) if not isinstance(fields, Fault))
        lengths = [len(fields) for fields in lines]
        return -lengths.count(schema.arity), min((abs(one - schema.arity) for one in lengths[:1]), default=0)

    form = min((_by_name(file), *_forms(sample, file)), key=misfit)
    first = first_record(sample, form)
    # Names of another kind stand above numbers.
    second = first_record(sample.partition(b"\n")[2], form)
    is_headed = reads_as_header(schema, first) or (not has_numbers(first) and has_numbers(second))
    return replace(form, has_header=is_headed)


def setting_for(schema: Schema, data: bytes, file: str, form: Format) -> str:
    """The directive that makes a file readable that is not readable in a form; empty if none is known."""
    if data.lstrip(b" \r\n\t" + BYTE_ORDER_MARK)[:1] in (b"[", b"{") and not any(readings(schema, data, file)):
        kind = "IO=json, " if data.lstrip(BYTE_ORDER_MARK).lstrip()[:1] == b"[" else ""
        name = file.rpartition("/")[2]
        advice = f'`.input {schema.name}({kind}filename="{name if kind else schema.name + ".jsonl"}")`'
        return f"the file is JSON: {advice}" + ("" if kind else ", a fact a line")
    found = next(readings(schema, data, file, form), None)
    if found is None or found.form == form:
        return ""
    meant = replace(found.form, others=form.others)
    if goes_by_name(schema.names, bare(first_record(data.removeprefix(BYTE_ORDER_MARK), meant))):
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


def readings(schema: Schema, data: bytes, file: str, meant: Format | None = None) -> Iterator[Reading]:
    """The ways to read a file that make facts of all its first lines, the likeliest first. `meant`: what the directive
    says; its columns hold for any delimiter, and so does that there is no header."""
    sample = _sample(data)
    for form in _forms(sample, file):
        yield from _with_and_without_header(schema, sample, _as_said(form, meant))


def _as_said(form: Format, meant: Format | None) -> Format:
    if meant is None:
        return form
    # Of a file with other marks than those that are said, nothing is known.
    is_open = meant.delimiter in ("\t", form.delimiter)
    is_headed = (form.has_header or (meant.has_header and is_open)) and not meant.says_no_header
    return replace(form, columns=meant.columns, has_header=is_headed, says_no_header=meant.says_no_header)


def _sample(data: bytes) -> bytes:
    sample = data.removeprefix(BYTE_ORDER_MARK)
    if len(sample) > LOOKED_AT:
        sample = sample[: sample.rfind(b"\n", 0, LOOKED_AT) + 1] or sample[:LOOKED_AT]
    return sample


def _by_name(file: str) -> Format:
    """The format that the name of a file suggests."""
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
    first = first_record(sample, form)
    if not first:
        return
    if form.has_header:  # as the directive says
        if (found := _reading(schema, sample, form)) is not None:
            yield found
        return
    if goes_by_name(schema.names, bare(first)) and not form.says_no_header:
        found = _reading(schema, sample, replace(form, has_header=True))
        if found is not None:
            yield found
            # `x` and `y` are names of columns, and may well be values.
            is_clear = not are_names(schema, first) or any(len(name) > 1 for name in schema.names)
            if is_clear or not schema.is_of_texts:
                return
    found = _reading(schema, sample, form)
    is_headless = form.says_no_header or any(map(for_separators, first))
    if found is None and len(first) == schema.arity and not is_headless:  # names of another kind
        found = _reading(schema, sample, replace(form, has_header=True))
    if found is not None:
        yield found


def _reading(schema: Schema, sample: bytes, form: Format) -> Reading | None:
    """A way to read a sample; None unless it has lines and all of them are facts."""
    try:
        table, bad = read_text(schema, sample, "", form)
    except ElastalogError:  # a header without one of the columns
        return None
    if bad or not table.num_rows:
        return None
    return Reading(form, tuple(zip(*(column.to_pylist() for column in table.columns), strict=True)))


def _ambiguous(schema: Schema, file: str, found: list[Reading]) -> ElastalogError:
    other = next(one for one in found if one.facts != found[0].facts)
    pairs = zip(found[0].facts, other.facts, strict=False)
    fact, other_fact = next((pair for pair in pairs if pair[0] != pair[1]), (found[0].facts[-1], other.facts[-1]))
    headed = found[0] if found[0].form.has_header else other
    advised = replace(headed.form, others=(("filename", PurePath(file).name),))
    return error(
        "E0528", location=file, file=file, schema=schema.name, parameters=advised.parameters,
        form=described(found[0].form), fact=f"{schema.name}{fact!r}", other=described(other.form),
        other_fact=f"{schema.name}{other_fact!r}",
    )  # fmt: skip
