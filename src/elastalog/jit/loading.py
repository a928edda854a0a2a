"""Machine code of operators in this process: found as object code and loaded, or made.

`ELASTALOG_JIT=numba` in the environment compiles every operator with numba when it is first called instead, and keeps
nothing. `ELASTALOG_JIT=checked` compiles operators that look at every index before they use it: one outside its array
ends the process at once (SIGILL), instead of reading or writing what lies there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from threading import RLock
from typing import Any

from elastalog.jit import building, objects
from elastalog.jit.fingerprint import fingerprint
from elastalog.jit.linking import keep_for_ever, link
from elastalog.jit.operators import Operator
from elastalog.jit.symbols import LIBRARY_SYMBOLS, OBJECTS, PYTHON_SYMBOLS

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


def machine_code(operator: Operator) -> Callable[..., Any]:
    """What calls the operator's machine code."""
    if is_numba_wanted():
        return _compiled_here(operator)
    with _lock:
        print_ = fingerprint(operator)
        code = objects.find(operator.name, print_)
        if code is None and building.build_once(operator):
            code = objects.find(operator.name, print_)
        loaded = None if code is None or code.unfit else _load(operator, code)
        return loaded or _compiled_here(operator)


def is_numba_wanted() -> bool:
    """Whether object code is neither used nor made."""
    return os.environ.get("ELASTALOG_JIT") == "numba"


def _compiled_here(operator: Operator) -> Callable[..., Any]:
    objects.require_compiler()
    from elastalog.jit.lowering import compiled_here

    return compiled_here(operator)


def _load(operator: Operator, code: objects.ObjectCode) -> Callable[..., Any] | None:
    """None if the code wants something that this process does not have; LLVM would end it."""
    addresses = _addresses(code.wanted)
    if addresses is None:
        return None
    address = link(code.code, code.entry, addresses) or _linked_by_llvm(code, addresses)
    method = _Method(operator.function.__name__.encode(), address, _FAST_CALL, None)
    keep_for_ever(method)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    made: Callable[..., Any] = new(ctypes.addressof(method), None, None)
    return made


def _addresses(wanted: Sequence[str]) -> dict[str, int] | None:
    """Where this process has what object code wants; None if something is not there. What the interpreter has to offer
    is found even where its names are hidden from a process that embeds it."""
    found: dict[str, int] = {}
    for name in (*wanted, *LIBRARY_SYMBOLS):  # of these LLVM makes use as it sees fit
        try:
            home = ctypes.pythonapi if name in PYTHON_SYMBOLS else _process()
            is_ours = name in OBJECTS
            found[name] = id(OBJECTS[name]) if is_ours else ctypes.addressof(ctypes.c_char.in_dll(home, name))
        except ValueError:
            return None
    return found


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _linked_by_llvm(code: objects.ObjectCode, addresses: dict[str, int]) -> int:
    objects.require_compiler()
    from llvmlite import binding

    engine = _engine()
    for name, address in addresses.items():
        binding.add_symbol(name, address)
    engine.add_object_file(binding.ObjectFileRef.from_data(code.code))
    engine.finalize_object()
    return int(engine.get_function_address(code.entry))


@cache
def _engine() -> Any:
    """What loads object code into this process, where we cannot do it ourselves."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
