"""Batch evaluation with one thread and with several, all in the same minutes.

`python -m benchmarks.thread_turns WORK ... [--data DIR] [--jobs N ...] [--repeats N] [--beside SOURCES] [--slice S]`
starts a process for every number of threads, and lets them have the machine by turns, a fraction of a second each: what
disturbs one disturbs all, so that ratios hold on a machine whose speed changes by the minute. Printed are the least and
the median time of an evaluation while its process had the machine, the least processor time, what the host of a virtual
machine kept from it (`stolen`, of all cores, at the median), and the gain of medians over the first number of threads.
`--beside` names the `src` of another checkout, which has its turns too.

What the machine itself gives to so many threads is measured in the same way: `digests` of bytes in the nearest caches,
and `fetches` from random places of an array far larger than caches.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.engines import product
from benchmarks.engines.protocol import Options
from benchmarks.threads import Evaluation
from benchmarks.workloads import BY_NAME, DATA_VARIABLE, HERE, closure_of, data_folder

PARTS = 32
"""Of what a probe does, shared out to threads."""

PROBED = 0.2
"""Of the time that a work has, so much has a probe."""

Span = tuple[float, float, float]
"""When something began and ended, and its processor time."""


def _digests() -> Callable[[], object]:
    given = bytes(1 << 18)
    return lambda: [hashlib.sha256(given).digest() for _ in range(16)]


def _fetches() -> Callable[[], object]:
    words = np.ones(1 << 26, np.int32)
    places = np.random.default_rng(1).integers(0, len(words), 1 << 18)
    return lambda: words.take(places)


PROBES: Mapping[str, Callable[[], Callable[[], object]]] = {"digests": _digests, "fetches": _fetches}
"""Each makes a part of its work, to be done by any thread as often as one likes."""


def stolen_so_far() -> float:
    """Seconds that the host of a virtual machine has kept its cores from work that was there."""
    return int(Path("/proc/stat").read_text().split()[8]) / os.sysconf("SC_CLK_TCK")


class Turns:
    """A process that has the machine by turns."""

    def __init__(self, sources: Path, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{HERE.parent}"}
        command = [sys.executable, "-m", "benchmarks.thread_turns", "--here", *arguments]
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self._had: list[tuple[float, float, float]] = []
        self._halt()

    def _halt(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def have(self, seconds: float) -> None:
        """One turn."""
        began, stolen = time.perf_counter(), stolen_so_far()
        os.kill(self._process.pid, signal.SIGCONT)
        time.sleep(seconds)
        self._halt()
        self._had.append((began, time.perf_counter(), stolen_so_far() - stolen))

    def results(self) -> Iterator[tuple[float, float, float]]:
        """Of all that was measured the seconds while this process had the machine, those of the processor, and those
        that were stolen meanwhile."""
        assert self._process.stdout is not None
        for began, ended, processor in map(json.loads, self._process.stdout):
            had = [
                (max(min(stop, ended) - max(start, began), 0.0), stop - start, lost) for start, stop, lost in self._had
            ]
            yield sum(part for part, _, _ in had), processor, sum(part / whole * lost for part, whole, lost in had)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def take_turns(works: Sequence[Turns], probes: Sequence[Turns], seconds: float) -> None:
    """Turn after turn until all works are over; probes go on until then."""
    try:
        while not all(work.is_over for work in works):
            for work in works:
                if not work.is_over:
                    work.have(seconds)
            for probe in probes:
                probe.have(PROBED * seconds)
    finally:
        for process in (*works, *probes):
            process.end()


def evaluations(work: str, data: Path | None, jobs: int, repeats: int) -> Iterator[Span]:
    """Evaluates a work."""
    workload = BY_NAME[work] if work in BY_NAME else closure_of(Path(work))
    open_once = product.prepare(workload, workload.facts(data), sorted(workload.expected), Options(jobs))
    for _ in range(repeats):
        gc.collect()
        evaluation = Evaluation()
        with evaluation.measured():
            open_once()
        yield evaluation.began, evaluation.began + evaluation.wall, evaluation.processor


def probings(work: str, jobs: int) -> Iterator[Span]:
    """Does the work of a probe, again and again."""
    do_part = PROBES[work]()
    with ThreadPoolExecutor(jobs) as threads:
        while True:
            began, began_processor = time.perf_counter(), time.process_time()
            list(threads.map(lambda _: do_part(), range(PARTS)))
            yield began, time.perf_counter(), time.process_time() - began_processor


def spans(work: str, data: Path | None, jobs: int, repeats: int) -> Iterator[Span]:
    """What a process with so many threads does."""
    return probings(work, jobs) if work in PROBES else evaluations(work, data, jobs, repeats)


def compare(work: str, given: argparse.Namespace) -> None:
    """Prints a line for each number of threads: of these sources, of those beside, of probes."""
    here = HERE.parent / "src"
    beside = [] if given.beside is None else [("beside", work, given.beside.resolve())]
    options = ["--repeats", str(given.repeats), *(["--data", given.data] if given.data else [])]

    def start(rivals: Sequence[tuple[str, str, Path]]) -> dict[tuple[str, int], Turns]:
        return {
            (told, jobs): Turns(sources, what, "--jobs", str(jobs), *options)
            for told, what, sources in rivals
            for jobs in given.jobs
        }

    works = start([(Path(work).stem, work, here), *beside])
    probes = start([(probe, probe, here) for probe in PROBES])
    take_turns(list(works.values()), list(probes.values()), given.slice)
    medians: dict[tuple[str, int], float] = {}
    for (told, jobs), process in {**works, **probes}.items():
        times, processor, stolen = zip(*process.results(), strict=True)
        median = medians[told, jobs] = statistics.median(times)
        gain = medians[told, given.jobs[0]] / median
        shown = "".join(
            f"{seconds:9.3f}" for seconds in (min(times), median, min(processor), statistics.median(stolen))
        )
        print(f"{told:20} {jobs:4}{shown} {gain:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="one thread against several, by turns")
    parser.add_argument("works", nargs="+", metavar="WORK", help=f"a Parquet file, or of {', '.join(BY_NAME)}")
    parser.add_argument("--data", help=f"folder of the data sets (default: ${DATA_VARIABLE})")
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="numbers of threads (default 1 2)")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--beside", type=Path, metavar="SOURCES", help="the `src` of another checkout")
    parser.add_argument("--slice", type=float, default=0.1, help="seconds of a turn (default 0.1)")
    parser.add_argument("--here", action="store_true", help="in this process, for a program to read")
    given = parser.parse_args()
    if given.here:
        (work,), (jobs,) = given.works, given.jobs
        for span in spans(work, data_folder(given.data), jobs, given.repeats):
            print(json.dumps(span), flush=True)
        return
    print(f"{'work':20} jobs    min s   median    cpu s   stolen   gain")
    for work in given.works:
        compare(work, given)


if __name__ == "__main__":
    main()
