"""What tasks know of the dictionary and of the user's functions: as much as the clauses of their stratum look into.

Joins compare words and need no dictionary. Comparisons and functors of symbols need the texts, wide numbers and floats
their patterns. Symbols that only stand in atoms are replaced by their words, so that most strata need no text at all.
Many texts go to tasks in files, in order; the driver writes what has come since.
"""

from __future__ import annotations

import os
import pickle
import sys
import sysconfig
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import Base, Constant, Expression, UserFunctor
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, remove
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum, Test
from elastalog.relations import records
from elastalog.relations.functions import LibraryFunction, OfRecords, Vectorised
from elastalog.relations.limits import WIDE
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS
from elastalog.syntax.tree import mapped, nodes_of

MOST_IN_A_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file with the texts of ids from `first` on, `count` of them."""

    path: str
    first: int
    count: int

    @property
    def last(self) -> int:
        """The id after those of the file."""
        return self.first + self.count

    def read(self) -> pa.ChunkedArray:
        """The texts."""
        with files_at(self.path).parquet(self.path) as opened:
            return opened.read().column(0)


class TextFiles:
    """The files of a dictionary, in a folder."""

    def __init__(self, folder: str, dictionary: Dictionary) -> None:
        self._folder = folder
        self._symbols = dictionary.symbols
        self._files: tuple[TextFile, ...] = ()

    def all(self) -> tuple[TextFile, ...]:
        """The files with all texts that there are now."""
        number = len(self._symbols)
        known = self._files[-1].last if self._files else 0
        if known < number:
            # One that is not full is written anew, so that they do not become many.
            kept = tuple(file for file in self._files if file.count == MOST_IN_A_FILE)
            first = kept[-1].last if kept else 0
            old = [file.path for file in self._files[len(kept) :]]
            starts = range(first, number, MOST_IN_A_FILE)
            self._files = (*kept, *(self._written(at, min(at + MOST_IN_A_FILE, number)) for at in starts))
            remove(old)
        return self._files

    def _written(self, first: int, last: int) -> TextFile:
        from pyarrow import parquet

        path = inside(self._folder, f"texts-{first}-{uuid.uuid4().hex[:12]}.parquet")
        with files_at(path).writing(path) as sink:
            parquet.write_table(pa.table({"text": self._symbols.array(first, last)}), sink, use_dictionary=False)
        return TextFile(path, first, last - first)


_TEXTUAL = (Base.SYMBOL, Base.RECORD)
"""The types of values that are made of texts."""


@dataclass(frozen=True, slots=True)
class MadeValues:
    """Values that a task has made: texts, and the patterns of numbers, in the order in which it has numbered them."""

    texts: tuple[str, ...]
    patterns: bytes


@dataclass(frozen=True, slots=True)
class Values:
    """The part of a dictionary that tasks are given: texts, or files of them, if tasks need any. `functions`: the
    functors of the user that they apply, pickled."""

    texts: tuple[str, ...]
    patterns: bytes
    functions: bytes | None = None
    wraps: bool = False
    files: tuple[TextFile, ...] = ()

    @staticmethod
    def of(
        dictionary: Dictionary, clauses: tuple[Clause, ...], files: TextFiles, *, are_needed: bool = False
    ) -> Values:
        """All wide numbers; and the texts, if they are needed or a clause looks into them. The constants of the clauses
        are among them."""
        for clause in clauses:
            for constant in nodes_of(Constant, (clause.head_terms, clause.goals)):
                dictionary.encode_value(constant.base, constant.value)
            for apply in clause.applications:
                if is_constructor(apply.functor):
                    dictionary.symbols.encode_one(records.shape_of(apply.functor, [a.base for a in apply.arguments]))
        are_needed = are_needed or any(map(_looks_into_texts, clauses))
        are_many = len(dictionary.symbols) > SETTINGS.spark_few_texts
        texts = dictionary.symbols.strings_from(0) if are_needed and not are_many else []
        written = files.all() if are_needed and are_many else ()
        functions = pickled_functions(clauses, dictionary.functions)
        return Values(tuple(texts), dictionary.wide.patterns_from(0).tobytes(), functions, dictionary.wraps, written)

    def dictionary(self) -> Dictionary:
        """A dictionary in which the words of the driver's have the same meaning."""
        made = Dictionary()
        made.symbols.extend(list(self.texts))
        for file in self.files:
            made.symbols.extend(file.read())
        made.wide.extend(np.frombuffer(self.patterns, np.int64))
        made.wraps = self.wraps
        if self.functions is not None:
            made.functions = pickle.loads(self.functions)
        return made

    @property
    def number_of_texts(self) -> int:
        """How many texts there are."""
        return self.files[-1].last if self.files else len(self.texts)

    @property
    def numbers(self) -> int:
        """How many wide numbers there are."""
        return len(self.patterns) // 8

    def is_outgrown_by(self, dictionary: Dictionary) -> bool:
        """Whether a task has made values that the driver's dictionary may not have."""
        return len(dictionary.symbols) > self.number_of_texts or len(dictionary.wide) > self.numbers

    def made_in(self, dictionary: Dictionary) -> MadeValues:
        """The values that a task has made."""
        texts = dictionary.symbols.strings_from(self.number_of_texts)
        return MadeValues(tuple(texts), dictionary.wide.patterns_from(self.numbers).tobytes())


def orders_texts(stratum: LogicalStratum, program: LogicalProgram) -> bool:
    """Whether facts of a stratum are sorted by their values, and texts are among these: choice domains, subsumption and
    the numbering of facts sort them."""
    ordered = [name for name in stratum.relations if stratum.dominance or program.relations[name].choices]
    if (rule := stratum.numbering) is not None:
        ordered.append(rule.members)
    return any(base in _TEXTUAL for name in ordered for base in program.relations[name].bases)


def may_agree(stratum: LogicalStratum) -> bool:
    """Whether tasks may agree on the numbers of the values that the clauses of a stratum make. They cannot for records,
    whose numbers are made of numbers."""
    return not any(is_constructor(apply.functor) for clause in stratum.clauses for apply in clause.applications)


def shows_numbers_of_texts(clause: Clause) -> bool:
    """Whether a clause computes with the numbers by which texts are known."""
    return any(apply.functor == "ord" for apply in clause.applications)


def as_word(constant: Constant, dictionary: Dictionary) -> Constant:
    """A constant that has the same word in every dictionary: of a symbol or a record, the number of its word."""
    if constant.base not in _TEXTUAL:
        return constant
    word = dictionary.encode_value(constant.base, constant.value)
    return replace(constant, value=word, base=Base.NUMBER) if word < WIDE else constant


def with_words(clause: Clause, dictionary: Dictionary) -> Clause:
    """The clause with the symbols and records in its atoms and head as the numbers of their words."""

    def word(node: Any) -> Any:
        return as_word(node, dictionary) if isinstance(node, Constant) else node

    goals = tuple(goal if isinstance(goal, Test) else mapped(goal, word) for goal in clause.goals)
    return replace(clause, head_terms=mapped(clause.head_terms, word), goals=goals)


def _looks_into_texts(clause: Clause) -> bool:
    tests = tuple([goal for goal in clause.goals if isinstance(goal, Test)])
    return any(isinstance(each, Expression) and each.base in _TEXTUAL for each in nodes_of(object, tests))


Functions = Mapping[str, Callable[..., Any]]

_LARGEST_LIBRARY = 16 << 20
"""Bytes of a library up to which it goes along with every job that needs it."""


def functors_in(clauses: Iterable[Clause]) -> set[str]:
    """The names of the functors of the user that clauses apply."""
    applied = (apply.functor for clause in clauses for apply in clause.applications)
    return {name[1:] for name in applied if name[0] == "@"}


def stays_here(clauses: Iterable[Clause], functions: Functions) -> str | None:
    """The functor that cannot be sent to tasks, since its library is too large or it cannot be pickled; None if all
    can."""
    names = sorted(name for name in functors_in(clauses) if name in functions)
    for name in names:
        function = functions[name]
        try:
            if isinstance(function, LibraryFunction) and os.path.getsize(function.path) > _LARGEST_LIBRARY:
                return name
            _pickled({name: function})
        except Exception:  # pickling runs whatever an object has for it
            return name
    return None


def pickled_functions(clauses: Iterable[Clause], functions: Functions) -> bytes | None:
    """The functions that clauses apply; None if they apply none."""
    used = {name: functions[name] for name in sorted(functors_in(clauses)) if name in functions}
    return _pickled(used) if used else None


def _pickled(functions: Functions) -> bytes:
    from pyspark import cloudpickle

    libraries = {name: _Sent(f) for name, f in functions.items() if isinstance(f, LibraryFunction)}
    others = {name: function for name, function in functions.items() if name not in libraries}
    with _by_value(others.values()):
        data: bytes = cloudpickle.dumps({**others, **libraries})
    return data


@dataclass(frozen=True, slots=True)
class _Sent:
    """A function of a C library, which arrives with the library."""

    function: LibraryFunction

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (Path(self.function.path).read_bytes(), self.function.functor)


def _received(library: bytes, functor: UserFunctor) -> LibraryFunction:
    return LibraryFunction(_kept(library), functor)


@lru_cache(maxsize=64)
def _kept(library: bytes) -> str:
    """The file of a library that has arrived, in a folder that only this user can read. It stays as long as other
    temporary files do: a process may load it at any time."""
    path = Path(tempfile.mkdtemp(prefix="elastalog-library-"), "library.so")
    path.write_bytes(library)
    return str(path)


@contextmanager
def _by_value(functions: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Within the block, functions of modules that are not installed are pickled with their code: workers could not
    import them."""
    from pyspark import cloudpickle

    plain = (function.function if isinstance(function, Vectorised | OfRecords) else function for function in functions)
    modules = {getattr(function, "__module__", None) for function in plain}
    registered = []
    for name in modules:
        module = sys.modules.get(name or "")
        if module is not None and name != "__main__" and not _is_installed(module):
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    paths = sysconfig.get_paths()
    return any(file.startswith(paths[kind]) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
