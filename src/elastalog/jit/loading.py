"""Machine code of operators in this process: found as object code and loaded, or made.

`ELASTALOG_JIT=numba` in the environment compiles every operator with numba when it is first called instead, and keeps
nothing. `ELASTALOG_JIT=checked`: see `intrinsics`.

Object code is made ready to run by a linker of our own: LLVM can do it, but takes longer to import than a small program
to run. Operators need little of what a linker does: one section of code, constants, a few words that can be written to,
calls among themselves, and the names of `PROCESS_SYMBOLS`. Whatever else an object file may hold makes `link` say None,
and LLVM does it. Where LLVM links all of them, `elastalog run` on a program of three facts takes 0.87 s of processor
time instead of 0.54 (Python 3.11, best of eight, by turns).
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from struct import Struct, error, unpack_from
from threading import RLock
from typing import Any

import numpy as np

from elastalog.jit import building, objects
from elastalog.jit.fingerprint import fingerprint
from elastalog.jit.operators import Operator

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
    if os.environ.get("ELASTALOG_JIT") == "numba":  # object code is neither used nor made
        return _compiled_here(operator)
    with _lock:
        print_ = fingerprint(operator)
        code = objects.find(operator.name, print_)
        if code is None and building.build_once(operator):
            code = objects.find(operator.name, print_)
        loaded = None if code is None or code.unfit else _load(operator, code)
        return loaded or _compiled_here(operator)


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


_SECTION = Struct("<IIQQQQIIQQ")
_Section = namedtuple("_Section", "name kind flags address start size linked info alignment entry")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_PROGRAM, _SYMBOLS, _RELOCATIONS, _EMPTY = 1, 2, 4, 8
_WRITTEN, _NEEDED = 0x1, 0x2  # flags of sections
_ABSOLUTE = 0xFFF1
_AARCH64, _X86_64 = 183, 62

_JUMPS = {
    # ldr x16, the address behind; br x16
    _AARCH64: bytes.fromhex("50000058 00021fd6"),
    # jmp [the address behind]
    _X86_64: bytes.fromhex("ff2502000000 9090"),
}
"""Instructions that go to the address behind them: what calls can reach is near, and the interpreter may be far."""

_STEP = 16
"""Bytes of such a jump and its address, and to what sections are aligned at least."""


def keep_for_ever(kept: object) -> None:
    """Keeps an object while the interpreter ends, too, when it drops modules and what they hold in an order of its own:
    operators are dropped, and threads may run, after what they consist of would be gone."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


class _Unknown(Exception):
    """The file holds something that this linker does not know."""


def link(code: bytes, entry: str, addresses: Mapping[str, int]) -> int | None:
    """Puts object code into memory; returns the address of its entry. `addresses`: of all names that it leaves open.
    None where this linker does not know how, or the system does not let it."""
    try:
        return _Linker(code, addresses).run(entry)
    except (_Unknown, OSError, error, LookupError, ValueError):
        return None


class _Linker:
    def __init__(self, code: bytes, addresses: Mapping[str, int]) -> None:
        if code[:6] != b"\x7fELF\x02\x01":  # 64 bits, the lowest first
            raise _Unknown
        self.code = code
        self.addresses = addresses
        (self.machine,) = unpack_from("<H", code, 18)
        self.jump = _JUMPS[self.machine]
        (headers,) = unpack_from("<Q", code, 40)
        size, number, names = unpack_from("<HHH", code, 58)
        self.sections = [_Section(*_SECTION.unpack_from(code, headers + i * size)) for i in range(number)]
        self.names = self.sections[names].start
        self.symbols = self._symbols()
        self.places: dict[int, int] = {}
        self.jumps: dict[int, int] = {}  # where the jump to an address is; eight bytes on lies the address itself
        self.image = bytearray()

    def _symbols(self) -> list[tuple[str, int, int]]:
        """Name, section and value of every symbol."""
        for section in self.sections:
            if section.kind == _SYMBOLS:
                names = self.sections[section.linked].start
                count = section.size // _SYMBOL.size
                listed = (_SYMBOL.unpack_from(self.code, section.start + i * _SYMBOL.size) for i in range(count))
                return [(self._text(names + name), home, value) for name, _, _, home, value, _ in listed]
        raise _Unknown

    def _text(self, start: int) -> str:
        return self.code[start : self.code.index(b"\0", start)].decode()

    def run(self, entry: str) -> int:
        """Code and constants can be read and run, not written to; what can be written to cannot be run."""
        code, data = self._layout()
        mapped = mmap.mmap(-1, code + data, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = int(np.frombuffer(mapped, np.uint8).ctypes.data)
        self._place(start, start + code)
        self._relocate(start)
        mapped[: len(self.image)] = bytes(self.image)
        home, value = {name: (home, value) for name, home, value in self.symbols}[entry]
        # The system lets processors forget what they have seen of pages that become code.
        if ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), ctypes.c_size_t(code), mmap.PROT_READ | mmap.PROT_EXEC):
            raise _Unknown
        keep_for_ever(mapped)
        return self.places[home] + value

    def _layout(self) -> tuple[int, int]:
        """Gives sections their places from 0 on, those that are written to apart. Returns the bytes of both parts."""
        code = data = 0
        for number, section in enumerate(self.sections):
            if not section.flags & _NEEDED or self._is_for_debuggers(section):
                continue
            if section.alignment > mmap.PAGESIZE:
                raise _Unknown
            step = max(section.alignment, _STEP)
            if section.kind == _EMPTY and section.flags & _WRITTEN:
                data += -data % step
                self.places[number] = data
                data += section.size
            elif section.kind == _PROGRAM and not section.flags & _WRITTEN:
                code += -code % step
                self.places[number] = code
                code += section.size
            else:
                raise _Unknown
        self.jumps_start = code + -code % _STEP
        code = self.jumps_start + _STEP * len(self.addresses)
        return code + -code % mmap.PAGESIZE, data

    def _is_for_debuggers(self, section: _Section) -> bool:
        """Frames of exceptions, which operators do not raise. They name the code; the code does not name them."""
        return section.kind in (_PROGRAM, 0x70000001) and self._text(self.names + section.name) == ".eh_frame"

    def _place(self, code: int, data: int) -> None:
        """Copies sections to their places, whose addresses are known now."""
        self.image = bytearray(self.jumps_start)
        for number, place in self.places.items():
            section = self.sections[number]
            if section.kind == _EMPTY:
                self.places[number] = data + place
            else:
                self.image[place : place + section.size] = self.code[section.start : section.start + section.size]
                self.places[number] = code + place
        for number, address in enumerate(self.addresses.values()):
            self.jumps[address] = code + self.jumps_start + number * _STEP
            self.image += self.jump + address.to_bytes(8, "little")

    def _relocate(self, start: int) -> None:
        apply = {_AARCH64: _relocate_aarch64, _X86_64: _relocate_x86_64}[self.machine]
        for section in self.sections:
            if section.info not in self.places or section.kind != _RELOCATIONS:
                continue
            base = self.places[section.info]
            for at in range(section.start, section.start + section.size, _RELOCATION.size):
                offset, info, added = _RELOCATION.unpack_from(self.code, at)
                address = self._value(info >> 32)
                apply(self.image, base + offset - start, base + offset, info & 0xFFFFFFFF, address + added, self.jumps)

    def _value(self, number: int) -> int:
        name, home, value = self.symbols[number]
        if home == _ABSOLUTE:
            return value
        return self.places[home] + value if home else self.addresses[name]


def _relocate_aarch64(image: bytearray, at: int, place: int, kind: int, value: int, jumps: dict[int, int]) -> None:
    (step,) = unpack_from("<I", image, at)
    match kind:
        case 264 | 266 | 268 | 269:  # MOVW_UABS_G0_NC to G3: sixteen bits of the address
            step = step & ~(0xFFFF << 5) | ((value >> {264: 0, 266: 16, 268: 32, 269: 48}[kind]) & 0xFFFF) << 5
        case 282 | 283:  # JUMP26, CALL26
            distance = jumps.get(value, value) - place
            if not -(1 << 27) <= distance < 1 << 27:
                raise _Unknown
            step = step & ~0x3FFFFFF | (distance >> 2) & 0x3FFFFFF
        case 311:  # ADR_GOT_PAGE: the page of the address's own place
            pages = (jumps[value] + 8 >> 12) - (place >> 12)
            step = step & ~(3 << 29 | 0x7FFFF << 5) | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        case 312:  # LD64_GOT_LO12_NC: its place in that page
            step = step & ~(0xFFF << 10) | ((jumps[value] + 8 & 0xFFF) >> 3) << 10
        case _:
            raise _Unknown
    image[at : at + 4] = step.to_bytes(4, "little")


def _relocate_x86_64(image: bytearray, at: int, place: int, kind: int, value: int, jumps: dict[int, int]) -> None:
    match kind:
        case 1:  # 64: the address
            image[at : at + 8] = (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
        case _:
            raise _Unknown


OBJECTS = {
    "elastalog_ndarray": np.ndarray,
    "elastalog_None": None,
    "elastalog_RuntimeError": RuntimeError,
    "elastalog_TypeError": TypeError,
}
"""Objects that the entries use, under names of our own: numba has other ideas of what `PyExc_TypeError` is."""

PYTHON_SYMBOLS = (
    "PyBool_FromLong", "PyErr_Occurred", "PyErr_SetString", "PyEval_RestoreThread", "PyEval_SaveThread",
    "PyLong_AsLongLong", "PyLong_FromLongLong", "PyObject_IsTrue", "PyType_IsSubtype", "Py_IncRef",
)  # fmt: skip
"""What the entries use of the interpreter."""

LIBRARY_SYMBOLS = ("memcpy", "memmove", "memset", "pow", "fmod")
"""What operators may use of the C library."""

SYSTEM_SYMBOLS = ("syscall", "sched_yield")
"""How threads that wait reach the system."""

PROCESS_SYMBOLS = frozenset((*OBJECTS, *PYTHON_SYMBOLS, *LIBRARY_SYMBOLS, *SYSTEM_SYMBOLS))
"""Object code that wants anything else is refused when it is made."""
