"""Arrays on a device, by the names of NumPy: as much of them as the evaluation of strata needs, for booleans and whole
numbers. What is done often has a function of its own in `kernels.cu`; anything else goes element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.driver import Driver, Memory

THREADS = 256
"""Threads of a block."""
TILE = 4096
"""Elements that a block takes at a time, where it looks at many."""
SMALL = 2048
"""Keys that one block sorts by itself."""
_DIGIT = 8
_KINDS = {np.dtype(np.bool_): 0, np.dtype(np.int32): 1, np.dtype(np.int64): 2}
_FIRST = 3
_BOOL, _INT32, _INT64 = _KINDS
_COPY, _ADD, _SUBTRACT, _MULTIPLY, _OR, _AND, _XOR, _LEFT, _RIGHT, _EQUAL = range(10)
_OTHER, _LESS, _AT_MOST, _MORE, _AT_LEAST, _LEAST = range(10, 16)

Operand: TypeAlias = "DeviceArray | int | np.generic"


def blocks_for(size: int, each: int = THREADS) -> int:
    """How many blocks have something to do."""
    return -(-size // each)


class DeviceArray:
    """Elements on the device, `step` apart; a matrix has `width` columns."""

    __slots__ = ("_memory", "driver", "dtype", "place", "size", "step", "width")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        driver: Driver,
        memory: Memory,
        place: int,
        size: int,
        dtype: npt.DTypeLike,
        step: int = 1,
        width: int | None = None,
    ) -> None:
        self.driver = driver
        self._memory = memory
        self.place = place
        self.size = size
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.step = step
        self.width = width

    def __len__(self) -> int:
        return self.size

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.size,) if self.width is None else (self.size, self.width)

    @property
    def nbytes(self) -> int:
        return self.size * (self.width or 1) * self.dtype.itemsize

    @property
    def kind(self) -> int:
        return _KINDS[self.dtype]

    def dense(self) -> DeviceArray:
        """Itself, elements side by side."""
        return self if self.step == 1 else combined(_COPY, self, 0, self.dtype)

    def copy(self) -> DeviceArray:
        return combined(_COPY, self, 0, self.dtype)

    def astype(self, dtype: npt.DTypeLike) -> DeviceArray:
        return self if self.dtype == np.dtype(dtype) else combined(_COPY, self, 0, np.dtype(dtype))

    def __getitem__(self, index: Any) -> Any:
        match index:
            case slice():
                begin, end, _ = index.indices(self.size)
                return self._view(begin * self.step, max(end - begin, 0), self.step)
            case DeviceArray():
                found = _empty(self.driver, len(index), self.dtype)
                _each(self.driver, "gather", len(index), self.place, self.kind, self.step, index.place, found.place)
                return found
            case (slice(), int(column)):
                assert self.width is not None
                return self._view(column, self.size, self.width)
            case _:
                at = index + self.size if index < 0 else index
                return self.driver.number_at(self.place + at * self.step * self.dtype.itemsize, self.dtype.itemsize)

    def _view(self, at: int, size: int, step: int) -> DeviceArray:
        place = self.place + at * self.dtype.itemsize
        return DeviceArray(self.driver, self._memory, place, size, self.dtype, step)

    def __setitem__(self, places: DeviceArray, values: DeviceArray) -> None:
        assert values.dtype == self.dtype
        values = values.dense()
        _each(self.driver, "scatter", len(places), values.place, self.kind, places.place, self.place)

    def get(self, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """A copy in this process; `out`: the array to copy to."""
        dense = self.dense() if self.width is None else self
        host = np.empty(self.shape, self.dtype) if out is None else out
        assert host.flags.c_contiguous
        assert host.nbytes == self.nbytes
        self.driver.read(dense.place, host.ctypes.data, self.nbytes)
        return host

    def set(self, array: npt.NDArray[Any]) -> None:
        """Takes the elements of an array of this process."""
        host = np.ascontiguousarray(array)
        self.driver.write(host.ctypes.data, self.place, host.nbytes)

    def nonzero(self) -> tuple[DeviceArray]:
        return (_chosen(self.dense(), self.kind)[0],)

    def any(self) -> bool:
        return self.size > 0 and self.max() != 0

    def min(self) -> int:
        return self._extremes()[0]

    def max(self) -> int:
        return self._extremes()[1]

    def _extremes(self) -> tuple[int, int]:
        most = np.iinfo(np.int64)
        found = _empty(self.driver, 2, np.int64)
        found.set(np.array([most.max, most.min]))
        blocks = min(blocks_for(self.size), 4 * THREADS)
        self.driver.launch("extremes", blocks, THREADS, (self.place, self.kind, self.step, found.place, self.size))
        least, greatest = found.get().tolist()
        return least, greatest

    def __invert__(self) -> DeviceArray:
        return combined(_XOR, self, 1 if self.dtype == _BOOL else -1, self.dtype)

    def __neg__(self) -> DeviceArray:
        return combined(_SUBTRACT, 0, self, self.dtype)

    __array_ufunc__ = None
    """So that a number of NumPy leaves operations to the array."""


def _operator(operation: int, dtype: np.dtype[Any] | None) -> tuple[Callable[..., DeviceArray], ...]:
    def forward(self: DeviceArray, other: Operand) -> DeviceArray:
        return combined(operation, self, other, _common(self, other) if dtype is None else dtype)

    def backward(self: DeviceArray, other: Operand) -> DeviceArray:
        return combined(operation, other, self, _common(self, other))

    return forward, backward


for _name, _operation in (
    ("add", _ADD), ("sub", _SUBTRACT), ("mul", _MULTIPLY), ("or", _OR), ("and", _AND), ("lshift", _LEFT),
    ("rshift", _RIGHT),
):  # fmt: skip
    _forward, _backward = _operator(_operation, None)
    setattr(DeviceArray, f"__{_name}__", _forward)
    setattr(DeviceArray, f"__r{_name}__", _backward)
for _name, _operation in (
    ("eq", _EQUAL), ("ne", _OTHER), ("lt", _LESS), ("le", _AT_MOST), ("gt", _MORE), ("ge", _AT_LEAST),
):  # fmt: skip
    setattr(DeviceArray, f"__{_name}__", _operator(_operation, _BOOL)[0])


def _common(array: DeviceArray, other: Operand) -> np.dtype[Any]:
    return np.result_type(array.dtype, other.dtype if isinstance(other, DeviceArray) else other)


def _empty(driver: Driver, size: int, dtype: npt.DTypeLike, width: int | None = None) -> DeviceArray:
    dtype = np.dtype(dtype)
    memory = driver.allocate(size * (width or 1) * dtype.itemsize)
    return DeviceArray(driver, memory, memory.place, size, dtype, 1 if width is None else width, width)


def _each(driver: Driver, function: str, size: int, *arguments: int) -> None:
    """A thread for every element."""
    if size:
        driver.launch(function, blocks_for(size), THREADS, (*arguments, size))


def combined(operation: int, left: Operand, right: Operand, dtype: np.dtype[Any]) -> DeviceArray:
    """An array of two, element by element; a number is the same for all."""
    array = left if isinstance(left, DeviceArray) else right
    assert isinstance(array, DeviceArray)
    out = _empty(array.driver, len(array), dtype)
    _each(
        array.driver, "combine", len(array), operation, *_operand(left), *_operand(right), out.place, out.kind
    )  # fmt: skip
    return out


def _operand(side: Operand) -> tuple[int, int, int, int]:
    return (side.place, side.kind, side.step, 0) if isinstance(side, DeviceArray) else (0, 0, 0, int(side))


def _sums(array: DeviceArray, kind: int) -> tuple[DeviceArray, int]:
    """What stands before each tile; how many tiles there are."""
    blocks = blocks_for(len(array), TILE)
    sums = _empty(array.driver, blocks + 1, np.int64)
    array.driver.launch("tile_sums", blocks, THREADS, (array.place, kind, len(array), sums.place))
    array.driver.launch("sums_before", 1, 1024 if blocks > THREADS else THREADS, (sums.place, blocks))
    return sums, blocks


def _chosen(array: DeviceArray, kind: int) -> tuple[DeviceArray, DeviceArray | None]:
    """The positions of elements that are not 0; of sorted keys those of the first of equal ones, one after the last,
    and these keys."""
    driver = array.driver
    if not len(array):
        return _empty(driver, 0, np.int64), None
    sums, blocks = _sums(array, kind)
    number = sums[blocks]
    is_keys = kind == _FIRST
    positions = _empty(driver, number + is_keys, np.int64)
    keys = _empty(driver, number, np.int64) if is_keys else None
    places = (sums.place, 0, positions.place, 0 if keys is None else keys.place)
    driver.launch("sums_until", blocks, THREADS, (array.place, kind, len(array), *places))
    return positions, keys


def distinct(keys: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """The distinct keys among sorted ones, which are not empty, and how often each occurs."""
    starts, found = _chosen(keys, _FIRST)
    assert found is not None
    return found, starts[1:] - starts[:-1]


def _sorted(
    keys: DeviceArray, values: DeviceArray | None, bits: int
) -> tuple[DeviceArray, DeviceArray | None]:  # fmt: skip
    """Keys of `bits` bits in order, with their values if there are any; equal keys keep the order they had."""
    driver, size = keys.driver, len(keys)
    if values is None and size <= SMALL:
        found = _empty(driver, size, np.int64)
        if size:
            driver.launch("sort_few", 1, 512, (keys.place, size, found.place))
        return found, None
    blocks = blocks_for(size, TILE)
    counts = _empty(driver, blocks << _DIGIT, np.int64)
    until = _empty(driver, len(counts), np.int64)
    spare = [
        (_empty(driver, size, np.int64), None if values is None else _empty(driver, size, np.int64)) for _ in range(2)
    ]
    for number, shift in enumerate(range(0, max(bits, 1), _DIGIT)):
        driver.launch("count_digits", blocks, THREADS, (keys.place, size, shift, counts.place))
        _running(counts, until)
        sorted_keys, sorted_values = spare[number % 2]
        places = (until.place, sorted_keys.place, sorted_values.place if sorted_values is not None else 0)
        given = (keys.place, values.place if values is not None else 0, size, shift)
        driver.launch("sort_digits", blocks, THREADS, (*given, *places))
        keys, values = sorted_keys, sorted_values
    return keys, values


def _running(array: DeviceArray, out: DeviceArray) -> None:
    sums, blocks = _sums(array, array.kind)
    array.driver.launch(
        "sums_until", blocks, THREADS, (array.place, array.kind, len(array), sums.place, out.place, 0, 0)
    )  # fmt: skip


class DeviceModule:
    """The functions of NumPy's module, for arrays on a device."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> DeviceArray:
        match shape:
            case int(size) | (int(size),):
                return _empty(self.driver, size, dtype)
            case (int(size), int(width)):
                return _empty(self.driver, size, dtype, width)
        raise ValueError(shape)

    def full(self, size: int, value: int | np.generic, dtype: npt.DTypeLike) -> DeviceArray:
        made = _empty(self.driver, size, dtype)
        _each(self.driver, "combine", size, _COPY, *_operand(value), 0, 0, 0, 0, made.place, made.kind)
        return made

    def zeros(self, size: int, dtype: npt.DTypeLike) -> DeviceArray:
        made = _empty(self.driver, size, dtype)
        if size:
            self.driver.set_bytes(made.place, 0, made.nbytes)
        return made

    def ones(self, size: int, dtype: npt.DTypeLike) -> DeviceArray:
        return self.full(size, 1, dtype)

    def arange(self, begin: int, end: int | None = None) -> DeviceArray:
        first, last = (0, begin) if end is None else (begin, end)
        made = _empty(self.driver, last - first, np.int64)
        _each(self.driver, "count_from", last - first, first, made.place)
        return made

    def asarray(self, array: npt.NDArray[Any]) -> DeviceArray:
        made = self.empty(array.shape, array.dtype)
        made.set(array)
        return made

    def broadcast_to(self, values: Any, size: int) -> DeviceArray:
        if isinstance(values, DeviceArray):
            return values
        value = np.asarray(values)
        return self.full(size, value[()], value.dtype)  # type: ignore[arg-type]

    def concatenate(self, arrays: Sequence[DeviceArray]) -> DeviceArray:
        made = _empty(self.driver, sum(map(len, arrays)), arrays[0].dtype)
        place = made.place
        for array in arrays:
            if len(array):
                dense = array.dense()
                self.driver.copy(dense.place, place, array.nbytes)
                place += array.nbytes
        return made

    def minimum(self, array: DeviceArray, most: int) -> DeviceArray:
        return combined(_LEAST, array, most, array.dtype)

    def flatnonzero(self, array: DeviceArray) -> DeviceArray:
        return array.nonzero()[0]

    def cumsum(self, array: DeviceArray, dtype: npt.DTypeLike = np.int64) -> DeviceArray:
        assert np.dtype(dtype) == np.int64
        out = _empty(self.driver, len(array), np.int64)
        if len(array):
            _running(array.dense(), out)
        return out

    def sort(self, keys: DeviceArray, bits: int) -> DeviceArray:
        """The keys, non-negative numbers of at most `bits` bits, in order."""
        return _sorted(keys.dense(), None, bits)[0]

    def lexsort(self, keys: Sequence[DeviceArray]) -> DeviceArray:
        """The positions of keys in their order; the last one counts most. None is negative."""
        order = self.arange(len(keys[0]))
        for part in keys:
            if len(part):
                found = _sorted(part[order], order, part.max().bit_length())[1]
                assert found is not None
                order = found
        return order

    def searchsorted(self, keys: DeviceArray, wanted: DeviceArray, side: str) -> DeviceArray:
        return self.search([keys], [wanted], is_after=side == "right")

    def search(self, keys: Sequence[DeviceArray], wanted: Sequence[DeviceArray], *, is_after: bool) -> DeviceArray:
        """For each wanted key of several parts the number of sorted keys before it; of equal ones, too, if it is after
        them."""
        size = len(wanted[0])
        found = _empty(self.driver, size, np.int64)
        assert all(part.step == 1 for part in (*keys, *wanted))
        parts = [place for one, other in zip(keys, wanted, strict=True) for place in (one.place, other.place)]
        words = (len(keys[0]), int(is_after), found.place, size, *by_value(len(keys), parts, 2))
        if size:
            self.driver.launch("search", blocks_for(size), THREADS, words)
        return found


MOST_PARTS = 16
"""Columns, or parts of keys, of one launch."""


def by_value(number: int, words: Sequence[int], each: int) -> tuple[int, ...]:
    """The `number` parts of a launch as arguments by value, `each` words per part, padded to `MOST_PARTS` parts."""
    assert number <= MOST_PARTS
    return (number, *words, *(0,) * (each * (MOST_PARTS - number)))
