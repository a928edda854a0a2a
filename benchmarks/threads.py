"""Batch evaluation with one thread and with several, in turns in one process.

`python -m benchmarks.threads [WORK ...] [--data DIR] [--jobs N ...] [--repeats N]` prints the least and the median wall
time and the processor time of each; the ratio is of least wall times, to the first number of threads. A work is a
workload, or a Parquet file of two columns, of which the closure is evaluated. Exit code 1 if a count is wrong.

Where others use the machine, wall times say nothing. `alone` is the processor time that threads spend while no other
can work, and `clock` what the work would take on cores of its own: that time, and the rest shared out. It says nothing
of cores that wait for the same memory.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.engines import product
from benchmarks.engines.protocol import Options
from benchmarks.workloads import BY_NAME, Workload, closure_of, data_folder

DEFAULT = ("closure-sparse", "closure-dense", "el-completion")


class Together:
    """The processor time that threads have spent in work which others do at the same time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        with self._lock:
            self.seconds += seconds

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measures within the block: the work of every thread, but for what one does while the others wait."""
        from elastalog.backends.kernel.threads import run, workers

        def timed(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
            def call(*arguments: Any) -> Any:
                began = time.thread_time()
                try:
                    return function(*arguments)
                finally:
                    self.add(sign * (time.thread_time() - began))

            return call

        def timed_threads(number: int, work: Callable[[int], None], abort: Callable[[], None]) -> None:
            in_threads(number, timed(work, 1), abort)

        in_threads = run.in_threads
        with (
            patch.object(run, "in_threads", timed_threads),
            patch.object(workers, "in_threads", timed_threads),
            patch.object(run.SharedRun, "_make_room", timed(run.SharedRun._make_room, -1)),
        ):
            yield


def compare(workload: Workload, data: Path | None, jobs: Sequence[int], repeats: int) -> bool:
    """Prints one line for each number of threads; whether all counts were right."""
    facts = workload.facts(data)
    relations = sorted(workload.expected)
    evaluations = {number: product.prepare(workload, facts, relations, Options(number)) for number in jobs}
    wall: dict[int, list[float]] = {number: [] for number in jobs}
    processor: dict[int, list[float]] = {number: [] for number in jobs}
    alone: dict[int, list[float]] = {number: [] for number in jobs}
    is_right = True
    for _ in range(repeats):
        for number, evaluate in evaluations.items():
            gc.collect()
            together = Together()
            began, began_processor = time.perf_counter(), time.process_time()
            with together.measured():
                counts = evaluate()
            wall[number].append(time.perf_counter() - began)
            processor[number].append(time.process_time() - began_processor)
            alone[number].append(processor[number][-1] - together.seconds)
            is_right = is_right and all(counts[name] == size for name, size in workload.expected.items())
    for number in jobs:
        least, by_one = min(processor[number]), min(alone[number])
        times = (
            min(wall[number]), statistics.median(wall[number]), least, by_one, by_one + (least - by_one) / number,
        )  # fmt: skip
        shown = "  ".join(f"{seconds:7.3f}" for seconds in times)
        ratio = min(wall[number]) / min(wall[jobs[0]])
        print(f"{workload.name:20} {number:4}  {shown}  {ratio:5.2f}", flush=True)
    if not is_right:
        print(f"{workload.name}: wrong counts", file=sys.stderr)
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description="one thread against several")
    parser.add_argument("workloads", nargs="*", metavar="WORK", help=f"a Parquet file, or of {', '.join(BY_NAME)}")
    parser.add_argument("--data", help="folder of benchmark data")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    data = data_folder(given.data)
    unknown = [name for name in given.workloads if name not in BY_NAME and not Path(name).is_file()]
    if unknown:
        parser.error(f"no such workload: {', '.join(unknown)}")
    print(f"{'workload':20} jobs   min s   median s   cpu s    alone    clock  ratio")
    works = [BY_NAME[name] if name in BY_NAME else closure_of(Path(name)) for name in given.workloads or DEFAULT]
    results = [compare(work, data, given.jobs, given.repeats) for work in works]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
