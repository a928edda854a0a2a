"""What all compiled operators share: how they are declared, how numbers are mixed, how memory is fetched ahead.

Operators are compiled once, for every program alike, with fixed signatures, and kept as object code (`objects`). They
release the interpreter's lock, take arrays only, and are resumable: when an output block or a table is full they
return, the caller makes room and calls again. State that outlives a call is in a small vector of int64 (`state`), whose
fields are named where they are used.

Nothing here imports numba: a declaration says what to compile, and `lowering` compiles it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from elastalog.jit import types

F = TypeVar("F", bound=Callable[..., Any])

GROUP = 32
"""Rows whose memory is fetched ahead together."""

ONE = np.uint64(1)
NONE = np.uint64(0)
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
FINISH = np.uint64(0xBF58476D1CE4E5B9)
_TAIL = np.uint64(29)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Operator:
    """A compiled function with one fixed signature. Its machine code is loaded, or made, when it is first called: a
    program pays only for the operators that it uses. `call` is what modules call it by."""

    def __init__(
        self, function: Callable[..., Any], result: types.Scalar, arguments: tuple[types.Description, ...]
    ) -> None:
        self.function = function
        self.result = result
        self.arguments = arguments
        # A partial without arguments, because that calls what it holds at the speed of C, and what it holds can be
        # replaced: first something that loads the machine code, then the machine code. No class derived from it, whose
        # instances are called three times as slowly.
        self.call = functools.partial(self._load_and_call)
        self.code = self._load_and_call

    @property
    def code(self) -> Callable[..., Any]:
        """What is called."""
        return self.call.func

    @code.setter
    def code(self, code: Callable[..., Any]) -> None:
        self.call.__setstate__((code, (), {}, {_OPERATOR: self}))  # type: ignore[attr-defined]  # as it is unpickled

    @property
    def name(self) -> str:
        """The name that identifies it among all operators."""
        return f"{self.function.__module__}.{self.function.__qualname__}"

    def load(self) -> None:
        """Makes the machine code ready, so that the first call need not."""
        if self.code == self._load_and_call:
            from elastalog.jit.loading import machine_code

            self.code = machine_code(self)

    def _load_and_call(self, *arguments: Any) -> Any:
        self.load()
        return self.call(*arguments)


_OPERATOR = "operator"


def operator_of(called: object) -> Operator | None:
    """The operator that something calls, None if it is nothing of the kind."""
    found: Operator | None = vars(called).get(_OPERATOR) if type(called) is functools.partial else None
    return found


class Piece:
    """A function that compiled code calls. Where it `is_inlined` it is compiled into its callers. One that `is_view`
    returns an array, which functions must not: numba copies it into its callers before it infers types."""

    __slots__ = ("function", "is_inlined", "is_view")

    def __init__(self, function: Callable[..., Any], *, is_inlined: bool, is_view: bool = False) -> None:
        self.function = function
        self.is_inlined = is_inlined
        self.is_view = is_view


class Intrinsic:
    """A piece that writes its own code. The function gets numba's typing context and the types of the arguments, and
    returns a signature and what generates code; whatever it needs of numba it imports itself."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


def operator(result: types.Scalar, *arguments: types.Description) -> Callable[[F], F]:
    """An operator with one fixed signature. It makes no arrays: those it works on belong to the caller."""

    def decorate(function: F) -> F:
        return cast(F, Operator(function, result, arguments).call)

    return decorate


def inlined(function: F) -> F:
    """A piece of operators, copied into each of them; of an operator, what it does."""
    return cast(F, Piece(_compiled(function), is_inlined=True))


def view(function: F) -> F:
    """A piece that returns an array, made of memory that it does not own."""
    return cast(F, Piece(function, is_inlined=True, is_view=True))


def piece(function: Any) -> Any:
    """A function that compiled code calls, compiled together with its callers; of an operator, what it does."""
    return Piece(_compiled(function), is_inlined=False)


def _compiled(function: Any) -> Callable[..., Any]:
    """What is to be compiled: of an operator, its function."""
    made: Callable[..., Any] = function if (found := operator_of(function)) is None else found.function
    return made


def intrinsic(function: Callable[..., Any]) -> Any:
    """A piece that writes its own code (see `Intrinsic`); compiled code calls it without the typing context."""
    return Intrinsic(function)


@inlined
def mix(value):
    value = (value ^ (value >> HALF)) * _MULTIPLIER
    return value ^ (value >> _TAIL)
