"""Batch evaluation with one thread and with several, in turns in one process.

`python -m benchmarks.threads [WORK ...] [--data DIR] [--jobs N ...] [--repeats N]` prints the least and the median wall
time and the processor time of each; the ratio is of least wall times, to the first number of threads. A work is a
workload, or a Parquet file of two columns, of which the closure is evaluated. Exit code 1 if a count is wrong.

Where others use the machine, wall times say nothing. `alone` is the processor time that threads spend while no other
can work, and `clock` what the work would take on cores of its own: that time, and the rest shared out evenly; `longest`
is the same, but that of threads which work together the one counts that works longest, which is too much where others
keep threads from running. Neither says anything of cores that wait for the same memory.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
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
    """The processor `seconds` that threads have spent in work which others do at the same time, and how many of them
    the thread did `not_longest` that worked longest."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.not_longest = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measures within the block: the work of every thread, but for what one does while the others wait."""
        from elastalog.backends.kernel.threads import crew, shared_round, workers

        def timed_threads(number: int, work: Callable[[int], None], abort: Callable[[], None]) -> None:
            spent = [0.0] * number

            def timed(thread: int) -> None:
                began = time.thread_time()
                try:
                    work(thread)
                finally:
                    spent[thread] = time.thread_time() - began

            crew.in_threads(number, timed, abort)
            if number > 1:
                self.seconds += sum(spent)
                self.not_longest += sum(spent) - max(spent)

        def by_one(round_: Any) -> None:
            began = time.thread_time()
            make_room(round_)
            self.seconds -= time.thread_time() - began

        make_room = shared_round.SharedRound._make_room
        with (
            patch.object(shared_round, "in_threads", timed_threads),
            patch.object(workers, "in_threads", timed_threads),
            patch.object(shared_round.SharedRound, "_make_room", by_one),
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
    longest: dict[int, list[float]] = {number: [] for number in jobs}
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
            longest[number].append(processor[number][-1] - together.not_longest)
            is_right = is_right and all(counts[name] == size for name, size in workload.expected.items())
    for number in jobs:
        least, by_one = min(processor[number]), min(alone[number])
        times = (
            min(wall[number]), statistics.median(wall[number]), least, by_one, by_one + (least - by_one) / number,
            min(longest[number]),
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
    print(f"{'workload':20} jobs   min s   median s   cpu s    alone    clock  longest  ratio")
    works = [BY_NAME[name] if name in BY_NAME else closure_of(Path(name)) for name in given.workloads or DEFAULT]
    results = [compare(work, data, given.jobs, given.repeats) for work in works]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
