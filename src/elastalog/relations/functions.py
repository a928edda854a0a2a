"""Functions of users, as `.functor` declares them and `elastalog.open(functors=…)` gives them.

A function is pure by contract: the same arguments give the same result, in any order and in any process. `None` means
that it has no value for its arguments; the instantiation then fails, as a division by zero does.

Functions of C libraries follow the convention of Soufflé with 64 bits: `number` is `int64_t`, `unsigned` `uint64_t`,
`float` `double`, `symbol` `const char *` in UTF-8, and functions have C linkage. A library is code that runs in this
process, with all its rights: one is loaded only where the caller names its file.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias

from elastalog.analysis.program import Base, CheckedProgram, UserFunctor, Value
from elastalog.analysis.values import Structured, public_value
from elastalog.diagnostics.arguments import require_place, wrong_kind
from elastalog.diagnostics.diagnostic import ElastalogError, Label, error
from elastalog.diagnostics.source import Source
from elastalog.late import dataclass
from elastalog.relations.records import RecordType
from elastalog.relations.rows import plain_value, value_fault
from elastalog.relations.schema import Column

Functions: TypeAlias = Mapping[str, Callable[..., Any]]
"""By the name of the functor, without `@`."""


@dataclass(frozen=True, slots=True)
class Vectorised:
    """A function over Arrow arrays, one for each argument, that gives an array of as many results."""

    function: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def vectorised(function: Callable[..., Any]) -> Vectorised:
    """Marks a function for `functors=` that takes and gives whole Arrow arrays instead of single values."""
    return Vectorised(function)


@dataclass(frozen=True, slots=True)
class OfRecords:
    """A function that takes or gives records as Python has them: tuples, `None` for nil, and `Branch`es. `result`: the
    type of what it gives, if that is a record."""

    function: Callable[..., Any]
    result: RecordType | None

    def __call__(self, *arguments: Any) -> Any:
        value = self.function(*map(public_value, arguments))
        return value if self.result is None else self.result.typed(value)


def with_records(program: CheckedProgram, given: Functions) -> dict[str, Callable[..., Any]]:
    """The functions, those of records such that they take and give what facts hold."""
    found = dict(given)
    for name, functor in program.functors.items():
        function = found.get(name)
        if function is None or not functor.has_records or isinstance(function, OfRecords):
            continue
        if isinstance(function, Vectorised):
            raise wrong_kind(f"functor `@{name}` is a function of single values", function, "records come one by one")
        result = RecordType(functor.result_type, program.structures) if functor.result is Base.RECORD else None
        found[name] = OfRecords(function, result)
    return found


def result_of(base: Base, function: Callable[..., Any], arguments: tuple[Value, ...]) -> Value | None:
    """The value of a functor for some arguments. Raises BadFunction if the function raises an exception, or gives a
    value of another type."""
    try:
        if isinstance(function, Vectorised):
            import pyarrow as pa

            (value,) = _listed(function(*(pa.array([argument]) for argument in arguments)))
        else:
            value = function(*arguments)
    except Exception as error:
        raise BadFunction(f"raised {type(error).__name__}: {error}", arguments) from error
    return checked(base, value, arguments)


class BadFunction(Exception):
    """A function did not give a value; the arguments for which it did not."""

    def __init__(self, reason: str, arguments: tuple[Any, ...]) -> None:
        super().__init__(reason)
        self.arguments = arguments


def checked(base: Base, value: Any, arguments: tuple[Any, ...]) -> Value | None:
    """A result as a value of a base type, None if there is none. Raises BadFunction."""
    if value is None or isinstance(value, Structured):
        return None if value is None or base is not Base.RECORD else value
    fault = value_fault(Column("its result", base), value)
    if fault is not None:
        raise BadFunction(f"gave {value!r}, which is no {base.value}", arguments)
    return plain_value(base, value)


def _listed(array: Any) -> list[Any]:
    if hasattr(array, "to_pylist"):
        return list(array.to_pylist())
    return list(array.tolist() if hasattr(array, "tolist") else array)


def results_of(
    functor: UserFunctor, function: Vectorised, columns: list[list[Value]], arrays: list[Any], count: int
) -> list[Value | None]:
    """The values of a functor over arrays, for rows whose arguments are also given as lists."""
    shown = tuple(column[0] for column in columns) if count else ()
    try:
        values = _listed(function(*arrays))
    except Exception as error:
        raise BadFunction(f"raised {type(error).__name__}: {error}", shown) from error
    if len(values) != count:
        raise BadFunction(f"gave {len(values)} results for {count} rows", shown)
    return [checked(functor.result, value, tuple(c[i] for c in columns)) for i, value in enumerate(values)]


# --- what a program needs ------------------------------------------------------------------------------------------


def functions_for(
    program: CheckedProgram, given: Functions | None, *, may_lack: bool = False
) -> dict[str, Callable[..., Any]]:
    """The functions that a program uses. Raises an error for one that is not a function, and for a missing one unless
    some `may_lack`.

    To Soufflé, `stateful` says that a function is given its tables of texts and records. In Python it has no need of
    them; to a library in C they cannot be given here.
    """
    if given is not None and not isinstance(given, Mapping):
        raise wrong_kind("`functors` is a mapping", given, 'give functions by name: `{"f": f}`')
    given = given or {}
    found: dict[str, Callable[..., Any]] = {}
    for name, functor in program.functors.items():
        label = Label(functor.span, "declared here")
        function = given.get(name)
        if function is None:
            # A lattice that no relation has may name it, too: some rule must.
            is_named = re.search(rf"@{name}\b", program.source.text) is not None
            if may_lack or not is_named or f"'@{name}'" not in repr((program.rules, program.subsumptions)):
                continue
            raise missing(name, label, program.source, is_stateful=functor.is_stateful)
        if not callable(function):
            raise wrong_kind(f"functor `@{name}` is a function", function, "give a function, or `vectorised(function)`")
        found[name] = function
    return found


def missing(name: str, label: Label, source: Source, *, is_stateful: bool = False) -> ElastalogError:
    """The error that a functor has no function."""
    return error("E0642" if is_stateful else "E0641", label, source=source, name=name)


def digests_of(program: CheckedProgram, functions: Functions) -> dict[str, str]:
    """The signature of every functor, with a digest of its source: what a store remembers."""
    return {
        name: f"{functor.signature} {_digest(functions[name])}"
        for name, functor in program.functors.items()
        if name in functions
    }


def _digest(function: Any) -> str:
    if isinstance(function, Vectorised):
        return "vectorised " + _digest(function.function)
    if isinstance(function, OfRecords):
        return _digest(function.function)
    if isinstance(function, LibraryFunction):
        return f"library {function.digest}"
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", repr(type(function)))
        text = f"{module}.{name}" if code is None else repr((code.co_code, code.co_consts, code.co_names))
    return sha256(text.encode()).hexdigest()


_TYPES: Final = {
    Base.NUMBER: ctypes.c_int64,
    Base.UNSIGNED: ctypes.c_uint64,
    Base.FLOAT: ctypes.c_double,
    Base.SYMBOL: ctypes.c_char_p,
}


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of a library, which is loaded in whatever process calls it."""

    path: str
    functor: UserFunctor

    def __call__(self, *arguments: Any) -> Any:
        result = _loaded(self.path, self.functor)(*(_given(argument) for argument in arguments))
        if self.functor.result is not Base.SYMBOL:
            return result
        return None if result is None else result.decode()

    @property
    def digest(self) -> str:
        """The digest of the whole library: what a store remembers of its functions."""
        return sha256(Path(self.path).read_bytes()).hexdigest()


def library_functions(
    program: CheckedProgram, libraries: Iterable[str | os.PathLike[str]]
) -> dict[str, LibraryFunction]:
    """The functions that a program declares and that libraries have, each from the first that has it. Raises
    ElastalogError for a library that cannot be loaded."""
    found: dict[str, LibraryFunction] = {}
    for library in libraries:
        require_place("a library is a file", library, "give its path")
        path = os.path.abspath(library)
        opened = _library(path)
        for name, functor in program.functors.items():
            if name not in found and not functor.is_stateful and hasattr(opened, name):
                found[name] = LibraryFunction(path, functor)
    return found


@lru_cache(maxsize=64)
def _library(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path)
    except OSError as fault:
        raise error("E0670", path=path, reason=fault) from None


@lru_cache(maxsize=1024)
def _loaded(path: str, functor: UserFunctor) -> Any:
    function = getattr(_library(path), functor.name)
    function.argtypes = [_TYPES[base] for base in functor.parameters]
    function.restype = _TYPES[functor.result]
    return function


def _given(argument: Any) -> Any:
    if not isinstance(argument, str):
        return argument
    if "\0" in argument:
        raise ValueError("a text with a null character cannot be given to C")
    return argument.encode()
