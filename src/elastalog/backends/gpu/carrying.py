"""Copies between this process and the device beside what the device does: by threads that each have a stream of their
own. Without a device the same calls copy at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

from elastalog.backends.gpu.arrays import Array, Arrays

_COPIES = 8
"""Threads that copy at a time: a copy waits for memory more than for the device."""


class Carrier:
    """Carries arrays. A device array that is given to a thread must not be written any more, or not be read before
    the thread is done; threads hold what they use until then. `close` it, whatever happens."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._threads: ThreadPoolExecutor | None = None
        self._own = local()
        self._under_way: list[Future[None]] = []

    def start(self, do: Callable[[], None]) -> Future[None] | None:
        """Does something that copies, after all that the device has been told to do so far."""
        if not self._arrays.is_device:
            do()
            return None
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_COPIES, "elastalog-carrier")
        ready = self._arrays.module.cuda.get_current_stream().record()
        future = self._threads.submit(self._on_own_stream, do, ready)
        self._under_way.append(future)
        return future

    def _on_own_stream(self, do: Callable[[], None], ready: Any) -> None:
        stream = getattr(self._own, "stream", None)
        if stream is None:
            stream = self._own.stream = self._arrays.module.cuda.Stream(non_blocking=True)
        with stream:
            stream.wait_event(ready)
            do()
            stream.synchronize()

    def send(self, array: npt.NDArray[Any]) -> Callable[[], Array]:
        """Starts to bring an array to the device; who calls the result waits for it."""
        arrays = self._arrays
        if not arrays.is_device or not array.size:
            moved = arrays.to_device(array)
            return lambda: moved
        arrays.claim(array.nbytes)
        # Made here: its memory belongs to the stream on which it is used, and is given back in the order of that.
        there = arrays.module.empty(array.shape, array.dtype)

        def copy() -> None:
            from cupyx import empty_pinned

            pinned = empty_pinned(array.shape, array.dtype)
            np.copyto(pinned, array)
            stream = arrays.module.cuda.get_current_stream()
            there.set(pinned, stream=stream)
            stream.synchronize()  # others may have the pinned memory after this

        future = self.start(copy)
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
