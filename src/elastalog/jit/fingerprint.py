"""What an operator is compiled from, as a short text: object code is used by operators with the same fingerprint only.

It covers the code of the operator and of all pieces it reaches, the constants they refer to, the signature, and the
sources of what compiles them; not comments, nor other operators of the same file. So a change makes just those
operators be compiled again that it concerns.
"""

from __future__ import annotations

import enum
import opcode
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from elastalog.jit import types
from elastalog.jit.checking import are_checked
from elastalog.jit.operators import Intrinsic, Operator, Piece

_COMPILER = ("checking.py", "entry.py", "intrinsics.py", "lowering.py")
"""Sources that decide what becomes of an operator, beside its own."""

LOAD_GLOBAL, EXTENDED_ARG = opcode.opmap["LOAD_GLOBAL"], opcode.opmap["EXTENDED_ARG"]

_PLAIN = (bool, int, float, str, bytes, type(None), type(...))


def fingerprint(operator: Operator) -> str:
    """Of what the operator is now, in this version of Python (which decides about its bytecode)."""
    digest = blake2b(_compiler_digest(), digest_size=12)
    for described in (operator.result, *operator.arguments):
        digest.update(f"{described.name};".encode())
    digest.update(_digest_of_function(operator.function))
    return digest.hexdigest()


def reach(operator: Operator) -> int:
    """How much there is to compile, roughly: bytes of bytecode in the operator and all pieces it reaches."""
    seen: set[int] = set()
    waiting: list[Any] = [operator.function]
    size = 0
    while waiting:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        size += len(function.__code__.co_code)
        waiting.extend(value.function for value in _values_of(function) if isinstance(value, Piece | Intrinsic))
    return size


@cache
def globals_of(function: FunctionType) -> list[str]:
    """The names of globals that a function, or one inside it, refers to. An attribute may have the name of one."""
    return [name for name in dict.fromkeys(_loaded_by(function.__code__)) if name in function.__globals__]


def _loaded_by(code: CodeType) -> Iterator[str]:
    # Two bytes an instruction; `dis` says the same, but works out a good deal more.
    argument = 0
    for step, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = argument << 8 | low
        if step == LOAD_GLOBAL:
            yield code.co_names[argument >> 1]  # the last bit says how the interpreter calls
        if step != EXTENDED_ARG:
            argument = 0
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded_by(constant)


def names_in(code: CodeType) -> Iterator[str]:
    """All names in a piece of code that are not those of its variables, some of them repeatedly."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def _values_of(function: FunctionType) -> Iterator[Any]:
    for name in globals_of(function):
        yield function.__globals__[name]
    for cell in function.__closure__ or ():
        yield cell.cell_contents


@cache
def _compiler_digest() -> bytes:
    checked = "checked" if are_checked() else ""
    digest = blake2b(f"{sys.implementation.cache_tag} numpy {np.__version__.split('.')[0]}{checked}\n".encode())
    folder = os.path.dirname(__file__)
    for name in _COMPILER:
        # The loader reads from an archive, too.
        digest.update(__loader__.get_data(os.path.join(folder, name)))  # type: ignore[name-defined]
    return digest.digest()


@cache
def _digest_of_function(function: Callable[..., Any]) -> bytes:
    assert isinstance(function, FunctionType)
    digest = blake2b(digest_size=16)
    for part in _parts_of_code(function.__code__):
        digest.update(part)
    for default in function.__defaults__ or ():
        digest.update(b"default " + _digest_of_value(default, function))
    for name, value in zip(globals_of(function), _values_of(function), strict=False):
        digest.update(name.encode() + b"=" + _digest_of_value(value, function))
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        digest.update(name.encode() + b"~" + _digest_of_value(cell.cell_contents, function))
    return digest.digest()


def _parts_of_code(code: CodeType) -> Iterator[bytes]:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount)
    yield repr(names).encode()
    yield code.co_code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts_of_code(constant)
        elif not isinstance(constant, str):  # docstrings and annotations; operators compute with numbers
            yield repr(constant).encode()


def _digest_of_value(value: Any, user: FunctionType) -> bytes:
    """Of what compiled code can see of a value. What numba cannot compile anyway counts with its type alone: it is an
    attribute that has the name of a global."""
    match value:
        case Piece():
            return f"piece {value.is_inlined} {value.is_view} ".encode() + _digest_of_function(value.function)
        case Intrinsic():
            return b"intrinsic " + _digest_of_function(value.function)
        case FunctionType() if value.__closure__ is not None:  # made by a function that makes intrinsics
            return b"function " + _digest_of_function(value)
        case types.Scalar() | types.Record() | types.Array():
            return f"type {value.name}".encode()
        case enum.Enum() | np.generic():
            return f"{type(value).__qualname__} {value!r}".encode()
        case tuple() | frozenset():
            return b"(" + b",".join(_digest_of_value(each, user) for each in value) + b")"
        case np.ndarray():
            return f"array {value.dtype.descr} {value.shape} ".encode() + blake2b(value.tobytes()).digest()
        case np.dtype():
            return f"dtype {value.descr} {value.itemsize}".encode()
        case ModuleType() if value.__name__.startswith("elastalog."):
            names = (name for name in dict.fromkeys(names_in(user.__code__)) if hasattr(value, name))
            parts = (name.encode() + b"." + _digest_of_value(getattr(value, name), user) for name in names)
            return b"module " + b",".join(parts)
        case ModuleType() | BuiltinFunctionType():
            return f"{type(value).__name__} {value.__name__}".encode()
        case type() if issubclass(value, enum.Enum):
            return f"enum {list(value)!r}".encode()
        case type():
            return f"class {value.__module__}.{value.__qualname__}".encode()
        case _ if isinstance(value, _PLAIN):
            return repr(value).encode()
        case _:
            return f"some {type(value).__qualname__}".encode()


__all__ = ["fingerprint", "globals_of", "names_in", "reach"]
