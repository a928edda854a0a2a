"""Compiling operators with numba: to functions of this process, or to object code that any process can load.

The only module that runs numba (with `entry`, which it calls, and what intrinsics import). An operator's function
refers to pieces and intrinsics as they were declared; here it is given copies of its globals in which numba's own stand
for them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import CellType, FunctionType, ModuleType
from typing import Any

import numba as nb
from llvmlite import binding
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic as numba_intrinsic
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype

from elastalog.jit import types
from elastalog.jit.entry import make_entry
from elastalog.jit.fingerprint import globals_of, names_in
from elastalog.jit.intrinsics import check_index
from elastalog.jit.loading import PROCESS_SYMBOLS
from elastalog.jit.objects import ObjectCode, Processor
from elastalog.jit.operators import Intrinsic, Operator, Piece

_NEEDLESS = frozenset(
    {
        "LiteralPropagation", "Rewrite dynamic raises", "dump_parfor_diagnostics", "find_literally",
        "inline_closure_likes", "inline_overloads", "ir_legalization", "literal_unroll",
        "make_function_op_code_to_jit_function", "nopython_rewrites", "nopython_supported_feature_validation",
        "rewrite_semantic_constants", "with_lifting",
    }
)  # fmt: skip
"""Passes of numba's that find nothing to do: operators have no closures, generators, blocks of `with`, exceptions nor
arithmetic of whole arrays, and no references that end with the last use of a variable."""


class _Pipeline(CompilerBase):  # type: ignore[misc]  # numba has no types
    """Numba's passes without those that are needless, nor the checks of its own work after each of them."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [each for each in pipeline.passes if each[0].name() not in _NEEDLESS]
        pipeline._ENFORCING = False
        pipeline.finalize()
        return [pipeline]


OPTIONS: dict[str, Any] = {
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    "_nrt": False,
    "pipeline_class": _Pipeline,
}
"""How operators are compiled. Without reference counts: arrays belong to the caller, and counting who looks at them,
row by row, took a tenth of the time of a join, and half of one that looks at levels."""

_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Unfit(Exception):
    """The object code of an operator would need something that a process without numba does not have."""


def numba_type(described: types.Scalar | types.Record | types.Array) -> Any:
    """Numba's type for a description."""
    match described:
        case types.Scalar(name):
            return getattr(nb.types, "boolean" if name == "bool" else name)
        case types.Record(dtype):
            return from_dtype(dtype)
        case types.Array(element, dimensions, readonly):
            return nb.types.Array(numba_type(element), dimensions, "C", readonly=readonly)


def compiled_here(operator: Operator) -> Callable[..., Any]:
    """The operator as numba's function, for this process alone."""
    made: Callable[..., Any] = nb.njit(_signature(operator), **OPTIONS)(_linked(operator.function))
    return made


def prepare(processor: Processor) -> None:
    """Makes numba compile for a family of processors and to object code only, in all of this process; call it before
    anything is compiled. The family need not be that of this machine."""
    config.CPU_NAME = processor.name
    config.CPU_FEATURES = processor.features
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    codegen = cpu_target.target_context.codegen()
    codegen._library_class = _Library
    codegen.set_env = _leave_environment
    arrayobj.fix_integer_index = _from_the_start
    if processor.triple != binding.get_process_triple():
        _turn_to(processor, codegen)


def _turn_to(processor: Processor, codegen: Any) -> None:
    """Another kind of machine, with what numba chooses on one of that kind."""
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    reloc = "static" if processor.triple.startswith("x86") else "default"
    machine = binding.Target.from_triple(processor.triple).create_target_machine(
        processor.name, processor.features, config.OPT, reloc, "jitdefault", jit=True
    )
    codegen._tm = machine
    codegen._target_data = machine.target_data
    codegen._data_layout = str(machine.target_data)
    make = codegen._create_empty_module

    def create_empty_module(name: str) -> Any:
        module = make(name)
        module.triple = processor.triple
        return module

    codegen._create_empty_module = create_empty_module


class _Library(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """Code of a piece or an operator. Numba would optimise each piece for itself, together with all pieces that it
    calls, and make machine code of it; here that is done once, for a whole operator."""

    _final_module: Any

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def optimised(self) -> Any:
        """The module with all pieces, optimised; as a piece of others it stays as it is."""
        self._ensure_finalized()
        kept = self._final_module.clone()
        super()._optimize_final_module()
        made, self._final_module = self._final_module, kept
        return made


def _leave_environment(name: str, environment: Any) -> None:
    """Nothing of this process is part of the code."""


def _from_the_start(context: Any, builder: Any, index_type: Any, index: Any, length: Any) -> Any:
    """An index as it is. Numba would ask of each whether it is below 0 and counts from the end, as those of operators
    never do: that took a sixth of the instructions of an update."""
    place = context.cast(builder, index, index_type, nb.types.intp if index_type.signed else nb.types.uintp)
    check_index(builder, place, length)
    return place


@global_compiler_lock  # type: ignore[untyped-decorator,unused-ignore]
def object_code(operator: Operator) -> ObjectCode:
    """Compiles an operator to object code; more quickly in a process that is prepared for nothing else."""
    signature = _signature(operator)
    function = _numba_function(operator.function, is_inlined=False)
    function.compile(signature)  # unless it has been, as a piece of another
    made = function.overloads[signature.args]
    if made.signature != signature:
        raise TypeError(f"{operator.name} is declared to return {signature.return_type}, and as a piece it does not")
    library = made.library
    # A process that is not prepared has optimised it already, in numba's own way.
    module = library.optimised() if isinstance(library, _Library) else library._final_module.clone()
    target = cpu_target.target_context
    entry, text = make_entry(operator, made.fndesc, target)
    module.link_in(binding.parse_assembly(text))
    # Names of numba's are numbered by the process that compiled them: two operators may use one name for two pieces.
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration and each.name != entry:
            each.linkage = "internal"
    module.verify()
    return ObjectCode(target.codegen()._tm.emit_object(module), entry, _wanted(operator, module))


def _wanted(operator: Operator, module: Any) -> tuple[str, ...]:
    """The names that the code of a module leaves open."""
    names = {each.name for each in (*module.functions, *module.global_variables) if each.is_declaration}
    wanted = sorted(name for name in names if not name.startswith("llvm."))
    foreign = [name for name in wanted if name not in PROCESS_SYMBOLS]
    if foreign:
        raise Unfit(f"{operator.name} needs {', '.join(foreign)}")
    return tuple(wanted)


def _signature(operator: Operator) -> Any:
    return numba_type(operator.result)(*map(numba_type, operator.arguments))


@cache
def _numba_view(function: Callable[..., Any]) -> Any:
    return nb.njit(inline="always")(_linked(function))


@cache
def _numba_function(function: Callable[..., Any], *, is_inlined: bool) -> Any:
    return nb.njit(**OPTIONS, **_NO_WRAPPERS, forceinline=is_inlined)(_linked(function))


@cache
def _numba_intrinsic(intrinsic: Intrinsic) -> Any:
    return numba_intrinsic(intrinsic.function)


def _linked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of a function that refers to numba's pieces instead of declared ones."""
    assert isinstance(function, FunctionType)
    space = {name: _link(function.__globals__[name], function) for name in globals_of(function)}
    space["__builtins__"] = function.__globals__["__builtins__"]
    space["__name__"] = function.__module__
    cells = tuple(CellType(_link(cell.cell_contents, function)) for cell in function.__closure__ or ())
    copy = FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    return copy


def _link(value: Any, user: FunctionType) -> Any:
    match value:
        case Piece():
            made = _numba_function(value.function, is_inlined=value.is_inlined)
            return _numba_view(value.function) if value.is_view else made
        case Intrinsic():
            return _numba_intrinsic(value)
        case ModuleType() if value.__name__.startswith("elastalog."):
            copy = ModuleType(value.__name__)
            for name in names_in(user.__code__):
                if hasattr(value, name):
                    setattr(copy, name, _link(getattr(value, name), user))
            return copy
        case _:
            return value
