"""Batch evaluation with one thread and with several, in turns in one process.

`python -m benchmarks.threads [WORKLOAD ...] [--jobs N ...] [--repeats N]` prints the least and the median wall time and
the processor time of each; the ratio is of least wall times, to the first number of threads. Processor time shows what
threads cost even where others use the machine. Exit code 1 if a count is wrong.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Sequence

from benchmarks.engines import product
from benchmarks.engines.protocol import Options
from benchmarks.workloads import BY_NAME, Workload

DEFAULT = ("closure-sparse", "closure-dense", "el-completion")


def compare(workload: Workload, jobs: Sequence[int], repeats: int) -> bool:
    """Prints one line for each number of threads; whether all counts were right."""
    facts = workload.facts(None)
    relations = sorted(workload.expected)
    evaluations = {number: product.prepare(workload, facts, relations, Options(number)) for number in jobs}
    wall: dict[int, list[float]] = {number: [] for number in jobs}
    processor: dict[int, list[float]] = {number: [] for number in jobs}
    is_right = True
    for _ in range(repeats):
        for number, evaluate in evaluations.items():
            gc.collect()
            began, began_processor = time.perf_counter(), time.process_time()
            counts = evaluate()
            wall[number].append(time.perf_counter() - began)
            processor[number].append(time.process_time() - began_processor)
            is_right = is_right and all(counts[name] == size for name, size in workload.expected.items())
    for number in jobs:
        times = (min(wall[number]), statistics.median(wall[number]), min(processor[number]))
        shown = "  ".join(f"{seconds:7.3f}" for seconds in times)
        ratio = min(wall[number]) / min(wall[jobs[0]])
        print(f"{workload.name:20} {number:4}  {shown}  {ratio:5.2f}", flush=True)
    if not is_right:
        print(f"{workload.name}: wrong counts", file=sys.stderr)
    return is_right


def main() -> None:
    generated = [workload.name for workload in BY_NAME.values() if workload.folder is None]
    parser = argparse.ArgumentParser(description="one thread against several")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(generated)}")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    unknown = [name for name in given.workloads if name not in generated]
    if unknown:
        parser.error(f"no such workload: {', '.join(unknown)}")
    print(f"{'workload':20} jobs   min s   median s   cpu s  ratio")
    results = [compare(BY_NAME[name], given.jobs, given.repeats) for name in given.workloads or DEFAULT]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
