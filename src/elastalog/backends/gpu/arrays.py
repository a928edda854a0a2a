"""The arrays that strata are evaluated on: CuPy's on a device, NumPy's without one. All else here is written against
the module; what only a device has stands behind a method whose other half is NumPy."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.late import dataclass

Array: TypeAlias = Any
"""An array of the module: of NumPy, or of CuPy, which has no types."""

_EXPAND = r"""
extern "C" __global__ void expand(
    const long long* ends, const long long* starts, const long long* counts, long long lefts, long long begin,
    long long size, int* left, long long* position)
{
    long long thread = blockIdx.x * (long long) blockDim.x + threadIdx.x;
    if (thread >= size) return;
    long long wanted = thread + begin, low = 0, high = lefts;
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (ends[middle] <= wanted) low = middle + 1; else high = middle;
    }
    left[thread] = (int) low;
    position[thread] = starts[low] + (wanted - (ends[low] - counts[low]));
}
"""
_THREADS = 256


class NoRoom(Exception):
    """The device, or what may be used of it, has no room for an array: the work is done elsewhere."""


@dataclass(slots=True)
class Arrays:
    """An array module. `room`: bytes that may be used, None for any number; `peak`: the most that were in use."""

    module: Any
    is_device: bool
    room: int | None = None
    peak: int = 0

    def claim(self, size: int) -> None:
        """Says that arrays of so many bytes are about to be made. Raises NoRoom if there is none for them."""
        held = self.held()
        self.peak = max(self.peak, held + size)
        if self.room is not None and held + size > self.room:
            raise NoRoom

    def held(self) -> int:
        """Bytes in use on the device."""
        return int(self.module.get_default_memory_pool().used_bytes()) if self.is_device else 0

    def to_device(self, array: npt.NDArray[Any]) -> Array:
        self.claim(array.nbytes)
        return self.module.asarray(array)

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        host: npt.NDArray[Any] = array.get() if self.is_device else array
        return host

    def expand(self, ends: Array, starts: Array, counts: Array, begin: int, size: int) -> tuple[Array, Array]:
        """Of the pairs (left, position) that ranges of positions give, one range for each left row, `size` from the
        pair `begin` on. `ends` are the running sums of `counts`."""
        self.claim(12 * size)
        if self.is_device:
            left = self.module.empty(size, np.int32)
            position = self.module.empty(size, np.int64)
            blocks = (size + _THREADS - 1) // _THREADS
            numbers = (np.int64(len(counts)), np.int64(begin), np.int64(size))
            _expand_kernel()((blocks,), (_THREADS,), (ends, starts, counts, *numbers, left, position))
            return left, position
        pairs = np.arange(begin, begin + size)
        left = np.searchsorted(ends, pairs, side="right")
        return left, pairs - (ends - counts)[left] + starts[left]


@cache
def _expand_kernel() -> Any:
    import cupy

    return cupy.RawKernel(_EXPAND, "expand")


def on_numpy(room: int | None = None) -> Arrays:
    """The twin: the same evaluation without a device."""
    return Arrays(np, is_device=False, room=room)


def on_device(room: int | None = None) -> Arrays | None:
    """The first GPU, None where there is none or CuPy is not installed. Half of its free memory may be used, unless
    `room` says how much."""
    try:
        import cupy

        free, _ = cupy.cuda.Device(0).mem_info
    except Exception:  # CuPy raises whatever its parts raise: no driver, no library, no device
        return None
    return Arrays(cupy, is_device=True, room=free // 2 if room is None else room)


def out_of_memory() -> tuple[type[BaseException], ...]:
    """What is raised when there is no room, or the device fails, with the module that is loaded."""
    import sys

    errors: tuple[type[BaseException], ...] = (NoRoom, MemoryError)
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        errors += (cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError)
    return errors
