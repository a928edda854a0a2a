"""The arrays that strata are evaluated on: CuPy's on a device, NumPy's without one. All else here is written against
the module; what only a device has stands behind a method whose other half is NumPy."""

from __future__ import annotations

import time
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.late import dataclass

Array: TypeAlias = Any
"""An array of the module: of NumPy, or of CuPy, which has no types."""


class NoRoom(Exception):
    """The device, or what may be used of it, has no room for an array: the work is done elsewhere."""


@dataclass(slots=True)
class Arrays:
    """An array module. `room`: bytes that may be used, None for any number; `peak`: the most that were
    in use; `transfer`: the seconds in which nothing went on but copies to the device and back."""

    module: Any
    is_device: bool
    room: int | None = None
    peak: int = 0
    transfer: float = 0.0

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
        began = time.perf_counter()
        moved = self.module.asarray(array)
        self.transfer += time.perf_counter() - began
        return moved

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """An array in this process."""
        if not self.is_device:
            return np.asarray(array)
        self.module.cuda.get_current_stream().synchronize()  # what the device does till then is no transfer
        began = time.perf_counter()
        host: npt.NDArray[Any] = array.get()
        self.transfer += time.perf_counter() - began
        return host

    def copy_out(self, array: Array, out: npt.NDArray[Any]) -> None:
        """Copies an array into one of this process."""
        if not self.is_device:
            out[:] = array
            return
        from cupyx import empty_pinned

        # The device copies to pinned memory at full speed only; its blocks are used again.
        pinned = empty_pinned(array.shape, array.dtype)
        array.get(out=pinned)
        np.copyto(out, pinned)

    def spread(self, values: Array, size: int) -> Array:
        """An array of a size, for each row the same value if there is only one."""
        return self.module.broadcast_to(self.module.asarray(values), size)

    @property
    def name(self) -> str:
        """Where they are, for people."""
        if not self.is_device:
            return "NumPy in place of a GPU"
        name = self.module.cuda.runtime.getDeviceProperties(0)["name"]
        return f"GPU {name.decode(errors='replace')}"


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
