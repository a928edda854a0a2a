"""The facts of a program's input relations as words, from files, read in several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import CheckedProgram, Relation
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.format import medium
from elastalog.pipeline.files.paths import find_facts, require_file
from elastalog.pipeline.files.plain_lines import Lines, PlainFile, plain_file
from elastalog.pipeline.files.policy import BadRow, BadRows, Report, settle
from elastalog.pipeline.files.read import FactsRead, read_input
from elastalog.relations.limits import Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.pipeline.files.ahead import Ahead


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
    return [
        relation
        for relation in program.relations.values()
        if any(directive.kind == "input" for directive in relation.directives)
    ]


def is_missing(relation: Relation, root: str) -> bool:
    """Whether a file that a relation is to be read from is not in a folder of this machine."""
    if "://" in root:
        return False
    for directive in relation.directives:
        if directive.kind == "input" and directive.parameters.get("IO", "file") == "file":
            named = directive.parameters.get("filename")
            try:
                _ = find_facts(root, relation.name) if named is None else require_file(root, relation.name, named)
            except ElastalogError as error:
                return error.diagnostics[0].code == "E0510"
    return False


def not_needed(relations: Sequence[Relation]) -> Diagnostic:
    """The warning that relations are not read."""
    names = ", ".join(f"`{relation.name}`" for relation in relations)
    return Diagnostic("E0519", f"no file for {names}, which no output needs", severity="warning")


class InputFiles:
    """The files of relations with `.input`. Where several threads may read, they begin with `begin`, under the limits
    of whoever calls it (see `allowance`), and have ended when `close` has. What is read ahead, and by how many, changes
    nothing."""

    def __init__(self, relations: Sequence[Relation], root: Path, policy: BadRows) -> None:
        self._relations = relations
        self._policy = policy
        # Rows that are set aside leave traces, which must not be there of files behind one that cannot be read.
        self._threads = allowance().jobs if policy.policy == "fail" else 1
        files = {relation.name: _plain_file(relation, root) for relation in relations}
        if sum(file.size for file in files.values() if file is not None) < SETTINGS.read_in_threads_from:
            files = dict.fromkeys(files)
        self._files = files
        self._reads = (read for relation in relations for read in _reads(relation, files[relation.name], root, policy))
        self._ahead: Ahead[_Read] | None = None

    def begin(self) -> None:
        """Whoever calls this has seen to it that `close` is called, whatever happens."""
        if self._threads > 1:
            from elastalog.pipeline.files.ahead import Ahead, Part

            self._ahead = Ahead((Part(read, size) for read, size in self._reads), self._threads, "reading")
            self._ahead.start()

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def facts(self, dictionary: Dictionary, encode: Encode) -> Iterator[tuple[str, Loaded]]:
        """The facts of the relations, in order, once."""
        texts = sum(file.size for file in self._files.values() if file is not None and file.has_texts)
        if texts >= SETTINGS.read_in_threads_from:
            dictionary.symbols.expect(texts)
        parts = (read() for read, _ in self._reads) if self._ahead is None else iter(self._ahead)
        for relation in self._relations:
            file = self._files[relation.name]
            if file is None:
                given = next(parts)
                assert isinstance(given, FactsRead)
                yield relation.name, Loaded(list(_encoded(relation.name, given.table, encode)), given.report)
            else:
                lines = _Assembled(file, self._policy, dictionary, encode)
                for _ in file.blocks():
                    part = next(parts)
                    assert isinstance(part, Lines)
                    lines.add(part)
                yield relation.name, lines.loaded()
        # Arrow keeps what it has given back, for tables that will not come.
        pa.default_memory_pool().release_unused()


def _plain_file(relation: Relation, root: Path) -> PlainFile | None:
    """The file of a relation if it has one, of plain lines."""
    directives = [directive for directive in relation.directives if directive.kind == "input"]
    if len(directives) != 1:
        return None
    parameters = directives[0].parameters
    named = parameters.get("filename")
    try:
        if medium(parameters, ("file", parameters.get("IO", "file"))) != "file":
            return None
        path = (
            find_facts(root, relation.name)
            if named is None
            else require_file(root, relation.name, named, is_confined=directives[0].is_confined)
        )
        file = plain_file(Schema.of(relation), path, parameters)
        return None if file is None or file.begins_with_names() else file
    except ElastalogError:
        return None  # raised again in its turn


def _reads(
    relation: Relation, file: PlainFile | None, root: Path, policy: BadRows
) -> Iterator[tuple[Callable[[], _Read], int | None]]:
    """What reads the parts of a relation's facts, and of how many bytes each is, if that is known."""
    if file is None:
        yield partial(read_input, relation, root, policy), None
    else:
        yield from ((block, SETTINGS.bytes_of_a_block) for block in file.blocks())


def _encoded(name: str, table: pa.Table, encode: Encode) -> Iterator[Words]:
    """The words of a table, piece by piece, so that limits hold: what takes room is the texts that are new."""
    for start in range(0, max(table.num_rows, 1), SETTINGS.rows_of_a_piece):
        yield encode(
            name, table.slice(start, SETTINGS.rows_of_a_piece) if table.num_rows > SETTINGS.rows_of_a_piece else table
        )
        allowance().check()


class _Assembled:
    """The facts of a file of plain lines, as far as they have been read."""

    def __init__(self, file: PlainFile, policy: BadRows, dictionary: Dictionary, encode: Encode) -> None:
        self._file = file
        self._policy = policy
        self._dictionary = dictionary
        self._encode = encode
        self._parts: list[Words] = []
        self._bad: list[BadRow] = []
        self._lines = 0

    def add(self, lines: Lines) -> None:
        """Takes the lines that come next."""
        if lines.block is not None:
            self._parts.append(lines.block.encoded(self._dictionary))
        elif lines.table is not None:
            self._parts.append(self._encode(self._file.schema.name, lines.table))
            self._bad += [replace(row, line=self._lines + row.line) for row in lines.bad]
        self._lines += lines.number
        if len(self._parts) % _PARTS == 0:
            allowance().check()

    def loaded(self) -> Loaded:
        """The facts, when all lines are there."""
        allowance().check()
        count = sum(map(len, self._parts))
        name = self._file.schema.name
        parts = self._parts or [np.empty((0, self._file.schema.arity), np.int32)]
        return Loaded(parts, settle(self._policy, name, [str(self._file.path)], count, self._bad, 0))
