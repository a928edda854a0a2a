"""Functions of C libraries for `.functor`, by the convention of Soufflé with 64 bits: `number` is `int64_t`, `unsigned`
`uint64_t`, `float` `double`, `symbol` `const char *` in UTF-8, and functions have C linkage.

A library is code that runs in this process, with all its rights: one is loaded only where the caller names its file.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from elastalog.analysis.program import Base, CheckedProgram, UserFunctor
from elastalog.diagnostics.arguments import require_place
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.late import dataclass

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
        """Of the whole library: what a store remembers of its functions."""
        return sha256(Path(self.path).read_bytes()).hexdigest()


def library_functions(
    program: CheckedProgram, libraries: Iterable[str | os.PathLike[str]]
) -> dict[str, LibraryFunction]:
    """The functions that a program declares and that libraries have; of several the first has it. Raises ElastalogError
    for a library that cannot be loaded."""
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
    except OSError as error:
        message = f"library `{path}` cannot be loaded: {error}"
        advice = "give a shared library for this machine; on the command line `-L DIR -l NAME` means DIR/libNAME.so"
        raise ElastalogError([Diagnostic("E0670", message, help=advice)]) from None


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
