"""Functions of users on their way to tasks."""

from __future__ import annotations

import os
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from elastalog.analysis.program import UserFunctor
from elastalog.planning.logical import Clause
from elastalog.relations.functions import LibraryFunction, OfRecords, Vectorised

Functions = Mapping[str, Callable[..., Any]]

_LARGEST_LIBRARY = 16 << 20
"""Bytes of a library up to which it goes along with every job that needs it."""


def functors_in(clauses: Iterable[Clause]) -> set[str]:
    """The names of the functors of the user that clauses apply."""
    applied = (apply.functor for clause in clauses for apply in clause.applications)
    return {name[1:] for name in applied if name[0] == "@"}


def stays_here(clauses: Iterable[Clause], functions: Functions) -> str | None:
    """The functor that cannot go to tasks, None if all can: one of a large library, and one that cannot be pickled."""
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
