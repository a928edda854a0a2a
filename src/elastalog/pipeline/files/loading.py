"""The facts of a program's input relations as words, from files, read in several threads.

Most fact files are text in the plainest of formats, and large: they go straight from bytes to words. Such a file is cut
into blocks of whole lines, which are read independently of each other. A line belongs to the block that its first byte
is in. Blocks that hold anything unusual are read as `text` reads them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.analysis.program import Base, CheckedProgram, Relation
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error, finding, warn_of
from elastalog.late import dataclass
from elastalog.pipeline.files.ahead import Ahead, Part
from elastalog.pipeline.files.allowance import allowance, unreadable
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, LOOKED_AT, Format, Kind, doubt_about, has_blanks, medium
from elastalog.pipeline.files.paths import find_facts
from elastalog.pipeline.files.policy import BadRow, BadRows, Report, settle
from elastalog.pipeline.files.read import FactsRead, file_of, read_given, read_input, said_of_text, tell_of_form
from elastalog.pipeline.files.text import read_lines
from elastalog.pipeline.files.write import output_file
from elastalog.relations.limits import Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.relations.blocks_of_lines import BlockOfLines

PLAIN = frozenset((Base.SYMBOL, Base.NUMBER, Base.UNSIGNED))
"""Types a column must have to be read as plain lines."""

_MORE = 1 << 12
_LINE_END = b"\n"
_PACKED = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file of lines of numbers and symbols between delimiters, without header and quotes."""

    schema: Schema
    path: Path
    form: Format
    size: int

    def is_doubtful(self) -> bool:
        """Whether its first lines need a warning, which is for the reader of the whole file to give: names of columns
        in the place of a fact, or blanks before texts."""
        with self._opened() as file:
            data = file.read(LOOKED_AT).removeprefix(BYTE_ORDER_MARK)
        has_texts = any(column.base is Base.SYMBOL for column in self.schema.columns)
        return doubt_about(data, self.schema, self.form) is not None or (has_texts and has_blanks(data, self.form))

    def blocks(self) -> Iterator[Callable[[], Lines]]:
        """Functions that read the blocks, in order."""
        return (partial(self._read, start) for start in range(0, self.size, SETTINGS.bytes_of_a_block))

    def _read(self, start: int) -> Lines:
        from elastalog.relations.blocks_of_lines import kinds_of, read_block

        data, first, last = self._bytes(start)
        if first == last:
            return Lines(0, None, None, ())
        block = read_block(data, first, last, ord(self.form.delimiter), kinds_of(self.schema))
        if block is not None:
            return Lines(len(block.words), block, None, ())
        given = data[first:last].tobytes()
        table, bad = read_lines(self.schema, given, str(self.path), self.form, 1)
        return Lines(given.count(_LINE_END), None, table, tuple(bad))

    def _opened(self) -> BufferedReader:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise ElastalogError([unreadable(self.path, error)]) from None

    def _bytes(self, start: int) -> tuple[NDArray[np.uint8], int, int]:
        """Bytes of the file, and the two places between which are the lines that begin in the block."""
        from elastalog.relations.blocks_of_lines import PADDING

        begin, end = start, min(start + SETTINGS.bytes_of_a_block, self.size)
        with self._opened() as file:
            if start:  # the line that the byte before is in belongs to a block before
                file.seek(start - 1)
                begin += len(file.readline(end - start + 1)) - 1
            data: NDArray[np.uint8] = np.empty(end - begin + _MORE + PADDING, np.uint8)
            last = file.readinto(data.data[: end - begin])
            first = len(BYTE_ORDER_MARK) if not start and data[: min(last, 3)].tobytes() == BYTE_ORDER_MARK else 0
            if last > first and data[last - 1] != _LINE_END[0]:
                # The line that the last byte of the block is in ends wherever it does; the last one of a file need not.
                rest = file.readline().removesuffix(_LINE_END) + _LINE_END
                if len(rest) > _MORE:
                    data = np.concatenate([data, np.empty(len(rest), np.uint8)])
                data[last : last + len(rest)] = np.frombuffer(rest, np.uint8)
                last += len(rest)
        return data, first, last


@dataclass(frozen=True, slots=True)
class Lines:
    """What `number` lines of a file hold: a block of words, or a table and the bad rows, whose lines count from the
    first of these."""

    number: int
    block: BlockOfLines | None
    table: pa.Table | None
    bad: tuple[BadRow, ...]


def plain_file(schema: Schema, path: Path, form: Format) -> PlainFile | None:
    """The file, if it can be read as one of plain lines. It cannot if its first line looks like names of columns."""
    is_plain = form.kind is Kind.TEXT and not (form.has_header or form.is_rfc4180 or form.is_gzip or form.columns)
    if not is_plain or len(form.delimiter) != 1 or not form.delimiter.isascii():
        return None
    if not schema.columns or any(column.base not in PLAIN for column in schema.columns):
        return None
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or not found.st_size:
            return None
        with path.open("rb") as opened:
            if opened.read(len(_PACKED)) == _PACKED:
                return None
    except OSError:
        return None  # who reads it will tell why
    file = PlainFile(schema, path, form, found.st_size)
    return None if file.is_doubtful() else file


_PARTS = 8
"""Blocks of lines after which limits are looked after: that takes a tenth of the time of reading one."""

Encode: TypeAlias = Callable[[str, pa.Table], Words]
"""The words of a table of a relation's facts, which are known to be good."""


_Read: TypeAlias = FactsRead | Lines
"""What is read at once: all files of a relation, or a block of lines."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The facts of a relation, in parts, and how the reading went."""

    parts: list[Words]
    report: Report


def inputs_of(program: CheckedProgram) -> list[Relation]:
    """The relations that are read."""
    return [relation for relation in program.relations.values() if relation.inputs]


def is_missing(relation: Relation, root: str) -> bool:
    """Whether a relation is to be read from a file that is not in a folder of this machine."""
    if "://" in root:
        return False
    for directive in relation.inputs:
        if directive.parameters.get("IO", "file") == "file":
            try:
                file_of(relation, directive, root)
            except ElastalogError as error:
                return error.diagnostics[0].code == "E0510"
    return False


def edited_since(program: CheckedProgram, root: Path, moment: float) -> list[str]:
    """The files of the program's inputs in a folder that were written after a moment, in seconds since 1970."""
    found: list[str] = []
    for relation in inputs_of(program):
        for directive in relation.inputs:
            if directive.parameters.get("IO", "file") == "file":
                with suppress(ElastalogError, OSError):  # what is not there was not edited
                    file = file_of(relation, directive, root)
                    found += [file.name] if is_newer(file, moment) else []
    return found


def keep_inputs(program: CheckedProgram, facts: Any, output: Path | str, updates: str | None = None) -> None:
    """Raises ElastalogError if an `.output` directive would replace a file that an `.input` directive reads, or one of
    the `updates` of a stream, a file or a folder."""
    streamed = [] if updates is None else [Path(updates), *Path(updates).rglob("*")]
    read = {file.resolve(): "stream" for file in streamed}
    for relation in inputs_of(program) if isinstance(facts, Path | str) else ():
        for directive in relation.inputs:
            if directive.parameters.get("IO", "file") != "sqlite":  # whose tables stand side by side
                with suppress(ElastalogError):  # told where it is read
                    read[file_of(relation, directive, facts).resolve()] = f".input {relation.name}"
    for relation in program.relations.values() if read else ():
        for directive in relation.directives:
            path = output_file(relation, directive, output) if directive.kind == "output" else None
            if path is not None and path.resolve() in read:
                reads = read[path.resolve()]
                raise error("E0538", location=str(path), path=path.name, reads=reads, writes=relation.name)


def is_newer(file: Path, moment: float) -> bool:
    """Whether a file was written after a moment, in seconds since 1970; one that is not there was not."""
    try:
        return file.stat().st_mtime > moment
    except OSError:
        return False


def look_for_unread(program: CheckedProgram, folder: Path) -> set[str]:
    """Warns of files that seem to be meant for relations which nothing fills, and returns these. Raises ElastalogError
    if the folder is a file."""
    filled = {rule.head.relation for rule in program.rules} | {fact.relation for fact in program.facts}
    filled |= {name for name, one in program.relations.items() if any(each.kind == "input" for each in one.directives)}
    empty = [name for name in program.relations if name not in filled]
    if folder.is_file():
        relation = folder.stem if folder.stem in program.relations else next(iter([*empty, *program.relations]), "edge")
        raise error("E0510.file", location=str(folder), path=folder, relation=relation)
    told = set()
    for name in empty:
        with suppress(ElastalogError):
            path = find_facts(folder, name)
            told.add(name)
            is_output = any(directive.kind == "output" for directive in program.relations[name].directives)
            key = "E0510.output" if is_output else "E0510.unread"
            warn_of(finding(key, severity="warning", location=str(path), path=path, relation=name))
    return told


def not_needed(relations: Sequence[Relation]) -> Diagnostic:
    """The warning that relations are not read."""
    names = ", ".join(f"`{relation.name}`" for relation in relations)
    return finding("E0519", severity="warning", names=names)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the facts of a relation are: a file of plain lines, if that is all, and what reads them in any case.
    `understood`: how the file is written, if that was found out by looking at it."""

    name: str
    file: PlainFile | None
    read: Callable[[], FactsRead]
    understood: str = ""

    def parts(self) -> Iterator[Part[_Read]]:
        """The parts of the facts."""
        if self.file is None:
            yield Part(self.read)
        else:
            yield from (Part(block, SETTINGS.bytes_of_a_block) for block in self.file.blocks())


def sources_in(program: CheckedProgram, folder: Path, policy: BadRows) -> list[Source]:
    """The sources of the relations with `.input`, in a folder."""
    return [
        Source(relation.name, _plain_input(relation, folder), partial(read_input, relation, folder, policy))
        for relation in inputs_of(program)
    ]


def sources_at(program: CheckedProgram, given: Mapping[str, object], policy: BadRows) -> list[Source]:
    """The sources of the relations for which paths are given."""
    found: list[Source] = []
    for name, path in given.items():
        if type(path) is not list and isinstance(path, str | os.PathLike) and name in program.relations:
            from elastalog.pipeline.files.sniffing import described

            schema, said = Schema.of(program.relations[name]), said_of_text(program, name)
            file = _plain_path(schema, Path(path), said)
            understood = "" if file is None else described(file.form)
            found.append(Source(name, file, partial(read_given, schema, path, policy, said), understood))
    return found


class InputFiles:
    """The files of relations. Where several threads may read, they begin with `begin`, under the limits of its caller
    (see `allowance`), and have ended when `close` has. The results do not depend on what is read ahead, nor on the
    number of threads."""

    def __init__(self, sources: Sequence[Source], policy: BadRows) -> None:
        self._policy = policy
        # Rows that are set aside leave traces, which must not be there of files behind one that cannot be read.
        self._threads = allowance().jobs if policy.policy == "fail" else 1
        if sum(source.file.size for source in sources if source.file is not None) < SETTINGS.read_in_threads_from:
            sources = [replace(source, file=None) for source in sources]
        self._sources = sources
        self._parts = (part for source in sources for part in source.parts())
        self._ahead: Ahead[_Read] | None = None

    def begin(self) -> None:
        """Starts reading ahead. The caller must see to it that `close` is called, whatever happens."""
        if self._threads > 1:
            self._ahead = Ahead(self._parts, self._threads, "reading")
            self._ahead.start()

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def facts(self, dictionary: Dictionary, encode: Encode) -> Iterator[tuple[str, Loaded]]:
        """The facts of the relations, in order. They can be gone through once."""
        files = [source.file for source in self._sources if source.file is not None]
        texts = sum(f.size for f in files if any(column.base is Base.SYMBOL for column in f.schema.columns))
        if texts >= SETTINGS.read_in_threads_from:
            dictionary.symbols.expect(texts)
        parts = (part.make() for part in self._parts) if self._ahead is None else iter(self._ahead)
        for source in self._sources:
            if source.file is None:
                given = next(parts)
                assert isinstance(given, FactsRead)
                yield source.name, Loaded(list(_encoded(source.name, given.table, encode)), given.report)
            else:
                yield source.name, _assembled(source, parts, self._policy, dictionary, encode)
        # Arrow keeps what it has given back, for tables that will not come.
        pa.default_memory_pool().release_unused()


def _plain_input(relation: Relation, root: Path) -> PlainFile | None:
    """The file of a relation if it has one, of plain lines."""
    directives = relation.inputs
    if len(directives) != 1:
        return None
    parameters = directives[0].parameters
    try:
        if medium(parameters, ("file", parameters.get("IO", "file"))) != "file":
            return None
        path = file_of(relation, directives[0], root)
        return plain_file(Schema.of(relation), path, Format.of(parameters, path.name))
    except ElastalogError:
        return None  # raised again in its turn


def _plain_path(schema: Schema, path: Path, said: Mapping[str, str] | None) -> PlainFile | None:
    """The file at a path, if it seems to be one of plain lines."""
    from elastalog.pipeline.files.sniffing import ENOUGH, sniffed

    try:
        if not path.is_file() or path.name.lower().removesuffix(".gz").endswith(".json"):
            return None
        with path.open("rb") as opened:
            return plain_file(schema, path, sniffed(schema, opened.read(ENOUGH), str(path), said))
    except (OSError, ElastalogError):
        return None  # raised again in its turn


def _encoded(name: str, table: pa.Table, encode: Encode) -> Iterator[Words]:
    """The words of a table, piece by piece, so that limits hold: what takes room is the texts that are new."""
    for start in range(0, max(table.num_rows, 1), SETTINGS.rows_of_a_piece):
        yield encode(
            name, table.slice(start, SETTINGS.rows_of_a_piece) if table.num_rows > SETTINGS.rows_of_a_piece else table
        )
        allowance().check()


def _assembled(
    source: Source, parts: Iterator[_Read], policy: BadRows, dictionary: Dictionary, encode: Encode
) -> Loaded:
    """The facts of a file of plain lines, whose blocks are the next parts."""
    assert source.file is not None
    schema, words, bad, before = source.file.schema, list[Words](), list[BadRow](), 0
    for _ in source.file.blocks():
        lines = next(parts)
        assert isinstance(lines, Lines)
        if lines.block is not None:
            words.append(lines.block.encoded(dictionary))
        elif lines.table is not None:
            words.append(encode(schema.name, lines.table))
            bad += [replace(row, line=before + row.line) for row in lines.bad]
        before += lines.number
        if len(words) % _PARTS == 0:
            allowance().check()
    allowance().check()
    if source.understood and bad:  # who reads the file as a whole says how it could be meant
        given = source.read()
        return Loaded(list(_encoded(schema.name, given.table, encode)), given.report)
    report = settle(policy, schema.name, [str(source.file.path)], sum(map(len, words)), bad)
    if source.understood:
        tell_of_form(schema.name, report.files, source.understood)
    return Loaded(words or [np.empty((0, schema.arity), np.int32)], replace(report, understood=source.understood))
