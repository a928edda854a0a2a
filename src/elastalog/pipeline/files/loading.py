"""The facts of a program's input relations as words, from files, read in several threads."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Relation
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.format import medium
from elastalog.pipeline.files.paths import find_facts, require_file
from elastalog.pipeline.files.plain_lines import Lines, PlainFile, plain_file
from elastalog.pipeline.files.policy import BadRow, Policy, Report, settle
from elastalog.pipeline.files.read import FactsRead, read_input
from elastalog.relations.limits import Words
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

_PIECE = 1 << 19
"""Rows that are made words of before limits are looked after."""

LEAST_SIZE = 1 << 18
"""Bytes of all files of plain lines below which they are read by Python alone: compiled operators have to be loaded
first, and texts that are Python objects are found faster one by one."""

_PARTS = 8
"""Blocks of lines after which limits are looked after: that takes a tenth of the time of reading one."""

Encode: TypeAlias = Callable[[str, pa.Table], Words]
"""The words of a table of a relation's facts, which are known to be good."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The facts of a relation, in parts, and how the reading went."""

    parts: list[Words]
    report: Report


def load_inputs(
    relations: Sequence[Relation], root: Path, policy: Policy, dictionary: Dictionary, encode: Encode
) -> Generator[Loaded, None, None]:
    """The facts of relations with `.input`, in order; what is read ahead, and by how many threads, changes nothing."""
    # Rows that are set aside leave traces, which must not be there of files behind one that cannot be read.
    threads = allowance().jobs if policy.mode == "fail" else 1
    files = {relation.name: _plain_file(relation, root) for relation in relations}
    if sum(file.size for file in files.values() if file is not None) < LEAST_SIZE:
        files = dict.fromkeys(files)
    reads = (read for relation in relations for read in _reads(relation, files[relation.name], root, policy))
    with closing(_results(reads, threads)) as read:
        for relation in relations:
            file = files[relation.name]
            if file is None:
                given = next(read)
                assert isinstance(given, FactsRead)
                yield Loaded(list(_encoded(relation.name, given.table, encode)), given.report)
            else:
                lines = _Assembled(file, policy, dictionary, encode)
                for _ in file.blocks():
                    part = next(read)
                    assert isinstance(part, Lines)
                    lines.add(part)
                yield lines.loaded()
    # Arrow keeps what it has given back, for tables that will not come.
    pa.default_memory_pool().release_unused()


def _results(
    reads: Iterator[Callable[[], FactsRead | Lines]], threads: int
) -> Generator[FactsRead | Lines, None, None]:
    if threads < 2:
        return (read() for read in reads)
    from elastalog.pipeline.files.ahead import read_ahead

    return read_ahead(reads, threads)


def _plain_file(relation: Relation, root: Path) -> PlainFile | None:
    """The file of a relation if it has one, of plain lines."""
    directives = [directive.parameters for directive in relation.directives if directive.kind == "input"]
    if len(directives) != 1:
        return None
    named = directives[0].get("filename")
    try:
        if medium(directives[0], ("file", directives[0].get("IO", "file"))) != "file":
            return None
        path = find_facts(root, relation.name) if named is None else require_file(root, relation.name, named)
        file = plain_file(Schema.of(relation), path, directives[0])
        return None if file is None or file.is_unusual() else file
    except ElastalogError:
        return None  # raised again in its turn


def _reads(
    relation: Relation, file: PlainFile | None, root: Path, policy: Policy
) -> Iterator[Callable[[], FactsRead | Lines]]:
    if file is None:
        yield partial(read_input, relation, root, policy)
    else:
        yield from file.blocks()


def _encoded(name: str, table: pa.Table, encode: Encode) -> Iterator[Words]:
    """The words of a table, piece by piece, so that limits hold: what takes room is the texts that are new."""
    for start in range(0, max(table.num_rows, 1), _PIECE):
        yield encode(name, table.slice(start, _PIECE) if table.num_rows > _PIECE else table)
        allowance().check()


class _Assembled:
    """The facts of a file of plain lines, as far as they have been read."""

    def __init__(self, file: PlainFile, policy: Policy, dictionary: Dictionary, encode: Encode) -> None:
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
