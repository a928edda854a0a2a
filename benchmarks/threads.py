"""Batch evaluation with one thread and with several, in turns in one process.

`python -m benchmarks.threads [WORK ...] [--data DIR] [--jobs N ...] [--repeats N] [--ceiling]` prints the least wall
time of `elastalog.open`, which encodes tables in one thread; then, of the evaluation in it, the least and the median
wall time and the processor time. The gain is that of least wall times of the evaluation, over the first number of
threads. A work is a workload, or a Parquet file of two columns, of which the closure is evaluated. Exit code 1 if a
count is wrong.

Where others use the machine, wall times say nothing. `alone` is the processor time that threads spend while no other
can work, and `clock` what the work would take on cores of its own: that time, and the rest shared out evenly; `longest`
is the same, but that of threads which work together the one counts that works longest, which is too much where others
keep threads from running. Neither says anything of cores that wait for the same memory, or share what a core has.
`--ceiling` asks the machine: as many processes as threads evaluate at the same time, each with one thread and all data
of its own, and so much more is done by them than by one alone. No sharing of one evaluation can be expected to gain as
much.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
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


class Evaluation:
    """One evaluation: the seconds it took by the wall and of the processor; of the latter those that threads have spent
    in work that others do at the same time (`together`), and how many of them not by the one that worked longest."""

    def __init__(self) -> None:
        self.began = 0.0
        self.wall = 0.0
        self.processor = 0.0
        self.together = 0.0
        self.not_longest = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measures the evaluation within the block."""
        from elastalog.backends.kernel.bootstrap import shared_growth
        from elastalog.backends.kernel.store import crew
        from elastalog.session.materialisation import Materialisation

        def bootstrap(*arguments: Any) -> Any:
            began, began_processor = time.perf_counter(), time.process_time()
            result = evaluate(*arguments)
            self.wall, self.processor = time.perf_counter() - began, time.process_time() - began_processor
            self.began = began
            return result

        def timed(the_crew: Any, work: Callable[[int], None], abort: Callable[[], None]) -> None:
            spent: dict[int, float] = {}

            def timed_work(thread: int) -> None:
                began = time.thread_time()
                try:
                    work(thread)
                finally:
                    spent[thread] = time.thread_time() - began

            do(the_crew, timed_work, abort)
            if len(spent) > 1:
                self.together += sum(spent.values())
                self.not_longest += sum(spent.values()) - max(spent.values())

        def by_one(rounds: Any, full: Any) -> None:
            began = time.thread_time()
            make_room(rounds, full)
            self.together -= time.thread_time() - began

        evaluate, make_room, do = Materialisation.bootstrap, shared_growth.SharedGrowth._make_room, crew.Crew.do
        with (
            patch.object(Materialisation, "bootstrap", bootstrap),
            patch.object(crew.Crew, "do", timed),
            patch.object(shared_growth.SharedGrowth, "_make_room", by_one),
        ):
            yield

    def clock(self, threads: int) -> float:
        """What it would take on cores of its own if work that is done together were shared out evenly."""
        return self.processor - self.together + self.together / threads


def find_work(name: str) -> Workload:
    return BY_NAME[name] if name in BY_NAME else closure_of(Path(name))


def least_beside(name: str, data: Path | None, repeats: int, start: Any, found: Any) -> None:
    """In a process among others: puts the least wall time of an evaluation with one thread into a queue. All begin at
    the same time, every time."""
    workload = find_work(name)
    open_once = product.prepare(workload, workload.facts(data), sorted(workload.expected), Options(1))
    walls = []
    for _ in range(repeats):
        gc.collect()
        evaluation = Evaluation()
        start.wait()
        with evaluation.measured():
            open_once()
        walls.append(evaluation.wall)
    found.put(min(walls))


def ceiling(name: str, data: Path | None, number: int, repeats: int) -> float:
    """How many times as much so many processes do at a time as one does alone."""
    context = multiprocessing.get_context("spawn")

    def least(processes: int) -> list[float]:
        start, found = context.Barrier(processes), context.Queue()
        working = [
            context.Process(target=least_beside, args=(name, data, repeats, start, found)) for _ in range(processes)
        ]
        for process in working:
            process.start()
        walls = [found.get() for _ in working]
        for process in working:
            process.join()
        return walls

    (alone,) = least(1)
    return sum(alone / wall for wall in least(number))


def compare(workload: Workload, data: Path | None, jobs: Sequence[int], repeats: int) -> bool:
    """Prints one line for each number of threads; whether all counts were right."""
    facts = workload.facts(data)
    relations = sorted(workload.expected)
    opens = {number: product.prepare(workload, facts, relations, Options(number)) for number in jobs}
    whole: dict[int, list[float]] = {number: [] for number in jobs}
    evaluations: dict[int, list[Evaluation]] = {number: [] for number in jobs}
    is_right = True
    for _ in range(repeats):
        for number, open_once in opens.items():
            gc.collect()
            evaluation = Evaluation()
            began = time.perf_counter()
            with evaluation.measured():
                counts = open_once()
            whole[number].append(time.perf_counter() - began)
            evaluations[number].append(evaluation)
            is_right = is_right and all(counts[name] == size for name, size in workload.expected.items())
    first = min(done.wall for done in evaluations[jobs[0]])
    for number, all_done in evaluations.items():
        walls = [done.wall for done in all_done]
        times = (
            min(whole[number]), min(walls), statistics.median(walls), min(done.processor for done in all_done),
            min(done.processor - done.together for done in all_done), min(done.clock(number) for done in all_done),
            min(done.processor - done.not_longest for done in all_done),
        )  # fmt: skip
        shown = "  ".join(f"{seconds:7.3f}" for seconds in times)
        print(f"{workload.name:20} {number:4}  {shown}  {first / min(walls):5.2f}", flush=True)
    if not is_right:
        print(f"{workload.name}: wrong counts", file=sys.stderr)
    return is_right


def main() -> None:
    parser = argparse.ArgumentParser(description="one thread against several")
    parser.add_argument("workloads", nargs="*", metavar="WORK", help=f"a Parquet file, or of {', '.join(BY_NAME)}")
    parser.add_argument("--data", help="folder of benchmark data")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ceiling", action="store_true", help="also what separate processes gain on this machine")
    given = parser.parse_args()
    data = data_folder(given.data)
    unknown = [name for name in given.workloads if name not in BY_NAME and not Path(name).is_file()]
    if unknown:
        parser.error(f"no such workload: {', '.join(unknown)}")
    print(f"{'workload':20} jobs   open s    min s   median    cpu s    alone    clock  longest   gain")
    results = []
    for name in given.workloads or DEFAULT:
        results.append(compare(find_work(name), data, given.jobs, given.repeats))
        for number in given.jobs[1:] if given.ceiling else ():
            print(f"{number} processes at a time gain {ceiling(name, data, number, given.repeats):.2f}", flush=True)
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
