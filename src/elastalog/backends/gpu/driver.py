"""The first CUDA device of this machine, through its driver and nothing else: the module of `kernels.cu`, launches of
its functions, memory and copies.

The module is compiled ahead: a wheel carries it for the architectures of now, and as PTX for later ones, among the
object code of operators (see `elastalog.jit.objects`). From sources NVRTC compiles it at first use, once per user.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from typing import Any

from elastalog.jit import objects

LIBRARY = "libcuda.so.1"
FAMILY = "cuda"
ARCHITECTURES = (70, 75, 80, 86, 89, 90, 100, 120)
"""Architectures that a wheel carries code for. A device runs what was compiled for an earlier one of its generation."""
PORTABLE = 75
"""The architecture of the PTX, which the driver compiles for any later device, once per machine."""
STAGED = 1 << 23
"""Bytes of memory that the device reaches by itself, for every thread that copies: to make more of it takes long."""

_OPTIONS = ("--std=c++17", "--restrict", "-default-device")
_POOL_KEEPS, _POOL_USED = 4, 7
_MAJOR, _MINOR = 75, 76
_OUT_OF_MEMORY = 2
_NUMBERS: dict[int, Any] = {1: ctypes.c_ubyte, 4: ctypes.c_int, 8: ctypes.c_longlong}


class DeviceError(Exception):
    """The driver has refused something."""


class Driver:
    """A device that has been started. Streams are those of threads: what a thread asks for is done in that order."""

    def __init__(self) -> None:
        began = time.perf_counter()
        self._waiting = ctypes.CDLL(LIBRARY)
        self._quick = ctypes.PyDLL(LIBRARY)  # calls that do not wait keep the interpreter's lock
        self._check(self._waiting.cuInit(0))
        device = ctypes.c_int()
        self._check(self._waiting.cuDeviceGet(ctypes.byref(device), 0))
        self._context = ctypes.c_void_p()
        self._check(self._waiting.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device))
        self._own = threading.local()
        self.bind()
        name = ctypes.create_string_buffer(128)
        self._check(self._waiting.cuDeviceGetName(name, 128, device))
        self.name = name.value.decode(errors="replace")
        self._pool = ctypes.c_void_p()
        self._check(self._waiting.cuDeviceGetDefaultMemPool(ctypes.byref(self._pool), device))
        everything = ctypes.c_uint64(-1)
        self._check(self._waiting.cuMemPoolSetAttribute(self._pool, _POOL_KEEPS, ctypes.byref(everything)))
        major, minor = (self._attribute(device, which) for which in (_MAJOR, _MINOR))
        self._module = ctypes.c_void_p()
        self._check(self._waiting.cuModuleLoadData(ctypes.byref(self._module), code_for(10 * major + minor)))
        self._functions: dict[str, int] = {}
        _declare(self._quick, self._waiting)
        self.seconds = time.perf_counter() - began
        """What the start took."""

    def _check(self, result: int) -> None:
        if result == _OUT_OF_MEMORY:
            raise MemoryError
        if result:
            raise DeviceError(f"CUDA says {result}")

    def _attribute(self, device: ctypes.c_int, which: int) -> int:
        found = ctypes.c_int()
        self._check(self._waiting.cuDeviceGetAttribute(ctypes.byref(found), which, device))
        return found.value

    def bind(self) -> None:
        """This thread works with the device from now on, on a stream of its own."""
        self._check(self._waiting.cuCtxSetCurrent(self._context))
        if not hasattr(self._own, "stream"):
            stream = ctypes.c_void_p()
            self._check(self._waiting.cuStreamCreate(ctypes.byref(stream), 1))  # one that waits for no other
            self._own.stream = stream.value
            self._own.arguments = ctypes.create_string_buffer(4096)
            self._own.length = ctypes.c_size_t()
            place, length = ctypes.addressof(self._own.arguments), ctypes.addressof(self._own.length)
            self._own.extra = (ctypes.c_void_p * 5)(1, place, 2, length, 0)
            self._own.staging = None

    def bind_once(self) -> None:
        """Binds this thread to the device unless it is bound already."""
        if not hasattr(self._own, "stream"):
            self.bind()

    @property
    def stream(self) -> int:
        """The stream of this thread."""
        self.bind_once()
        return self._own.stream  # type: ignore[no-any-return]

    def launch(self, function: str, blocks: int, threads: int, arguments: Iterable[int]) -> None:
        """Has a function of the module run, after all that this thread has asked for."""
        stream, own = self.stream, self._own
        words = tuple(arguments)
        struct.pack_into(f"{len(words)}q", own.arguments, 0, *words)
        own.length.value = 8 * len(words)
        found = self._functions.get(function) or self._function(function)
        self._check(
            self._quick.cuLaunchKernel(found, blocks, 1, 1, threads, 1, 1, 0, stream, None, own.extra)
        )  # fmt: skip

    def _function(self, name: str) -> int:
        found = ctypes.c_void_p()
        self._check(self._waiting.cuModuleGetFunction(ctypes.byref(found), self._module, name.encode()))
        assert found.value is not None
        self._functions[name] = found.value
        return found.value

    def allocate(self, size: int) -> Memory:
        """Some bytes. Raises MemoryError."""
        stream, place = self.stream, ctypes.c_uint64()
        self._check(self._quick.cuMemAllocAsync(ctypes.byref(place), max(size, 1), stream))
        return Memory(self, place.value, stream)

    def free(self, place: int, stream: int) -> None:
        """Gives memory back, after what the stream it was made on has been told to do. An error is none any more."""
        with suppress(Exception):
            self.bind_once()
            self._quick.cuMemFreeAsync(place, stream)

    def free_bytes(self) -> int:
        """Bytes of the device that no process uses."""
        self.bind_once()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._check(self._waiting.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value

    def used_bytes(self) -> int:
        """Bytes of the pool that are in use."""
        used = ctypes.c_uint64()
        self._check(self._quick.cuMemPoolGetAttribute(self._pool, _POOL_USED, ctypes.byref(used)))
        return used.value

    def synchronize(self) -> None:
        """Waits for all that this thread has asked for."""
        self._check(self._waiting.cuStreamSynchronize(self.stream))

    def number_at(self, place: int, size: int) -> int:
        """The number of some bytes, when all that was asked for before is done."""
        staging = self._staging()
        self._check(self._waiting.cuMemcpyDtoHAsync_v2(staging, place, size, self.stream))
        self.synchronize()
        return _NUMBERS[size].from_address(staging).value  # type: ignore[no-any-return]

    def set_bytes(self, place: int, value: int, size: int) -> None:
        self._check(self._quick.cuMemsetD8Async(place, value, size, self.stream))

    def copy(self, origin: int, place: int, size: int) -> None:
        """On the device."""
        self._check(self._quick.cuMemcpyDtoDAsync_v2(place, origin, size, self.stream))

    def write(self, host: int, place: int, size: int) -> None:
        """Bytes of this process to the device, through memory that both reach."""
        staging = self._staging()
        for begin in range(0, size, STAGED):
            length = min(STAGED, size - begin)
            ctypes.memmove(staging, host + begin, length)
            self._check(self._waiting.cuMemcpyHtoDAsync_v2(place + begin, staging, length, self.stream))
            self.synchronize()

    def read(self, place: int, host: int, size: int) -> None:
        """Bytes of the device to this process."""
        staging = self._staging()
        for begin in range(0, size, STAGED):
            length = min(STAGED, size - begin)
            self._check(self._waiting.cuMemcpyDtoHAsync_v2(staging, place + begin, length, self.stream))
            self.synchronize()
            ctypes.memmove(host + begin, staging, length)

    def _staging(self) -> int:
        self.bind_once()
        if self._own.staging is None:
            self._own.staging = _Staging(self)
        return self._own.staging.place  # type: ignore[no-any-return]

    def pin(self) -> int:
        """Memory of this process that the device reaches by itself."""
        place = ctypes.c_void_p()
        self._check(self._waiting.cuMemHostAlloc(ctypes.byref(place), STAGED, 1))  # for all threads
        assert place.value is not None
        return place.value

    def record(self) -> int:
        """An event: all that this thread has asked for so far."""
        event = ctypes.c_void_p()
        self._check(self._quick.cuEventCreate(ctypes.byref(event), 2))  # without timing
        self._check(self._quick.cuEventRecord(event, self.stream))
        assert event.value is not None
        return event.value

    def wait_for(self, event: int) -> None:
        """Has all that this thread asks for from now on done after an event, which must not be used again."""
        self._check(self._quick.cuStreamWaitEvent(self.stream, event, 0))
        self._check(self._quick.cuEventDestroy_v2(event))


class Memory:
    """Bytes of the device, given back when the last reference is gone."""

    __slots__ = ("_driver", "place", "stream")

    def __init__(self, driver: Driver, place: int, stream: int) -> None:
        self._driver, self.place, self.stream = driver, place, stream

    def __del__(self) -> None:
        self._driver.free(self.place, self.stream)


_free_staging: list[int] = []


class _Staging:
    """Pinned memory that a thread holds, and leaves to the next one when it ends."""

    __slots__ = ("place",)

    def __init__(self, driver: Driver) -> None:
        self.place = _free_staging.pop() if _free_staging else driver.pin()

    def __del__(self) -> None:
        _free_staging.append(self.place)


def _declare(*libraries: Any) -> None:
    """Addresses and sizes have 64 bits; all other arguments are addresses of what knows its type."""
    place, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
    for library in libraries:
        library.cuLaunchKernel.argtypes = [place, *[number] * 7, place, place, place]
        library.cuMemAllocAsync.argtypes = [place, size, place]
        library.cuMemFreeAsync.argtypes = [place, place]
        library.cuMemsetD8Async.argtypes = [place, ctypes.c_ubyte, size, place]
        for copy in ("DtoD", "DtoH", "HtoD"):
            getattr(library, f"cuMemcpy{copy}Async_v2").argtypes = [place, place, size, place]
        for name in ("cuStreamSynchronize", "cuEventDestroy_v2"):
            getattr(library, name).argtypes = [place]
        library.cuEventRecord.argtypes = [place, place]
        library.cuStreamWaitEvent.argtypes = [place, place, number]
        library.cuMemHostAlloc.argtypes = [place, size, number]


# --- the module ----------------------------------------------------------------------------------------------------


@cache
def source() -> str:
    path = os.path.join(os.path.dirname(__file__), "kernels.cu")
    data: bytes = __loader__.get_data(path)  # type: ignore[name-defined]  # also from an archive
    return data.decode()


@cache
def fingerprint() -> str:
    """The fingerprint of what the module is compiled from."""
    return blake2b("\n".join((*_OPTIONS, source())).encode(), digest_size=12).hexdigest()


def code_for(architecture: int) -> bytes:
    """The module for a device. Raises DeviceError if there is none, and nothing to compile it with."""
    fitting = [one for one in ARCHITECTURES if one // 10 == architecture // 10 and one <= architecture]
    targets = [*(f"sm_{one}" for one in reversed(fitting)), f"compute_{PORTABLE}"]
    for target in targets:
        found = objects.find(_operator(target), fingerprint(), FAMILY)
        if found is not None:
            return found.code
    code = compiled(targets[0])
    with suppress(OSError):  # the next process compiles it again
        objects.keep(_operator(targets[0]), fingerprint(), _object(code), objects.make_user_folder(FAMILY))
    return code


def _operator(target: str) -> str:
    return f"elastalog.device.{target}"


def _object(code: bytes) -> objects.ObjectCode:
    return objects.ObjectCode(code, "", ())


def compiled(target: str) -> bytes:
    """The module for an architecture (`sm_90`), or as PTX from one on (`compute_75`), by NVRTC, which needs no device.
    Raises DeviceError if that is not installed, or refuses."""
    library = _compiler()
    program = ctypes.c_void_p()
    given = library.nvrtcCreateProgram(
        ctypes.byref(program), source().encode(), b"kernels.cu", 0, None, None
    )  # fmt: skip
    options = [option.encode() for option in (f"--gpu-architecture={target}", *_OPTIONS)]
    given = given or library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    what = "CUBIN" if target.startswith("sm_") else "PTX"
    size = ctypes.c_size_t()
    given = given or getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    given = given or getattr(library, f"nvrtcGet{what}")(program, code)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if given:
        raise DeviceError(f"NVRTC says {given} for {target}")
    return code.raw


def _compiler() -> Any:
    names = [f"libnvrtc.so.{version}" for version in (12, 13)]
    folders = [os.path.join(path, "nvidia", part, "lib") for path in sys.path for part in ("cuda_nvrtc", "cu13")]
    for name in (*(os.path.join(folder, name) for folder in folders for name in names), *names, "libnvrtc.so"):
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise DeviceError("the device's module is not compiled, and NVRTC, which compiles it, is not installed")


def pack(folder: str) -> None:
    """Compiles the module for all architectures into a folder that a wheel carries."""
    from pathlib import Path

    home = Path(folder, FAMILY)
    home.mkdir(parents=True, exist_ok=True)
    for target in (*(f"sm_{one}" for one in ARCHITECTURES), f"compute_{PORTABLE}"):
        objects.keep(_operator(target), fingerprint(), _object(compiled(target)), home)


if __name__ == "__main__":
    pack(sys.argv[1])
