"""Machine code of operators in this process: found as object code and loaded, or made.

`ELASTALOG_JIT=numba` in the environment compiles every operator with numba when it is first called instead, and keeps
nothing.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any

from elastalog.jit import building, objects
from elastalog.jit.fingerprint import fingerprint
from elastalog.jit.operators import Operator
from elastalog.jit.symbols import OBJECTS, PYTHON_SYMBOLS

_FAST_CALL = 0x80  # METH_FASTCALL: an array of arguments and its length
_lock = RLock()


class _Method(ctypes.Structure):
    """PyMethodDef: how the interpreter is told of a function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_methods: list[_Method] = []
"""The interpreter refers to them for as long as it runs."""


def machine_code(operator: Operator) -> Callable[..., Any]:
    """What calls the operator's machine code."""
    if is_numba_wanted():
        return _compiled_here(operator)
    with _lock:
        print_ = fingerprint(operator)
        code = objects.find(operator.name, print_)
        if code is None and building.build_once(operator):
            code = objects.find(operator.name, print_)
        if code is None or code.unfit or not _is_complete(code):
            return _compiled_here(operator)
        return _load(operator, code)


def is_numba_wanted() -> bool:
    """Whether object code is neither used nor made."""
    return os.environ.get("ELASTALOG_JIT") == "numba"


def _compiled_here(operator: Operator) -> Callable[..., Any]:
    from elastalog.jit.lowering import compiled_here

    return compiled_here(operator)


def _is_complete(code: objects.ObjectCode) -> bool:
    """Whether this process has everything that the code wants; LLVM would end it otherwise."""
    from llvmlite import binding

    _engine()
    return all(binding.address_of_symbol(name) for name in code.wanted)


def _load(operator: Operator, code: objects.ObjectCode) -> Callable[..., Any]:
    from llvmlite import binding

    engine = _engine()
    engine.add_object_file(binding.ObjectFileRef.from_data(code.code))
    engine.finalize_object()
    method = _Method(operator.function.__name__.encode(), engine.get_function_address(code.entry), _FAST_CALL, None)
    _methods.append(method)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    made: Callable[..., Any] = new(ctypes.addressof(method), None, None)
    return made


@cache
def _engine() -> Any:
    """What loads object code into this process. It knows what the interpreter and numpy have to offer, even where their
    names are hidden from a process that embeds them."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for name in PYTHON_SYMBOLS:
        binding.add_symbol(name, ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name)))
    for name, value in OBJECTS.items():
        binding.add_symbol(name, id(value))
    machine = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


__all__ = ["is_numba_wanted", "machine_code"]
