"""The arrays that strata are evaluated on: those of a device, NumPy's without one. All else here is written against the
module; what only a device has stands behind a method whose other half is NumPy. Copies between this process and a
device go on beside what the device does, by threads that each have a stream of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from elastalog.late import dataclass

Array: TypeAlias = Any
"""An array of the module: of NumPy, or of `device_arrays`."""

_COPIES = 8
"""Threads that copy at a time: a copy waits for memory more than for the device."""


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
        """Announces new arrays of `size` bytes in all. Raises NoRoom if there is no room for them."""
        held = self.held()
        self.peak = max(self.peak, held + size)
        if self.room is not None and held + size > self.room:
            raise NoRoom

    def held(self) -> int:
        """Bytes in use on the device."""
        return int(self.module.driver.used_bytes()) if self.is_device else 0

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
        self.module.driver.synchronize()  # what the device does till then is no transfer
        began = time.perf_counter()
        host: npt.NDArray[Any] = array.get()
        self.transfer += time.perf_counter() - began
        return host

    def copy_out(self, array: Array, out: npt.NDArray[Any]) -> None:
        """Copies an array into one of this process."""
        if self.is_device:
            array.get(out)
        else:
            out[:] = array

    @property
    def name(self) -> str:
        """Where they are, for people."""
        return f"GPU {self.module.driver.name}" if self.is_device else "NumPy in place of a GPU"


def on_numpy(room: int | None = None) -> Arrays:
    """The twin: the same evaluation without a device."""
    return Arrays(np, is_device=False, room=room)


def on_device(room: int | None = None) -> Arrays | None:
    """The first GPU, None where there is none. Half of its free memory may be used, unless `room` says how much. It is
    started, if it has not been."""
    from elastalog.backends.gpu import starting

    driver = starting.started()
    if driver is None:
        return None
    from elastalog.backends.gpu.device_arrays import DeviceModule

    return Arrays(DeviceModule(driver), is_device=True, room=driver.free_bytes() // 2 if room is None else room)


def out_of_memory() -> tuple[type[BaseException], ...]:
    """What is raised when there is no room, or the device fails."""
    from elastalog.backends.gpu.driver import DeviceError

    return NoRoom, MemoryError, DeviceError


class Carrier:
    """Carries arrays. A device array that is given to a thread must not be written any more, or not be read before
    the thread is done; threads hold what they use until then. `close` it, whatever happens. Without a device it copies
    at once."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._threads: ThreadPoolExecutor | None = None
        self._under_way: list[Future[None]] = []

    def start(self, do: Callable[[], None]) -> Future[None] | None:
        """Does something that copies, after all that the device has been told to do so far."""
        if not self._arrays.is_device:
            do()
            return None
        driver = self._arrays.module.driver
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_COPIES, "elastalog-carrier", driver.bind)
        ready = driver.record()

        def on_own_stream() -> None:
            driver.wait_for(ready)
            do()
            driver.synchronize()

        future = self._threads.submit(on_own_stream)
        self._under_way.append(future)
        return future

    def send(self, array: npt.NDArray[Any]) -> Callable[[], Array]:
        """Starts to bring an array to the device; who calls the result waits for it."""
        arrays = self._arrays
        if not arrays.is_device or not array.size:
            moved = arrays.to_device(array)
            return lambda: moved
        arrays.claim(array.nbytes)
        # Made here: its memory belongs to the stream on which it is used, and is given back in the order of that.
        there = arrays.module.empty(array.shape, array.dtype)
        future = self.start(lambda: there.set(array))
        assert future is not None

        def arrived() -> Array:
            self._wait([future])
            return there

        return arrived

    def finish(self) -> None:
        """Waits for all that was started. Raises what one of the threads has raised."""
        under_way, self._under_way = self._under_way, []
        self._wait(under_way)

    def _wait(self, futures: list[Future[None]]) -> None:
        began = time.perf_counter()
        try:
            for future in futures:
                future.result()
        finally:
            self._arrays.transfer += time.perf_counter() - began

    def close(self) -> None:
        """Nothing is copied any more."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
