"""Functions of users on their way to tasks."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from elastalog.planning.logical import Clause
from elastalog.relations.functions import Vectorised
from elastalog.relations.libraries import LibraryFunction

Functions = Mapping[str, Callable[..., Any]]


def functors_in(clauses: Iterable[Clause]) -> set[str]:
    """The names of the functors of the user that clauses apply."""
    applied = (apply.functor for clause in clauses for apply in clause.applications)
    return {name[1:] for name in applied if name[0] == "@"}


def stays_here(clauses: Iterable[Clause], functions: Functions) -> str | None:
    """The functor that cannot go to tasks, None if all can: one of a C library, whose file is on this machine, and one
    that cannot be pickled."""
    names = sorted(name for name in functors_in(clauses) if name in functions)
    for name in names:
        function = functions[name]
        if isinstance(function, LibraryFunction):
            return name
        try:
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

    with _by_value(functions.values()):
        data: bytes = cloudpickle.dumps(dict(functions))
    return data


@contextmanager
def _by_value(functions: Iterable[Callable[..., Any]]) -> Iterator[None]:
    """Within the block, functions of modules that are not installed are pickled with their code: workers could not
    import them."""
    from pyspark import cloudpickle

    plain = (function.function if isinstance(function, Vectorised) else function for function in functions)
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
