"""What an operator is compiled from, as a short text: object code is used by operators with the same fingerprint only.

It covers the texts of the operator and of all pieces it reaches, the constants they refer to, the signature, and
the modules that compile them; not comments, nor other operators of the same file, nor the version of Python. So a
change makes just those operators be compiled again that it concerns, and a wheel fits all versions of Python.

A function counts as it was written, but for what a compiler does not see: bytecode is another one in every version of
Python.
"""

from __future__ import annotations

import enum
import opcode
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from elastalog.jit import types
from elastalog.jit.intrinsics import are_checked
from elastalog.jit.operators import Intrinsic, Operator, Piece

_COMPILER = ("entry", "intrinsics", "lowering")
"""Modules that decide what becomes of an operator, beside its own."""

LOAD_GLOBAL, EXTENDED_ARG = opcode.opmap["LOAD_GLOBAL"], opcode.opmap["EXTENDED_ARG"]

_LINE_END = re.compile(r"\n")
_DEFINITION = re.compile(r"^( *)def ", re.MULTILINE)
_UNSEEN = re.compile(r'\n *(?:"""(?s:.*?)"""|#[^\n]*|(?=\n))')
"""Docstrings, comments that stand by themselves, and empty lines."""


_PLAIN = (bool, int, float, str, bytes, type(None), type(...))


def fingerprint(operator: Operator) -> str:
    """The fingerprint of an operator as it is now."""
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
    # Without the interpreter's lock (`t`), objects begin otherwise.
    about = ["checked" if are_checked() else "", "t" if "t" in getattr(sys, "abiflags", "") else ""]
    folder = os.path.dirname(__file__)
    texts = [_source(os.path.join(folder, f"{name}.py"), __loader__)[0] for name in _COMPILER]  # type: ignore[name-defined]
    return _UNSEEN.sub("", ";".join((*about, *texts))).encode()


@cache
def _source(file: str, loader: Any) -> tuple[str, list[int]]:
    """The text of a module, and where its lines begin."""
    text: str = loader.get_data(file).decode()  # from an archive, too
    return text, [0, *(end.end() for end in _LINE_END.finditer(text))]


def _text_of(function: FunctionType) -> str:
    """A function as it was written, without its decorators: all up to the next line that is not indented further."""
    space = function.__globals__
    text, lines = _source(space["__file__"], space["__loader__"])
    head = _DEFINITION.search(text, lines[function.__code__.co_firstlineno - 1])
    assert head is not None
    after = re.compile(rf"^(?!{head[1]}[ )]|\n)", re.MULTILINE).search(text, head.end())
    return _UNSEEN.sub("", text[head.start() : after and after.start()])


@cache
def _digest_of_function(function: Callable[..., Any]) -> bytes:
    assert isinstance(function, FunctionType)
    digest = blake2b(_text_of(function).encode(), digest_size=16)
    for default in function.__defaults__ or ():
        digest.update(b"default " + _digest_of_value(default, function))
    # Sorted, since their order depends on the version of Python.
    for name in sorted(globals_of(function)):
        digest.update(name.encode() + b"=" + _digest_of_value(function.__globals__[name], function))
    for name, cell in sorted(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)):
        digest.update(name.encode() + b"~" + _digest_of_value(cell.cell_contents, function))
    return digest.digest()


def _digest_of_value(value: Any, user: FunctionType) -> bytes:
    """The digest of what compiled code can see of a value. What numba cannot compile anyway counts with its type alone:
    it is an attribute that has the name of a global."""
    match value:
        case Piece():
            return f"piece {value.is_inlined} {value.is_view} ".encode() + _digest_of_function(value.function)
        case Intrinsic():
            return b"intrinsic " + _digest_of_function(value.function)
        case FunctionType() if value.__closure__ is not None or value.__module__ == user.__module__:
            return b"function " + _digest_of_function(value)
        case types.Scalar() | types.Record() | types.Array():
            return f"type {value.name}".encode()
        case enum.Enum():
            return f"{type(value).__qualname__}.{value.name} {value.value!r}".encode()
        case np.generic():
            return f"{value.dtype.str} {value.item()!r}".encode()
        case tuple() | frozenset():
            return b"(" + b",".join(_digest_of_value(each, user) for each in value) + b")"
        case np.ndarray():
            return f"array {value.dtype.descr} {value.shape} ".encode() + blake2b(value.tobytes()).digest()
        case np.dtype():
            return f"dtype {value.descr} {value.itemsize}".encode()
        case ModuleType() if value.__name__.startswith("elastalog."):
            names = (name for name in sorted(set(names_in(user.__code__))) if hasattr(value, name))
            parts = (name.encode() + b"." + _digest_of_value(getattr(value, name), user) for name in names)
            return b"module " + b",".join(parts)
        case ModuleType() | BuiltinFunctionType():
            return f"{type(value).__name__} {value.__name__}".encode()
        case type() if issubclass(value, tuple):
            return f"tuple {getattr(value, '_fields', ())!r}".encode()
        case type() if issubclass(value, enum.Enum):
            return f"enum {[(each.name, each.value) for each in value]!r}".encode()
        case type():
            return f"class {value.__module__}.{value.__qualname__}".encode()
        case _ if isinstance(value, _PLAIN):
            return repr(value).encode()
        case _:
            return f"some {type(value).__qualname__}".encode()
