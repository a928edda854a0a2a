"""RDF in files (`IO=rdf`), read and written by pyoxigraph: a fact a triple, terms as N-Triples has them.

Whatever the format, triples come as lines of N-Triples. Lines in the usual layout, terms with a blank between them, are
taken apart by Arrow, and the parser judges every distinct term that is not plain once. A file of lines that are laid
out otherwise, or with an invalid term, goes through the parser line by line, which then tells what is wrong and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elastalog import late
from elastalog.diagnostics.arguments import require_package
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import allowance, file_bytes, is_packed
from elastalog.pipeline.files.format import whole_lines
from elastalog.pipeline.files.paths import replacing
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.schema import Schema
from elastalog.relations.tables import table_of_columns

pc = late.module("pyarrow.compute")

FORMATS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "ntriples": ("N_TRIPLES", (".nt",)),
    "nquads": ("N_QUADS", (".nq",)),
    "turtle": ("TURTLE", (".ttl",)),
    "trig": ("TRIG", (".trig",)),
    "rdfxml": ("RDF_XML", (".rdf", ".owl", ".xml")),
    "jsonld": ("JSON_LD", (".jsonld", ".json")),
}
"""The formats by their names here, with pyoxigraph's names and how names of files end."""

_BLOCK = 4 << 20
"""Bytes of a block of lines."""
_LINE_END, _BLANK = b"\n "
_PATH = "(?:[A-Za-z0-9._~!$&()*+,;=:@/-]|%[0-9A-Fa-f]{2})*"
PLAIN: Final = (
    rf"^(?:<https?://[A-Za-z0-9.-]+(?:/{_PATH})?(?:\?{_PATH})?(?:#{_PATH})?>|_:[A-Za-z][A-Za-z0-9]*"
    r'|"[ !#-\[\]-~]*"(?:@[a-z]{2,3}|\^\^<http://www\.w3\.org/2001/XMLSchema#'
    r"(?:integer|int|long|decimal|double|float|boolean|date|dateTime|gYear)>)?)$"
)
"""Terms that certainly are some, written as the parser writes them: most terms of most files."""
_ENTITY = re.compile(b"&([^;&<#\\s]+);")
_RANDOM = re.compile("_:[0-9a-f]{20,32}")
"""The label that the parser gives a blank node without one, another one each time."""


@dataclass(frozen=True, slots=True)
class Triples:
    """Triples by numbers of terms: `codes` has a row for each, `terms` the texts, each once, in the order in which they
    appear. With graphs there is a fourth column; the text of the default graph is empty."""

    terms: pa.Array
    codes: np.ndarray
    bad: list[BadRow]
    prefixes: dict[str, str]

    def column(self, place: int) -> pa.DictionaryArray:
        """A column of the triples, with a dictionary of what is in it."""
        codes = self.codes[:, place]
        is_used = np.zeros(len(self.terms), bool)
        is_used[codes] = True
        used = np.flatnonzero(is_used)
        places = np.empty(len(self.terms), np.int32)
        places[used] = np.arange(len(used), dtype=np.int32)
        return pa.DictionaryArray.from_arrays(pa.array(places[codes]), self.terms.take(pa.array(used)))


def joined_triples(parts: list[Triples]) -> Triples:
    """The triples of several files, whose blank nodes have different names. Terms of the largest file come first."""
    if len(parts) == 1:
        return parts[0]
    at = max(range(len(parts)), key=lambda place: len(parts[place].terms))
    largest = parts[at]
    others, codes = _united([(part.terms, part.codes.reshape(-1)) for part in parts if part is not largest])
    found = pc.index_in(largest.terms, value_set=others)  # asks the small one for what is in the large one
    places = np.full(len(others), -1, np.int32)
    places[np.asarray(found.drop_null())] = np.flatnonzero(np.asarray(found.is_valid()))
    new = np.flatnonzero(places < 0)
    places[new] = len(largest.terms) + np.arange(len(new))
    before = sum(len(part.codes) for part in parts[:at])
    rows = np.insert(places[codes].reshape(-1, 3), [before], largest.codes, axis=0)
    prefixes = {name: iri for part in reversed(parts) for name, iri in part.prefixes.items()}
    terms = pa.concat_arrays([largest.terms, others.take(pa.array(new))])
    return Triples(terms, rows, [row for part in parts for row in part.bad], prefixes)


def format_of(name: str, given: str | None = None) -> str:
    """The format that a parameter names, or else the name of the file."""
    if given is not None and given in FORMATS:
        return given
    ending = name.lower().removesuffix(".gz")
    for known, (_, endings) in FORMATS.items():
        if given is None and ending.endswith(endings):
            return known
    choices = ", ".join(f"`{ending}`" for _, endings in FORMATS.values() for ending in endings)
    raise error("E0529", location=name, given=given or name, choices=choices, formats=", ".join(FORMATS))


def read_rdf(schema: Schema, path: Path, parameters: Mapping[str, str]) -> tuple[pa.Table, list[BadRow]]:
    """The triples of a file as facts, and the bad rows."""
    _require_terms(schema)
    form = format_of(path.name, parameters.get("format"))
    found = read_triples(path, form, base=parameters.get("base"), has_graphs=schema.arity == 4)
    columns = [found.column(place) for place in range(schema.arity)]
    arrow = pa.schema([field.with_type(columns[0].type) for field in schema.arrow()])
    return table_of_columns(arrow, len(found.codes), columns), found.bad


def read_triples(path: Path, form: str, **options: Any) -> Triples:
    """The triples of a file, with options as for `parse_triples`. Whatever is not a triple is among the bad rows."""
    return parse_triples(file_bytes(path, is_packed(path)).removeprefix(b"\xef\xbb\xbf"), str(path), form, **options)


def parse_triples(
    data: bytes, file: str, form: str, *, base: str | None = None, has_graphs: bool = False, label: str | None = None
) -> Triples:
    """The triples of the contents of a file. `base`: for IRIs that are relative. `label`: what labels of blank nodes
    begin with, the name of the file unless given."""
    rdf = require_package("pyoxigraph", "rdf")
    kind = getattr(rdf.RdfFormat, FORMATS[form][0])
    if form == "rdfxml":
        allowance().check_expansion(file, len(data), _expanded_size(data))
    if base is not None:
        _require_absolute(rdf, base)
    prefixes: dict[str, str] = {}
    bad: list[BadRow] = []
    found = None
    if not has_graphs:
        lines = data if form == "ntriples" else _as_lines(rdf, data, kind, base, prefixes)
        found = None if lines is None else _columns_of_lines(rdf, lines, allowance().jobs)
    if found is None:
        parser = rdf.parse(data, kind, base_iri=base)
        found = _one_by_one(rdf, parser, data, has_graphs, file, bad)
        prefixes.update(getattr(parser, "prefixes", {}))
    terms, codes = found
    return Triples(_with_labels(terms, label or _label_of(file)), codes, bad, prefixes)


def _expanded_size(data: bytes) -> int:
    """The bytes of an XML document with its entities written out: each may stand for any number of others."""
    sizes: dict[bytes, int] = {}
    for name, _, value in re.findall(rb"""<!ENTITY\s+(\S+)\s+(["'])(.*?)\2""", data, re.DOTALL):
        sizes[name] = len(value) + sum(sizes.get(inner, 0) for inner in _ENTITY.findall(value))
    return len(data) + sum(sizes.values()) + sum(sizes.get(name, 0) for name in _ENTITY.findall(data) if sizes)


def _require_absolute(rdf: Any, base: str) -> None:
    try:
        rdf.NamedNode(base)
    except ValueError as error:
        raise ElastalogError.of("E0531", base=base, error=str(error)[:1].lower(), error_2=str(error)[1:]) from None


def _with_labels(terms: pa.Array, label: str) -> pa.Array:
    """Blank nodes with labels that no other file has: `_:b0` of data.ttl is `_:data.ttl_b0`."""
    is_blank = pc.starts_with(terms, "_:")
    blank = terms.filter(is_blank).to_pylist()
    if not blank:
        return terms
    taken = {node[2:] for node in blank if not _RANDOM.fullmatch(node)}
    free = (name for number in count(1) if (name := f"anonymous{number}") not in taken)
    names = [f"_:{label}_{next(free) if _RANDOM.fullmatch(node) else node[2:]}" for node in blank]
    return pc.replace_with_mask(terms, is_blank, pa.array(names, terms.type))


def _label_of(file: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", Path(file).name.removesuffix(".gz"))
    return name if name[:1].isalnum() else f"file{name}"


def _as_lines(rdf: Any, data: bytes, kind: Any, base: str | None, prefixes: dict[str, str]) -> bytes | None:
    """A document as lines of N-Triples; None if something is wrong with it. IRIs are not looked at here."""
    try:
        parser = rdf.parse(data, kind, base_iri=base, lenient=True)
        lines: bytes = rdf.serialize(parser, format=rdf.RdfFormat.N_QUADS)
    except (SyntaxError, ValueError):
        return None
    prefixes.update(getattr(parser, "prefixes", {}))
    return lines


def _columns_of_lines(rdf: Any, data: bytes, jobs: int) -> tuple[pa.Array, np.ndarray] | None:
    """The terms of lines, as the parser writes them, and the numbers of each line's three; None unless all lines have
    the usual layout and nothing is wrong with them."""
    try:
        with ThreadPoolExecutor(max(jobs, 1)) as threads:  # Arrow lets go of Python meanwhile
            blocks = (memoryview(data)[start:end] for start, end in whole_lines(data, _BLOCK))
            parts = list(threads.map(lambda block: _terms_of_block(rdf, block), blocks))
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    known = [part for part in parts if part is not None] or [(pa.array([], pa.large_string()), np.empty(0, np.int32))]
    terms, codes = _united(known)
    return None if None in parts else (terms, codes.reshape(-1, 3))


def _terms_of_block(rdf: Any, block: memoryview) -> tuple[pa.Array, np.ndarray] | None:
    """The terms of lines, and the numbers of each one's three; None as for `_columns_of_lines`."""
    split = _split(np.frombuffer(block, np.uint8))
    if split is None:
        return None
    texts, codes = split.dictionary, np.asarray(split.indices)
    is_last = np.zeros(len(texts), bool)
    is_last[codes[2::3]] = True
    lines = pc.ascii_rtrim(texts, " \t\r\n")
    has_end = pc.ends_with(lines, ".")
    if is_last[codes[0::3]].any() or is_last[codes[1::3]].any() or not np.array_equal(np.asarray(has_end), is_last):
        return None
    terms = pc.if_else(has_end, pc.ascii_rtrim(pc.utf8_slice_codeunits(lines, 0, -1), " \t"), lines)
    starts = pc.utf8_slice_codeunits(texts, 0, 1)
    is_iri, is_node = (np.asarray(pc.equal(starts, start)) for start in ("<", "_"))
    if not (is_iri[codes[1::3]].all() and (is_iri | is_node)[codes[0::3]].all()):
        return None
    written = _judged(rdf, terms)
    return None if written is None else (written, codes)


def _split(text: np.ndarray) -> pa.DictionaryArray | None:
    """The three parts of all lines, one after the other, with what stands behind each; None if a line has fewer. Lines
    of comments do not count."""
    for _ in range(2):
        places = np.flatnonzero(text <= _BLANK) + 1
        kinds = text[places - 1]
        ends = places[kinds == _LINE_END]
        if not len(ends) or ends[-1] != len(text):
            ends = np.append(ends, len(text))
        starts = np.append(0, ends[:-1])
        blanks = np.append(places[kinds == _BLANK], [len(text)] * 2)
        first = np.searchsorted(blanks, starts, "right")
        if np.all(blanks[first + 1] < ends):
            places = np.append(np.column_stack([starts, blanks[first], blanks[first + 1]]).reshape(-1), len(text))
            parts = pa.LargeStringArray.from_buffers(3 * len(ends), pa.py_buffer(places), pa.py_buffer(text))
            return parts.dictionary_encode()
        places = np.append(starts, len(text))
        lines = pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(places), pa.py_buffer(text))
        kept = lines.filter(pc.invert(pc.match_substring_regex(lines, "^[ \t\r\n]*(#.*)?[\r\n]*$")))
        text = np.frombuffer(kept.buffers()[2], np.uint8)[: kept.nbytes - 8 * (len(kept) + 1)]
    return None


def _united(parts: list[tuple[pa.Array, np.ndarray]]) -> tuple[pa.Array, np.ndarray]:
    """Texts of several parts, each once, and the numbers that refer to them, those of the parts one after the other."""
    texts = pa.concat_arrays([texts for texts, _ in parts]).dictionary_encode()
    places, codes, start = np.asarray(texts.indices), [], 0
    for part, numbers in parts:
        codes.append(places[start : start + len(part)][numbers])
        start += len(part)
    return texts.dictionary, np.concatenate(codes).astype(np.int32, copy=False)


def _judged(rdf: Any, terms: pa.Array) -> pa.Array | None:
    """Texts as the parser writes the terms that they are; None if one is not a term. The parser need not look at plain
    ones."""
    is_other = pc.invert(pc.match_substring_regex(terms, PLAIN))
    others = terms.filter(is_other)
    document = "".join([f"<x:x> <x:x> {term} .\n" for term in others.to_pylist()]).encode()
    try:
        if rdf.serialize(rdf.parse(document, rdf.RdfFormat.N_TRIPLES), format=rdf.RdfFormat.N_QUADS) == document:
            return terms
        triples = list(rdf.parse(document, rdf.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return None
    if len(triples) != len(others):
        return None
    return pc.replace_with_mask(terms, is_other, pa.array([str(triple.object) for triple in triples], terms.type))


def _one_by_one(
    rdf: Any, parser: Any, data: bytes, has_graphs: bool, file: str, bad: list[BadRow]
) -> tuple[pa.Array, np.ndarray]:
    """The triples that the parser finds; its errors join the bad rows."""
    numbers: dict[str, int] = {}
    codes: list[int] = []
    while True:
        try:
            for found in parser:
                graph = found.graph_name if isinstance(found, rdf.Quad) else rdf.DefaultGraph()
                is_default = isinstance(graph, rdf.DefaultGraph)
                if not (has_graphs or is_default):
                    told = f"{shown(str(found.triple))} is in the graph {shown(str(graph))}"
                    advice = "declare a fourth attribute, of type symbol, for the graph; ontologies have none"
                    bad.append(BadRow(file, 0, Fault(faults.RDF, told, advice), f"{found} ."))
                    continue
                texts = [str(found.subject), str(found.predicate), str(found.object)]
                if has_graphs:
                    texts.append("" if is_default else str(graph))
                codes += [numbers.setdefault(text, len(numbers)) for text in texts]
                if not len(codes) & 0xFFFF:
                    allowance().check()
            break
        except SyntaxError as error:
            bad.append(_bad_row(error, data, file))
    return pa.array(list(numbers), pa.large_string()), np.array(codes, np.int32).reshape(-1, 4 if has_graphs else 3)


def _bad_row(error: SyntaxError, data: bytes, file: str) -> BadRow:
    """Where the parser found something wrong, and the text there."""
    reason = re.sub(r"^Parser error at line \d+ (between columns \d+ and \d+|column \d+): ", "", error.msg)
    line = error.lineno
    if line is None:  # the parser of XML says what is wrong, and not where
        named = re.search("'([^']*)'", reason)
        at = data.find(named[1].encode()) if named and named[1] else -1
        line = data.count(b"\n", 0, at) + 1 if at >= 0 else 0
    lines = data.split(b"\n", line)
    text = lines[line - 1].removesuffix(b"\r").decode("utf-8", "backslashreplace") if 0 < line <= len(lines) else ""
    advice = faults.HELP[faults.RDF]
    if "No scheme found" in reason:
        advice = 'write absolute IRIs, or say what relative ones are relative to: `base="http://…"`'
    term = text[error.offset - 1 : error.end_offset - 1] if error.offset and error.end_offset else ""
    told = (reason[:1].lower() + reason[1:]) + (f", in {shown(term)}" if term.strip() else "")
    return BadRow(file, line, Fault(faults.RDF, told, advice), text)


# --- writing -------------------------------------------------------------------------------------------------------


def write_rdf(schema: Schema, table: pa.Table, path: Path, parameters: Mapping[str, str]) -> None:
    """Writes facts of three columns as triples, of four as quads."""
    _require_terms(schema)
    columns = [table.column(name).cast(pa.large_string()).to_pylist() for name in schema.names]
    lines = (" ".join(row).rstrip() + " .\n" for row in zip(*columns, strict=True))
    form = format_of(path.name, parameters.get("format"))
    write_triples(lines, path, form, prefixes_in(parameters.get("prefixes", "")))


def write_triples(lines: Iterable[str], path: Path, form: str, prefixes: Mapping[str, str]) -> None:
    """Writes lines of N-Triples, or of N-Quads, to a file of a format."""
    rdf = require_package("pyoxigraph", "rdf")
    listed = list(lines)
    data = "".join(listed).encode()
    kind = getattr(rdf.RdfFormat, FORMATS[form][0])
    names = {"prefixes": dict(prefixes)} if prefixes and form not in ("ntriples", "nquads") else {}
    try:
        found: Any = rdf.parse(data, rdf.RdfFormat.N_QUADS)
        if not kind.supports_datasets:
            found = (_in_no_graph(rdf, quad, path, form) for quad in found)
        with replacing(path) as out:
            if path.name.lower().endswith(".gz"):
                from gzip import GzipFile

                with GzipFile("", "wb", 6, out, mtime=0) as packed:
                    rdf.serialize(found, packed, kind, **names)
            else:
                rdf.serialize(found, out, kind, **names)
    except SyntaxError as error:
        row = listed[(error.lineno or 1) - 1].strip()
        raise ElastalogError.of(
            "E0530.write_triples", location=path, row=shown(row), reason=_bad_row(error, data, str(path)).fault.reason
        ) from None


def _in_no_graph(rdf: Any, quad: Any, path: Path, form: str) -> Any:
    if isinstance(quad.graph_name, rdf.DefaultGraph):
        return quad.triple
    raise error("E0530", location=path, form=form, quad=shown(str(quad)))


def prefixes_in(text: str) -> dict[str, str]:
    """The prefixes that a parameter gives: `ex=http://example.org/ foaf=http://xmlns.com/foaf/0.1/`."""
    pairs = [pair.partition("=") for pair in text.replace(",", " ").split()]
    return {name.removesuffix(":"): iri.strip("<>") for name, _, iri in pairs}


def _require_terms(schema: Schema) -> None:
    if schema.arity not in (3, 4) or not schema.is_of_texts:
        raise error("E0530.require_terms", schema=schema.name, schema_2=schema)
