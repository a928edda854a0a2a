"""How Python calls an operator: a function for the interpreter, generated beside the operator's machine code.

It is what `METH_FASTCALL` asks for: (self, arguments, their number) in, an object out. Every argument is checked, since
a wrong one would corrupt memory: that arrays are arrays, of the right elements, dimension, byte order and contiguity,
and may be written to. Data and shape are read from the array itself, whose layout is part of numpy's binary interface;
then the interpreter's lock is released for the operator. All of this takes a few nanoseconds an argument.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llvmlite import ir

from elastalog.jit import types
from elastalog.jit.intrinsics import array_of
from elastalog.jit.operators import Operator

# Where the fields of an array lie: PyArrayObject_fields and PyArray_Descr of numpy 2 and later.
_TYPE, _DATA, _DIMENSION, _LENGTHS, _DESCRIPTION, _FLAGS = 8, 16, 24, 32, 56, 64
_BYTE_ORDER, _NUMBER, _SIZE = 26, 28, 40
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_SWAPPED = ord(">" if sys.byteorder == "little" else "<")

_INT8, _INT32, _INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BIT = ir.IntType(1)
_OBJECT = _INT8.as_pointer()


def make_entry(operator: Operator, described: Any, context: Any) -> tuple[str, str]:
    """The name of an operator's entry, and its code in LLVM's language. `described` is numba's description of the
    compiled function, `context` its target context."""
    module = ir.Module(f"entry of {operator.name}")
    module.triple = context.codegen()._create_empty_module("").triple
    module.data_layout = context.codegen()._data_layout
    name = f"elastalog_{operator.name.replace('.', '_')}"
    entry = ir.Function(module, ir.FunctionType(_OBJECT, [_OBJECT, _OBJECT.as_pointer(), _INT64]), name)
    _Entry(operator, described, context, entry).write()
    return name, str(module)


class _Entry:
    """Writes one entry."""

    def __init__(self, operator: Operator, described: Any, context: Any, entry: Any) -> None:
        self.operator = operator
        self.described = described
        self.context = context
        self.module = entry.module
        self.entry = entry
        self.builder = ir.IRBuilder(entry.append_basic_block("begin"))
        self.texts = 0

    def write(self) -> None:
        builder, context = self.builder, self.context
        kinds = self.operator.arguments
        short = self.operator.function.__qualname__
        _, given, number = self.entry.args
        right = builder.icmp_signed("==", number, ir.Constant(_INT64, len(kinds)))
        self._require(right, "elastalog_TypeError", f"{short} takes {len(kinds)} arguments")
        values = []
        for i, (kind, typed) in enumerate(zip(kinds, self.described.argtypes, strict=True)):
            value = builder.load(builder.gep(given, [ir.Constant(_INT64, i)]))
            if isinstance(kind, types.Array):
                values.append(self._array(value, kind, typed, f"{short}: argument {i + 1} is no {kind.name}"))
            else:
                values.append(self._scalar(value, kind))
        native = context.declare_function(self.module, self.described)
        thread = builder.call(self._python("PyEval_SaveThread", _OBJECT), [])
        status, result = context.call_conv.call_function(
            builder, native, self.described.restype, self.described.argtypes, values
        )
        builder.call(self._python("PyEval_RestoreThread", ir.VoidType(), _OBJECT), [thread])
        self._require(builder.not_(status.is_error), "elastalog_RuntimeError", f"{short} failed")
        builder.ret(self._result(result))

    def _require(self, condition: Any, kind: str, message: str) -> None:
        """Raises an exception of some kind unless a condition holds."""
        builder = self.builder
        with builder.if_then(builder.not_(condition), likely=False):
            text = ir.GlobalVariable(self.module, ir.ArrayType(_INT8, len(message.encode()) + 1), f"text.{self.texts}")
            self.texts += 1
            text.linkage = "internal"
            text.global_constant = True
            text.initializer = ir.Constant(text.value_type, bytearray(message.encode() + b"\0"))
            raised = _object(self.module, kind)
            called = self._python("PyErr_SetString", ir.VoidType(), _OBJECT, _OBJECT)
            builder.call(called, [raised, builder.bitcast(text, _OBJECT)])
            builder.ret(ir.Constant(_OBJECT, None))

    def _array(self, value: Any, kind: types.Array, typed: Any, message: str) -> Any:
        """Checks an array; returns numba's structure for it."""
        builder = self.builder
        flags = _CONTIGUOUS | _ALIGNED | (0 if kind.readonly else _WRITEABLE)
        numbers, size = _numbers(kind.element)
        wanted = [ir.Constant(_INT32, wanted) for wanted in (*numbers, kind.dimensions, flags)]
        is_right = builder.call(_checker(self.module), [value, *wanted, ir.Constant(_INT64, size)])
        self._require(is_right, "elastalog_TypeError", message)
        lengths_at = _load(builder, value, _LENGTHS, _INT64.as_pointer())
        lengths = [
            builder.load(builder.gep(lengths_at, [ir.Constant(_INT32, axis)])) for axis in range(kind.dimensions)
        ]
        element = self.context.get_data_type(typed.dtype).as_pointer()
        return array_of(self.context, builder, typed, _load(builder, value, _DATA, element), lengths)

    def _scalar(self, value: Any, kind: types.Scalar) -> Any:
        builder = self.builder
        if kind == types.boolean:
            truth = builder.call(self._python("PyObject_IsTrue", _INT32, _OBJECT), [value])
            self._pass_on(builder.icmp_signed("==", truth, ir.Constant(_INT32, -1)))
            return builder.icmp_signed("!=", truth, ir.Constant(_INT32, 0))
        if kind != types.int64:
            raise NotImplementedError(f"an argument of type {kind.name}")
        number = builder.call(self._python("PyLong_AsLongLong", _INT64, _OBJECT), [value])
        self._pass_on(builder.icmp_signed("==", number, ir.Constant(_INT64, -1)))
        return number

    def _pass_on(self, may_have_failed: Any) -> None:
        """Returns when the interpreter has raised something."""
        builder = self.builder
        with builder.if_then(may_have_failed, likely=False):
            raised = builder.call(self._python("PyErr_Occurred", _OBJECT), [])
            with builder.if_then(builder.icmp_unsigned("!=", raised, ir.Constant(_OBJECT, None))):
                builder.ret(ir.Constant(_OBJECT, None))

    def _result(self, value: Any) -> Any:
        builder = self.builder
        kind = self.operator.result
        if kind == types.void:
            none = _object(self.module, "elastalog_None")
            builder.call(self._python("Py_IncRef", ir.VoidType(), _OBJECT), [none])
            return none
        if kind == types.boolean:
            return builder.call(self._python("PyBool_FromLong", _OBJECT, _INT64), [builder.zext(value, _INT64)])
        if kind != types.int64:
            raise NotImplementedError(f"a result of type {kind.name}")
        return builder.call(self._python("PyLong_FromLongLong", _OBJECT, _INT64), [value])

    def _python(self, name: str, result: Any, *arguments: Any) -> Any:
        return _declared(self.module, name, ir.FunctionType(result, arguments))


def _checker(module: ir.Module) -> Any:
    """A function that tells whether an object is an array with one of two numbers of element types, a dimension, flags,
    and a size of elements (0: any)."""
    name = "elastalog_is_array"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(_BIT, [_OBJECT, *[_INT32] * 4, _INT64]), name)
    function.linkage = "internal"
    value, first, second, dimension, flags, size = function.args
    builder = ir.IRBuilder(function.append_basic_block("begin"))
    arrays = _object(module, "elastalog_ndarray")
    kind = _load(builder, value, _TYPE, _OBJECT)
    with builder.if_then(builder.icmp_unsigned("!=", kind, arrays), likely=False):
        is_subtype = _declared(module, "PyType_IsSubtype", ir.FunctionType(_INT32, [_OBJECT, _OBJECT]))
        is_array = builder.call(is_subtype, [kind, arrays])
        with builder.if_then(builder.icmp_signed("==", is_array, ir.Constant(_INT32, 0))):
            builder.ret(ir.Constant(_BIT, 0))
    description = _load(builder, value, _DESCRIPTION, _OBJECT)
    number = _load(builder, description, _NUMBER, _INT32)
    item = _load(builder, description, _SIZE, _INT64)
    conditions = (
        builder.or_(builder.icmp_signed("==", number, first), builder.icmp_signed("==", number, second)),
        builder.icmp_signed("==", _load(builder, value, _DIMENSION, _INT32), dimension),
        builder.icmp_signed("==", builder.and_(_load(builder, value, _FLAGS, _INT32), flags), flags),
        builder.icmp_signed("!=", _load(builder, description, _BYTE_ORDER, _INT8), ir.Constant(_INT8, _SWAPPED)),
        builder.icmp_signed("==", item, size),
    )
    all_hold = conditions[0]
    for condition in conditions[1:]:
        all_hold = builder.and_(all_hold, condition)
    builder.ret(all_hold)
    return function


def _numbers(element: types.Scalar | types.Record) -> tuple[tuple[int, int], int]:
    """The numbers numpy gives to element types that are the same to the machine, and their size."""
    dtype = element.dtype if isinstance(element, types.Record) else np.dtype(element.name)
    alike = {"l": "q", "q": "l", "L": "Q", "Q": "L", "i": "l", "I": "L"}.get(dtype.char)
    other = np.dtype(alike) if alike is not None and np.dtype(alike).itemsize == dtype.itemsize else dtype
    return (dtype.num, other.num), dtype.itemsize


def _declared(module: ir.Module, name: str, kind: ir.FunctionType) -> Any:
    return module.globals.get(name) or ir.Function(module, kind, name)


def _object(module: ir.Module, name: str) -> Any:
    """An object of Python's that has a name of ours (see `symbols`)."""
    return module.globals.get(name) or ir.GlobalVariable(module, _INT8, name)


def _load(builder: ir.IRBuilder, base: Any, offset: int, kind: Any) -> Any:
    """What lies behind an address."""
    place = builder.gep(base, [ir.Constant(_INT64, offset)])
    return builder.load(builder.bitcast(place, kind.as_pointer()))
