"""The backends by name of their engine.

An engine is where a user wants strata evaluated. Another one is another case here, and nothing above changes.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final, Protocol

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import NO_OTHER_PLACE, Backend
from elastalog.backends.spark.cluster import Cluster
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalProgram
from elastalog.relations.words import Dictionary

ENGINES: Final = ("auto", "local", "spark", "gpu")

log = logging.getLogger("elastalog.placement")


class BackendMaker(Protocol):
    """Makes the backend of a program."""

    def __call__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        annotation: Annotation,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> Backend: ...


def backend_maker(engine: str, cluster: Cluster | None = None, room: int | None = None) -> BackendMaker:
    """`local`: this process. `spark`: tasks of a cluster, wherever possible. `gpu`: a device, wherever possible, of
    whose memory `room` bytes may be used. `auto`: tasks beyond this process's memory, if there is a cluster; without
    one, a device where there is one and the work is worth it."""
    match engine, cluster:
        case ("spark" | "auto", Cluster()):
            from elastalog.backends.spark.backend import SparkBackend

            return partial(SparkBackend, cluster=cluster, is_elastic=engine == "auto")
        case ("local", _):
            from elastalog.backends.kernel.backend import KernelBackend

            return KernelBackend
        case ("gpu", _) | ("auto", None):
            from elastalog.backends.gpu.starting import begin, is_there

            if engine == "gpu" and is_there():
                begin()  # beside all that comes before
            return partial(_kernel_with_device, is_asked=engine == "gpu", room=room)
        case _:
            raise ValueError(f"there is no engine `{engine}`, or not without a cluster")


def _kernel_with_device(
    program: LogicalProgram,
    dictionary: Dictionary,
    *,
    watch: Watch | None = None,
    is_asked: bool,
    room: int | None,
    **options: Any,
) -> Backend:
    """A kernel that has strata evaluated on a device. Where there is none, one that was asked for is NumPy."""
    from elastalog.backends.gpu.starting import is_there
    from elastalog.backends.kernel.backend import KernelBackend

    watch, has_device = watch or Watch(), is_there()
    if not has_device and not is_asked:
        log.info("in this process: %s", NO_OTHER_PLACE)
        return KernelBackend(program, dictionary, watch=watch, **options)
    from elastalog.backends.gpu.place import DevicePlace

    arrays = None
    if not has_device:
        from elastalog.backends.gpu.arrays import on_numpy

        log.warning("engine gpu: there is no GPU; NumPy takes its place")
        arrays = on_numpy(room)
    place = DevicePlace(arrays, dictionary, program.checked.source, watch, is_asked=is_asked, room=room)
    return KernelBackend(program, dictionary, watch=watch, place=place, **options)


def by_sorted_arrays(
    program: LogicalProgram, dictionary: Dictionary, *, watch: Watch | None = None, **options: Any
) -> Backend:
    """A kernel that has strata evaluated as for a device, by joins of sorted arrays, on NumPy and to the end. Nothing
    of that is in its own way to evaluate them, by indexes and compiled rounds, which it is there to check."""
    from elastalog.backends.gpu.arrays import on_numpy
    from elastalog.backends.gpu.place import DevicePlace
    from elastalog.backends.kernel.backend import KernelBackend

    watch = watch or Watch()
    place = DevicePlace(
        on_numpy(), dictionary, program.checked.source, watch, is_asked=True, chunk=1 << 20, goes_to_the_end=True
    )
    return KernelBackend(program, dictionary, watch=watch, place=place, **options)
